// @ts-check

/**
 * reads: gets, alone and in groups, and the calls that have one small answer.
 */

import * as native from "./native.js";
import * as wire from "./wire.js";
import { own } from "./bytes.js";
import { STATUS } from "./errors.js";
import { gate } from "./gate.js";
import { Job, Failed, failed, queued } from "./jobs.js";
import { makeRoom, takeFlag, takeValue, takeValues, writeKeys } from "./requests.js";

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./handle.js').Handle} Handle */
/** @typedef {import('./gate.js').Fifo} Fifo */
/** @typedef {import('./gate.js').Call} Call */
/** @typedef {import('./args.js').As} As */

/** Gets that share a call, at most; and the most bytes of values that they may share a buffer for. */
const GROUP_MOST = 256;
const GROUP_BYTES = 16 << 20;

class GetJob extends Job {
  /** @param {object} db @param {Handle} handle @param {string | Uint8Array} key @param {As} as */
  constructor(db, handle, key, as) {
    super(db, handle);
    this.key = key;
    this.as = as;
  }

  /**
   * Gets of the same store that wait right behind this one share its call.
   * @param {Fifo} waiting
   * @override
   */
  admit(waiting) {
    if (!this.#joins(waiting.peek())) return this;
    const jobs = [this];
    while (jobs.length < GROUP_MOST && this.#joins(waiting.peek())) jobs.push(waiting.shift());
    return new GetGroup(jobs);
  }

  /** @param {unknown} job */
  #joins(job) {
    return job instanceof GetJob && job.handle === this.handle;
  }

  /** @param {Slot} slot */
  encode(slot) {
    wire.writeKey(slot, this.key);
    return native.OP.GET;
  }

  /** @param {Slot} slot @param {number} status @param {Call} call */
  finish(slot, status, call) {
    const value = takeValue(slot, status, this.as, this.handle.shapes);
    if (value === undefined) call.again(native.OP.GET);
    else this.resolve(value);
  }
}

/** Several gets in one call. Each has its own failure. */
class GetGroup {
  /** @param {GetJob[]} jobs */
  constructor(jobs) {
    this.jobs = jobs;
    this.handle = jobs[0].handle;
  }

  /** @returns {any} */
  admit() {
    return this;
  }

  /** @param {Slot} slot */
  encode(slot) {
    slot.inputLength = 0;
    for (const job of this.jobs) wire.addKey(slot, job.key);
    return native.OP.GET_MANY;
  }

  /** @param {Slot} slot @param {number} status @param {Call} call */
  finish(slot, status, call) {
    if (status === STATUS.OK) return this.#give(slot);
    if (status === STATUS.SHORT_BUFFER && (slot.needed <= GROUP_BYTES || this.jobs.length === 1)) {
      makeRoom(slot);
      return call.again(native.OP.GET_MANY);
    }
    const item = slot.errorItem;
    if (status === STATUS.SHORT_BUFFER) {
      // Too much for one buffer: the first half now, the rest when that is done.
      this.#split(call);
    } else if (item >= 0 && item < this.jobs.length) {
      this.jobs[item].reject(native.failure(status, slot));
      this.jobs.splice(item, 1);
      if (this.jobs.length > 0) call.again(this.encode(slot));
    } else {
      this.fail(native.failure(status, slot));
    }
  }

  /** @param {Call} call */
  #split(call) {
    const later = new GetGroup(this.jobs.splice(this.jobs.length >> 1));
    call.again(this.encode(call.slot));
    gate.submit(later);
  }

  /** @param {Slot} slot */
  #give(slot) {
    const { jobs } = this;
    const page = wire.pageOf(slot);
    const values = jobs.every((job) => job.as === "json")
      ? wire.readValues(page, "json", failed, this.handle.shapes)
      : wire.readEach(page, (i) => jobs[i].as, failed);
    for (let i = 0; i < jobs.length; i++) {
      if (values[i] instanceof Failed) jobs[i].reject(values[i].error);
      else jobs[i].resolve(values[i]);
    }
  }

  /** @param {unknown} error */
  fail(error) {
    for (const job of this.jobs) job.fail(error);
  }
}

/** A call whose request is small and whose answer is read in one step. */
class CallJob extends Job {
  /**
   * @param {object} db
   * @param {Handle} handle
   * @param {number} op
   * @param {(slot: Slot) => void} write
   * @param {(slot: Slot, status: number) => any} read gives the answer; undefined: the call is to be
   * repeated, with
   *   the room that it now has
   */
  constructor(db, handle, op, write, read) {
    super(db, handle);
    this.op = op;
    this.write = write;
    this.read = read;
  }

  /** @param {Slot} slot */
  encode(slot) {
    this.write(slot);
    return this.op;
  }

  /** @param {Slot} slot @param {number} status @param {Call} call */
  finish(slot, status, call) {
    const answer = this.read(slot, status);
    if (answer === undefined) call.again(this.op);
    else this.resolve(answer);
  }
}

/** Lists of more keys are not tried within the call. */
const SMALL_LIST = 1000;

/**
 * @param {object} db
 * @param {Handle} handle
 * @param {string | Uint8Array} key
 * @param {As} as
 * @returns {Promise<any>}
 */
export function getOne(db, handle, key, as) {
  if (gate.clear) {
    const slot = native.syncSlot();
    wire.writeKey(slot, key);
    const status = handle.run(native.OP.GET, native.AT_HAND | handle.shapes.flag, slot);
    if (status !== STATUS.WOULD_BLOCK && status !== STATUS.SHORT_BUFFER) {
      return Promise.resolve(takeValue(slot, status, as, handle.shapes));
    }
  }
  return queued(new GetJob(db, handle, own(key), as));
}

/**
 * GET as JSON of a key that is a short text, in the shortest way: nothing is checked before, as all that is
 * out of the ordinary (a key that is empty or not ASCII, an answer that is not at hand or too long, any error)
 * gives undefined, and is left to the ways above and below, which begin anew. Only once objects have shapes,
 * as else most answers are not what it is good at.
 * @param {Handle} handle @param {string} key @param {number} flags
 */
export function getShort(handle, key, flags) {
  const { shapes } = handle;
  if (shapes.flag === 0 || key.length > native.UNITS_MOST) return undefined;
  const slot = native.syncSlot();
  const text = handle.runUnits(native.OP.GET, native.FIELDS | flags, slot, key);
  if (text !== null) return shapes.valueOf(slot, text);
  const { status } = slot;
  return status === STATUS.OK || status === STATUS.NOT_FOUND
    ? takeValue(slot, status, "json", shapes)
    : undefined;
}

/** @param {Handle} handle @param {string | Uint8Array} key @param {As} as */
export function getOneSync(handle, key, as) {
  const slot = native.syncSlot();
  for (;;) {
    wire.writeKey(slot, key);
    const value = takeValue(slot, handle.run(native.OP.GET, handle.shapes.flag, slot), as, handle.shapes);
    if (value === undefined) continue; // with more room
    slot.trim();
    return value;
  }
}

/** HAS in the same way. @param {Handle} handle @param {string} key @returns {boolean | undefined} */
export function hasShort(handle, key) {
  if (key.length > native.UNITS_MOST) return undefined;
  const slot = native.syncSlot();
  handle.runUnits(native.OP.HAS, 0, slot, key);
  const { status } = slot;
  return status === STATUS.OK ? true : status === STATUS.NOT_FOUND ? false : undefined;
}

/** @param {Handle} handle @param {string | Uint8Array} key */
export function hasNow(handle, key) {
  const slot = native.syncSlot();
  wire.writeKey(slot, key);
  return takeFlag(slot, handle.run(native.OP.HAS, 0, slot));
}

/** @param {object} db @param {Handle} handle @param {string | Uint8Array} key @returns {Promise<boolean>} */
export function has(db, handle, key) {
  if (gate.clear) return Promise.resolve(hasNow(handle, key));
  const kept = own(key);
  return queued(new CallJob(db, handle, native.OP.HAS, (slot) => wire.writeKey(slot, kept), takeFlag));
}

/**
 * @param {object} db
 * @param {Handle} handle
 * @param {(string | Uint8Array)[]} keys
 * @param {As} as
 * @returns {Promise<any[]>}
 */
export function getMany(db, handle, keys, as) {
  if (gate.clear && keys.length <= SMALL_LIST) {
    const slot = native.syncSlot();
    writeKeys(slot, keys);
    const status = handle.run(native.OP.GET_MANY, native.AT_HAND, slot);
    const values = status === STATUS.WOULD_BLOCK ? undefined : takeValues(slot, status, as, handle.shapes);
    slot.trim();
    if (values !== undefined) return Promise.resolve(values);
  }
  const write = (/** @type {Slot} */ slot) => writeKeys(slot, keys);
  const read = (/** @type {Slot} */ slot, /** @type {number} */ status) =>
    takeValues(slot, status, as, handle.shapes);
  return queued(new CallJob(db, handle, native.OP.GET_MANY, write, read));
}

/** @param {Handle} handle @param {(string | Uint8Array)[]} keys @param {As} as @returns {any[]} */
export function getManySync(handle, keys, as) {
  const slot = native.syncSlot();
  writeKeys(slot, keys);
  for (;;) {
    const values = takeValues(slot, handle.run(native.OP.GET_MANY, 0, slot), as, handle.shapes);
    if (values === undefined) continue; // with more room
    slot.trim();
    return values;
  }
}

/**
 * A call whose answer is always at hand. `read` gives undefined where it needs more room, which it then has.
 * @param {object} db
 * @param {Handle} handle
 * @param {number} op
 * @param {(slot: Slot) => void} write
 * @param {(slot: Slot, status: number) => any} read
 * @returns {Promise<any>}
 */
export function small(db, handle, op, write, read) {
  if (!gate.clear) return queued(new CallJob(db, handle, op, write, read));
  const slot = native.syncSlot();
  for (;;) {
    write(slot);
    const answer = read(slot, handle.run(op, 0, slot));
    if (answer === undefined) continue; // with more room
    slot.trim();
    return Promise.resolve(answer);
  }
}

/**
 * A call that takes its time, so that it is never made within the method.
 * @param {object} db
 * @param {Handle} handle
 * @param {number} op
 * @param {(slot: Slot) => void} write
 * @param {(slot: Slot, status: number) => any} read
 * @returns {Promise<any>}
 */
export const long = (db, handle, op, write, read) => queued(new CallJob(db, handle, op, write, read));
