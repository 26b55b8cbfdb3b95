// @ts-check

/**
 * handle: one open store of this JavaScript environment and its life: open, closing, closed.
 *
 * The store's address is here and goes nowhere but into native.js. Invariants:
 *  H1. `open` is true until close: every new call is refused afterwards.
 *  H2. The native store is closed once, when `open` is false and no call is in flight. Until then the
 * address is
 *      good, so that what is in flight can finish (a scan its pages).
 *  H3. A handle never refers to the NteeDB that stands for it: that one can be collected, and then closes
 * this.
 */

import { resolve } from "node:path";
import * as native from "./native.js";
import { closed, NteeError, STATUS } from "./errors.js";
import * as wire from "./wire.js";
import { Shapes } from "./shapes.js";

/** @typedef {import('./slot.js').Slot} Slot */

/** All handles whose native store is there. @type {Set<Handle>} */
const live = new Set();

export class Handle {
  #pointer = 0;
  /** Its halves, as signed integers, for calls. */
  #low = 0;
  #high = 0;
  #inFlight = 0;
  #dropping = false;
  #dropped = false;
  /** @type {number | null} */
  #guard = null;
  #path;
  /** @type {() => void} */
  #resolve;
  /** @type {(error: unknown) => void} */
  #reject;

  /**
   * @param {string} path
   * @param {Parameters<typeof native.open>[1]} options
   */
  constructor(path, options) {
    this.#path = resolve(path);
    this.#pointer = native.open(path, options);
    this.#low = this.#pointer | 0;
    this.#high = Math.floor(this.#pointer / 4294967296) | 0;
    this.#guard = native.guard(this.#pointer);
    this.open = true;
    /** @type {import('./writes.js').WriteLane | null} the writes that wait for each other */
    this.lane = null;
    this.shapes = new Shapes(this);
    let resolveClosed = () => {};
    let rejectClosed = (/** @type {unknown} */ _error) => {};
    /** @type {Promise<void>} */
    this.closed = new Promise((yes, no) => {
      resolveClosed = yes;
      rejectClosed = no;
    });
    this.closed.catch(() => {}); // nobody has to look at it
    this.#resolve = resolveClosed;
    this.#reject = rejectClosed;
    live.add(this);
    watchExit();
  }

  /**
   * Makes a call and waits for it.
   * @param {number} op @param {number} flags @param {Slot} slot
   */
  run(op, flags, slot) {
    if (!this.open) throw closed();
    return native.run(this.#low, this.#high, op, flags, slot);
  }

  /**
   * The same of GET and HAS, with the key as it is; see native.runUnits.
   * @param {number} op @param {number} flags @param {Slot} slot @param {string} key
   */
  runUnits(op, flags, slot, key) {
    if (!this.open) throw closed();
    return native.runUnits(this.#low, this.#high, op, flags, slot, key);
  }

  /**
   * A call about bytes that came from the store: good as long as the native store is there.
   * @param {number} op @param {Slot} slot
   * @returns {number} status
   */
  ask(op, slot) {
    return this.#pointer === 0 ? STATUS.CLOSED : native.run(this.#low, this.#high, op, 0, slot);
  }

  /**
   * Hands a call to a libuv thread. The gate does that; it calls returned() once for each.
   * @param {number} op @param {Slot} slot @param {import('./native.js').Callback} callback
   */
  start(op, slot, callback) {
    if (this.#pointer === 0) throw closed();
    native.start(this.#low, this.#high, op, slot, callback);
    this.#inFlight++;
  }

  returned() {
    if (--this.#inFlight === 0 && !this.open) this.#finishLater();
  }

  /**
   * Ends a scan; nothing happens where it has ended, or the store is closed.
   * @param {number} low
   * @param {number} high
   */
  closeScan(low, high) {
    if (this.#pointer === 0 || (low === 0 && high === 0)) return;
    const slot = native.syncSlot();
    wire.writeScanNumber(slot, low, high);
    native.run(this.#low, this.#high, native.OP.SCAN_CLOSE, 0, slot);
  }

  /**
   * Refuses new calls. finish() must follow.
   * @param {boolean} drop
   * @returns {boolean} whether it was open
   */
  shut(drop) {
    if (drop) this.#dropping = true;
    const was = this.open;
    this.open = false;
    return was;
  }

  /** Closes the native store, at once where nothing is in flight; else the last call to return will. */
  finish() {
    if (this.#pointer !== 0 && this.#inFlight === 0) {
      const pointer = this.#forget();
      const error = native.close(pointer, this.#dropping);
      this.#dropped = this.#dropping;
      this.#settle(error);
      if (error) throw error;
    } else if (this.#pointer === 0 && !live.has(this)) {
      this.#destroy();
    }
  }

  /** The same for a handle that nobody has any more. */
  abandon() {
    this.shut(false);
    if (this.#pointer !== 0 && this.#inFlight === 0) this.#finishLater();
  }

  /**
   * Makes the store durable, or closes it, while the process exits.
   * @param {boolean} last nobody comes after us
   */
  exit(last) {
    if (this.#pointer === 0 || this.#inFlight > 0) return;
    if (last) {
      this.open = false;
      this.#settle(native.close(this.#forget(), this.#dropping));
    } else {
      const slot = native.syncSlot();
      slot.inputLength = 0;
      native.run(this.#low, this.#high, native.OP.SYNC, 0, slot);
    }
  }

  /** @returns {number} the address; from now on nobody has it */
  #forget() {
    const pointer = this.#pointer;
    native.unguard(this.#guard);
    this.#pointer = 0;
    return pointer;
  }

  #finishLater() {
    const drop = this.#dropping;
    const pointer = this.#forget();
    /** @param {NteeError | null} error */
    const done = (error) => {
      this.#dropped = drop;
      let problem = error;
      try {
        if (this.#dropping && !drop) this.#destroy();
      } catch (later) {
        problem ??= /** @type {NteeError} */ (later);
      }
      this.#settle(problem);
    };
    try {
      native.closeAsync(pointer, drop, done);
    } catch {
      // koffi has no place for an async call: this one waits.
      done(native.close(pointer, drop));
    }
  }

  /** drop() after close(): the store is there, but not ours any more. */
  #destroy() {
    if (!this.#dropping || this.#dropped) return;
    native.destroy(this.#path);
    this.#dropped = true;
  }

  /** @param {unknown} error */
  #settle(error) {
    live.delete(this);
    if (error) this.#reject(error);
    else this.#resolve();
  }
}

let watching = false;

/**
 * At exit the stores are closed, or at least made durable where another listener, that may still write, comes
 * after this one. A call in flight is left alone.
 */
function watchExit() {
  if (watching) return;
  watching = true;
  process.on("exit", atExit);
}

function atExit() {
  const last = process.listeners("exit").at(-1) === atExit;
  for (const handle of live) handle.exit(last);
}
