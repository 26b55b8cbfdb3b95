// @ts-check

/**
 * gate: at most 200 calls of this JavaScript environment are with libuv's threads; the rest waits here,
 * strictly first in, first out.
 *
 * koffi has places for 256 async calls in an environment, shared with everybody who uses it. Where it has
 * none for us all the same, the call is tried again when one of ours comes back, or, if none of ours is out,
 * in a moment: that timer is the only one, and the only thing that keeps the event loop alive without a call
 * in flight.
 */

import * as native from "./native.js";
import { closed } from "./errors.js";

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./handle.js').Handle} Handle */

const MOST_IN_FLIGHT = 200;
const MOST_IDLE_SLOTS = 64;
const RETRY_MS = 5;

/**
 * What waits.
 * @typedef {object} Waiting
 * @property {Handle} handle
 * @property {(waiting: Fifo) => Job | null} admit its turn has come: says what is to be begun, perhaps
 * together
 *   with jobs that wait right behind it; null: another job does it
 * @property {(error: unknown) => void} fail
 */

/**
 * Something to be done off the loop, in one call or several, one after the other.
 * @typedef {object} Job
 * @property {Handle} handle
 * @property {(slot: Slot) => number} encode writes the request and gives the operation
 * @property {(slot: Slot, status: number, call: Call) => void} finish takes an answer; call.again() goes on
 * @property {(error: unknown) => void} fail
 */

/** First in, first out, in constant time. */
export class Fifo {
  /** @type {any[]} */
  #items = [];
  #head = 0;

  get length() {
    return this.#items.length - this.#head;
  }

  /** @param {any} item */
  push(item) {
    this.#items.push(item);
  }

  peek() {
    return this.#items[this.#head];
  }

  shift() {
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes out what `test` picks. @param {(item: any) => boolean} test @returns {any[]} */
  remove(test) {
    /** @type {any[]} */
    const removed = [];
    /** @type {any[]} */
    const kept = [];
    for (let i = this.#head; i < this.#items.length; i++) {
      (test(this.#items[i]) ? removed : kept).push(this.#items[i]);
    }
    this.#items = kept;
    this.#head = 0;
    return removed;
  }
}

/** A job that has a slot. */
export class Call {
  /** @param {Gate} gate @param {Job} job @param {Slot} slot */
  constructor(gate, job, slot) {
    this.gate = gate;
    this.job = job;
    this.slot = slot;
    this.out = false;
    this.op = 0;
  }

  /** Makes the job's next call, with the request that is in the slot. @param {number} op */
  again(op) {
    this.op = op;
    this.out = true;
    this.gate.issue(this);
  }
}

class Gate {
  #waiting = new Fifo();
  /** Calls that koffi had no place for. @type {Call[]} */
  #refused = [];
  #inFlight = 0;
  /** @type {Slot[]} */
  #slots = [];
  /** @type {NodeJS.Timeout | null} */
  #timer = null;

  /** Nothing is queued: answers at hand may be given at once. */
  get clear() {
    return this.#waiting.length === 0 && this.#refused.length === 0;
  }

  get inFlight() {
    return this.#inFlight;
  }
  get queued() {
    return this.#waiting.length + this.#refused.length;
  }

  /** Begins a job now, or when its turn comes. @param {Waiting} job */
  submit(job) {
    if (this.clear && this.#inFlight < MOST_IN_FLIGHT) this.#begin(job);
    else this.#waiting.push(job);
  }

  /** Rejects what waits for a handle that is being closed. @param {Handle} handle */
  cancel(handle) {
    for (const job of this.#waiting.remove((/** @type {Waiting} */ job) => job.handle === handle))
      job.fail(closed());
  }

  /** @param {Waiting} first */
  #begin(first) {
    const job = first.admit(this.#waiting);
    if (job === null) return;
    const slot = this.#slots.pop() ?? native.newSlot();
    const call = new Call(this, job, slot);
    try {
      call.again(job.encode(slot));
    } catch (error) {
      job.fail(error);
      this.#release(slot);
    }
  }

  /** For Call alone. @param {Call} call */
  issue(call) {
    const { job, slot, op } = call;
    try {
      job.handle.start(op, slot, (error, status) => this.#back(call, error, status));
      this.#inFlight++;
    } catch (error) {
      if (native.isCapError(error)) {
        this.#refused.push(call);
        if (this.#inFlight === 0) this.#retryLater();
        return;
      }
      call.out = false;
      throw error;
    }
  }

  /** @param {Call} call @param {Error | null} error @param {number} status */
  #back(call, error, status) {
    const { job, slot } = call;
    this.#inFlight--;
    call.out = false;
    try {
      if (error) job.fail(error);
      else job.finish(slot, status, call);
    } catch (problem) {
      job.fail(problem);
    }
    job.handle.returned();
    if (!call.out) this.#release(slot);
    this.#pump();
  }

  #pump() {
    while (this.#refused.length > 0 && this.#inFlight < MOST_IN_FLIGHT) {
      const before = this.#refused.length;
      const call = /** @type {Call} */ (this.#refused.shift());
      try {
        this.issue(call);
      } catch (error) {
        call.job.fail(error);
        this.#release(call.slot);
      }
      if (this.#refused.length === before) {
        this.#refused.unshift(/** @type {Call} */ (this.#refused.pop()));
        break;
      }
    }
    while (this.#waiting.length > 0 && this.#refused.length === 0 && this.#inFlight < MOST_IN_FLIGHT) {
      this.#begin(this.#waiting.shift());
    }
  }

  #retryLater() {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#pump();
    }, RETRY_MS);
  }

  /** @param {Slot} slot */
  #release(slot) {
    slot.trim();
    if (this.#slots.length < MOST_IDLE_SLOTS) this.#slots.push(slot);
  }
}

/** The gate of this environment. */
export const gate = new Gate();
