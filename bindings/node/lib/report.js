// @ts-check

/**
 * report: what a store says about itself. Its figures are u64 in the library and numbers here: above 2^53
 * they lose precision.
 */

import * as native from "./native.js";
import { STATUS } from "./errors.js";
import { makeRoom, writeNothing } from "./requests.js";

/** @typedef {import('./slot.js').Slot} Slot */

/** Differences that verify lists, at most. */
const DIFFERENCES_MOST = 1000;

/** Places of an ntee_error's fields, and its size. */
const ERROR_OFFSET = 8;
const ERROR_MESSAGE = 24;
const ERROR_SIZE = 256;

/** sizeof(ntee_place) */
const PLACE_SIZE = 16;

/** NTEE_STATE_*, as users see them. */
const STATES = ["good", "read-only", "failed"];

/** The figure at `at` of a slot's result. @param {Slot} slot @param {number} at */
const figure = ({ output }, at) => output.readUInt32LE(at) + output.readUInt32LE(at + 4) * 4294967296;

/** @param {Slot} slot @param {number} status */
export function takeStats(slot, status) {
  if (status !== STATUS.OK) throw native.failure(status, slot);
  return { records: figure(slot, 0), mainBytes: figure(slot, 8), blobBytes: figure(slot, 16) };
}

/**
 * The members of an ntee_details_t, and the places behind it. undefined: it needs more room, which it now
 * has.
 * @param {Slot} slot @param {number} status
 */
export function takeDetails(slot, status) {
  if (status === STATUS.SHORT_BUFFER) return makeRoom(slot);
  if (status !== STATUS.OK) throw native.failure(status, slot);
  const [size, records, mainBytes, blobBytes, sequence, durableSeq, syncLagMs, state] = figures(slot, 0, 8);
  const [openScans, clean, replayed, cutBytes, salvagedBytes, , suspectBytes, log] = figures(slot, 64, 8);
  return {
    records,
    mainBytes,
    blobBytes,
    sequence,
    durableSeq,
    syncLagMs,
    state: STATES[state],
    openScans,
    recovery: { clean: clean !== 0, replayed, cutBytes, salvagedBytes },
    damaged: places(slot, size, `${log.toString(16).padStart(8, "0")}.log`),
    suspectBytes,
  };
}

/** @param {Slot} slot @param {number} at @param {number} count */
const figures = (slot, at, count) => Array.from({ length: count }, (_, i) => figure(slot, at + 8 * i));

/** @param {Slot} slot @param {number} start @param {string} file */
function places(slot, start, file) {
  const found = [];
  for (let at = start; at < slot.length; at += PLACE_SIZE) {
    found.push({ file, offset: figure(slot, at), length: figure(slot, at + 8) });
  }
  return found;
}

/** The request of VERIFY has no bytes, but its result wants room. @param {Slot} slot */
export function writeVerify(slot) {
  writeNothing(slot);
  slot.needOutput(DIFFERENCES_MOST * ERROR_SIZE);
}

/** @param {Slot} slot @param {number} status */
export function takeDifferences(slot, status) {
  if (status !== STATUS.OK) throw native.failure(status, slot);
  const { output, length, count } = slot;
  const differences = [];
  for (let at = 0; at < length; at += ERROR_SIZE) {
    const start = at + ERROR_MESSAGE;
    const message = output.toString("utf8", start, output.indexOf(0, start));
    const offset = Number(output.readBigInt64LE(at + ERROR_OFFSET));
    differences.push({ ...fileOf(message), offset, message });
  }
  return { differences, count };
}

/** The file that a message begins with. @param {string} message @returns {{file?: string}} */
function fileOf(message) {
  const [, file] = /^(\S+) at offset /.exec(message) ?? [];
  return file === undefined ? {} : { file };
}
