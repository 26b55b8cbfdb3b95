// @ts-check

/**
 * requests: lists of keys and items made into requests, and answers made into what methods give.
 */

import * as args from "./args.js";
import * as native from "./native.js";
import * as wire from "./wire.js";
import { own } from "./bytes.js";
import { STATUS, atItem } from "./errors.js";
import { raise } from "./jobs.js";
import { largeRequest } from "./slot.js";
import { addValue } from "./writers.js";
import { KIND, decodeValue } from "./values.js";

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./slot.js').Request} Request */
/** @typedef {import('./args.js').As} As */
/** @typedef {import('./shapes.js').Shapes} Shapes */

/** The longest result that a call can have: what a Buffer can hold everywhere. */
const RESULT_MOST = 4294967296;

/**
 * Takes the answer to GET that is in a slot. undefined: it needs more room, which it now has.
 * @param {Slot} slot @param {number} status @param {As} as @param {Shapes} shapes
 */
export function takeValue(slot, status, as, shapes) {
  if (status === STATUS.OK) {
    const { kind } = slot;
    if (as === "json" && kind === KIND.OBJECT) return shapes.value(slot);
    return decodeValue(slot.output, 0, slot.length, kind, as);
  }
  if (status === STATUS.NOT_FOUND) return null;
  if (status !== STATUS.SHORT_BUFFER) throw native.failure(status, slot);
  makeRoom(slot);
  return undefined;
}

/** @param {Slot} slot whose output was too small */
export function makeRoom(slot) {
  const { needed } = slot;
  if (needed > RESULT_MOST) throw native.failure(STATUS.TOO_LARGE, slot);
  slot.needOutput(needed);
}

/** The request of a call that has none. @param {Slot} slot */
export const writeNothing = (slot) => {
  slot.inputLength = 0;
};

/** @param {Slot} slot @param {number} status */
export function takeFlag(slot, status) {
  if (status === STATUS.OK) return true;
  if (status === STATUS.NOT_FOUND) return false;
  throw native.failure(status, slot);
}

/** @param {Slot} slot @param {number} status */
export function takeCount(slot, status) {
  if (status !== STATUS.OK) throw native.failure(status, slot);
  return slot.count;
}

/** @param {Slot} slot @param {number} status @param {As} as @param {Shapes} shapes */
export function takeValues(slot, status, as, shapes) {
  if (status === STATUS.OK) return wire.readValues(wire.pageOf(slot), as, raise, shapes);
  if (status !== STATUS.SHORT_BUFFER) throw native.failure(status, slot);
  makeRoom(slot);
  return undefined;
}

/** @param {unknown} keys @returns {(string | Uint8Array)[]} checked, and the caller's no more */
export function keyList(keys) {
  const list = args.list(keys, "the keys");
  const { length } = list;
  const checked = [];
  for (let i = 0; i < length; i++) {
    try {
      checked.push(own(args.key(list[i])));
    } catch (error) {
      throw atItem(error, i);
    }
  }
  return checked;
}

/** @param {Slot} slot @param {(string | Uint8Array)[]} keys */
export function writeKeys(slot, keys) {
  slot.inputLength = 0;
  for (const key of keys) wire.addKey(slot, key);
}

/**
 * The request of a batch, as its items are at this moment.
 * @param {unknown} items @param {boolean} typed
 */
export function batchRequest(items, typed) {
  const list = args.list(items, typed ? "the operations" : "the items");
  const { length } = list;
  const request = largeRequest(Math.min(length * 160 + 64, 4 << 20));
  for (let i = 0; i < length; i++) addItem(request, list, i, typed);
  return { request, length };
}

/**
 * In a function of its own, which the compiler knows soon, however few batches there are.
 * @param {Request} request @param {unknown[]} list @param {number} i @param {boolean} typed
 */
function addItem(request, list, i, typed) {
  try {
    const item = args.writeItem(list[i], typed);
    if (item.put) addValue(request, wire.PUT, item.key, item.value, false);
    else wire.addWrite(request, wire.DELETE, item.key, "");
  } catch (error) {
    throw atItem(error, i);
  }
}
