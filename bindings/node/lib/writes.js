// @ts-check

/**
 * writes: the asynchronous writes of a store. They are made one call after the other, so that of two writes
 * of the same key the later one wins; those that wait meanwhile share the next call, and its sync.
 */

import * as native from "./native.js";
import * as wire from "./wire.js";
import { own } from "./bytes.js";
import { STATUS, closed } from "./errors.js";
import { Fifo, gate } from "./gate.js";
import { Job, queued } from "./jobs.js";
import { giveBack } from "./slot.js";

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./handle.js').Handle} Handle */
/** @typedef {import('./gate.js').Call} Call */

/** A shared call has at most about so many bytes. */
const SHARED_BYTES = 1 << 20;
/** Larger writes are not tried within the call. */
const SMALL = 64 << 10;

/** A write of one key: key and value cannot change any more. */
class PutJob extends Job {
  /**
   * @param {object} db
   * @param {Handle} handle
   * @param {string | Uint8Array} key
   * @param {string | Uint8Array} value
   */
  constructor(db, handle, key, value) {
    super(db, handle);
    this.key = key;
    this.value = value;
  }

  done() {
    this.resolve(undefined);
  }

  get size() {
    return this.key.length + this.value.length;
  }

  /** @param {Fifo} waiting @override */
  admit(waiting) {
    return admitWrite(this, waiting);
  }
}

/** A batch: its request is written already. */
class BulkJob extends Job {
  /**
   * @param {object} db
   * @param {Handle} handle
   * @param {Buffer} frames
   * @param {number} length
   * @param {number} count
   */
  constructor(db, handle, frames, length, count) {
    super(db, handle);
    this.frames = frames;
    this.length = length;
    this.count = count;
  }

  /** @param {Fifo} waiting @override */
  admit(waiting) {
    return admitWrite(this, waiting);
  }

  done() {
    this.resolve(this.count);
  }
}

/** Several syncs that wait one behind the other are one. Writes that wait in the lane are synced, too. */
class SyncJob extends Job {
  /** @type {SyncJob[]} */
  others = [];

  /** @param {Fifo} waiting @override */
  admit(waiting) {
    for (;;) {
      const next = waiting.peek();
      if (!(next instanceof SyncJob && next.handle === this.handle)) break;
      this.others.push(waiting.shift());
    }
    const { lane } = this.handle;
    if (!lane?.busy) return this;
    lane.waiting.push(this);
    return null;
  }

  /** @param {Slot} slot */
  encode(slot) {
    slot.inputLength = 0;
    return native.OP.SYNC;
  }

  /** @param {Slot} slot @param {number} status */
  finish(slot, status) {
    if (status !== STATUS.OK) throw native.failure(status, slot);
    this.done();
  }

  done() {
    this.resolve(undefined);
    for (const job of this.others) job.resolve(undefined);
  }

  /** @param {unknown} error @override */
  fail(error) {
    this.reject(error);
    for (const job of this.others) job.reject(error);
  }
}

/**
 * Moves a write, and those of the same store right behind it, to the store's lane; gives the lane if it is
 * not on its way already.
 * @param {PutJob | BulkJob} first
 * @param {Fifo} waiting
 */
function admitWrite(first, waiting) {
  const { handle } = first;
  const lane = (handle.lane ??= new WriteLane(handle));
  lane.waiting.push(first);
  for (;;) {
    const next = waiting.peek();
    if (!(next instanceof PutJob || next instanceof BulkJob) || next.handle !== handle) break;
    lane.waiting.push(waiting.shift());
  }
  if (lane.busy) return null;
  lane.busy = true;
  return lane;
}

/** The writes of a store that wait for each other: one job of the gate for as long as there are any. */
export class WriteLane {
  /** @param {Handle} handle */
  constructor(handle) {
    this.handle = handle;
    this.waiting = new Fifo();
    this.busy = false;
    /** @type {(PutJob | BulkJob | SyncJob)[]} */
    this.current = [];
  }

  /** @returns {any} */
  admit() {
    return this;
  }

  /** @param {Slot} slot */
  encode(slot) {
    const first = this.waiting.shift();
    this.current = [first];
    if (first instanceof SyncJob) return first.encode(slot);
    if (first instanceof BulkJob) {
      slot.setInput(first.frames, first.length);
      return native.OP.WRITE;
    }
    slot.inputLength = 0;
    wire.addWrite(slot, wire.PUT, first.key, first.value);
    while (
      this.waiting.peek() instanceof PutJob &&
      slot.inputLength + this.waiting.peek().size <= SHARED_BYTES
    ) {
      const next = this.waiting.shift();
      this.current.push(next);
      wire.addWrite(slot, wire.PUT, next.key, next.value);
    }
    return native.OP.WRITE;
  }

  /** @param {Slot} slot @param {number} status @param {Call} call */
  finish(slot, status, call) {
    const done = this.current;
    this.current = [];
    const error = status === STATUS.OK ? null : native.failure(status, slot);
    for (const job of done) {
      if (error) job.fail(error);
      else job.done();
    }
    slot.trim();
    for (const job of done) if (job instanceof BulkJob) giveBack(job.frames);
    if (this.waiting.length > 0) call.again(this.encode(slot));
    else this.busy = false;
  }

  /** Nothing of the store can be written any more. @param {unknown} error */
  fail(error) {
    this.busy = false;
    const all = [...this.current, ...this.waiting.remove(() => true)];
    this.current = [];
    for (const job of all) job.fail(error);
  }

  /** The store is being closed: what is not in flight is refused. */
  cancel() {
    for (const job of this.waiting.remove(() => true)) job.fail(closed());
  }
}

/**
 * Whether a write may be tried within the call: nothing is queued, and no write of the store is on its way
 * that has to come before it.
 * @param {Handle} handle @param {number} size
 */
const mayTry = (handle, size) => gate.clear && !handle.lane?.busy && size <= SMALL;

/**
 * Makes a write within the call; false where that could block.
 * @param {Handle} handle @param {number} op @param {Slot} slot holds the request
 */
function tryNow(handle, op, slot) {
  const status = handle.run(op, native.AT_HAND, slot);
  slot.trim();
  if (status === STATUS.OK) return true;
  if (status !== STATUS.WOULD_BLOCK) throw native.failure(status, slot);
  return false;
}

/**
 * @param {object} db @param {Handle} handle @param {string | Uint8Array} key @param {string | Uint8Array}
 * value
 * @returns {Promise<void>}
 */
export function writeOne(db, handle, key, value) {
  if (mayTry(handle, value.length)) {
    const slot = native.syncSlot();
    slot.inputLength = 0;
    wire.addWrite(slot, wire.PUT, key, value);
    if (tryNow(handle, native.OP.WRITE, slot)) return Promise.resolve();
  }
  return queued(new PutJob(db, handle, own(key), own(value)));
}

/**
 * @param {object} db @param {Handle} handle @param {import("./slot.js").Request} request @param {number}
 * count
 * @returns {Promise<number>}
 */
export function writeBatch(db, handle, request, count) {
  if (mayTry(handle, request.inputLength)) {
    const slot = native.syncSlot();
    slot.setInput(request.input, request.inputLength);
    if (tryNow(handle, native.OP.WRITE, slot)) return Promise.resolve(count);
  }
  return queued(new BulkJob(db, handle, request.input, request.inputLength, count));
}

/** @param {object} db @param {Handle} handle @returns {Promise<void>} */
export function sync(db, handle) {
  if (mayTry(handle, 0)) {
    const slot = native.syncSlot();
    slot.inputLength = 0;
    if (tryNow(handle, native.OP.SYNC, slot)) return Promise.resolve();
  }
  return queued(new SyncJob(db, handle));
}
