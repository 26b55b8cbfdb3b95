// @ts-check

/**
 * iterate: a walk through keys or records that fetches pages as it goes, all from the state that the store
 * has when the first one is fetched. It holds one page; the store's state is held until the walk ends: at
 * its end, by break, return or throw, when it is collected, or with the store.
 */

import * as native from "./native.js";
import * as wire from "./wire.js";
import { PageJob, readPage } from "./scan.js";
import { queued, Failed, failed } from "./jobs.js";
import { STATUS, closed } from "./errors.js";
import { gate } from "./gate.js";

/** @typedef {import('./handle.js').Handle} Handle */

/**
 * Bytes of the first page that is fetched off the loop, and of the others: often only the first entry is
 * wanted.
 */
const FIRST_PAGE = 16 << 10;
const PAGE = 128 << 10;

/** The scan of a walk that was collected. */
const registry = new FinalizationRegistry(
  (/** @type {{handle: Handle, low: number, high: number}} */ scan) => {
    scan.handle.closeScan(scan.low, scan.high);
  },
);

export class ScanIterator {
  #db;
  #range;
  #options;
  #records;
  /** The native scan; 0 and 0: none. */
  #scan;
  #begun = false;
  #ended = false;
  /** @type {any[]} */
  #entries = [];
  #next = 0;
  /** The newest call of next or return that has not come back. @type {Promise<any> | null} */
  #busy = null;

  /**
   * @param {object} db @param {Handle} handle @param {import('./args.js').Range} range
   * @param {import('./args.js').ScanOptions} options @param {boolean} records
   */
  constructor(db, handle, range, options, records) {
    this.#db = db;
    this.#range = range;
    this.#options = options;
    this.#records = records;
    this.#scan = { handle, low: 0, high: 0 };
    if (options.limit === 0) this.#ended = true;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<any, any>>} */
  next() {
    if (this.#busy === null && this.#next < this.#entries.length && this.#scan.handle.open) {
      const value = this.#entries[this.#next];
      if (!(value instanceof Failed)) {
        this.#next++;
        return Promise.resolve({ value, done: false });
      }
    }
    return this.#inTurn(() => this.#advance());
  }

  /** @param {any} [value] @returns {Promise<IteratorResult<any, any>>} */
  return(value) {
    return this.#inTurn(() => {
      this.#end();
      return { value, done: true };
    });
  }

  /** @param {any} error @returns {Promise<IteratorResult<any, any>>} */
  throw(error) {
    return this.#inTurn(() => {
      this.#end();
      throw error;
    });
  }

  /** Calls that overlap are answered in order. @param {() => any} step */
  async #inTurn(step) {
    const before = this.#busy;
    /** @type {() => void} */
    let done = () => {};
    const mine = new Promise((resolve) => {
      done = () => resolve(undefined);
    });
    this.#busy = mine;
    try {
      if (before) await before;
      return await step();
    } finally {
      done();
      if (this.#busy === mine) this.#busy = null;
    }
  }

  async #advance() {
    while (!this.#ended) {
      if (!this.#scan.handle.open) {
        this.#end();
        throw closed();
      }
      if (this.#next < this.#entries.length) {
        const value = this.#entries[this.#next++];
        if (!(value instanceof Failed)) return { value, done: false };
        this.#end();
        throw value.error;
      }
      if (this.#begun && this.#scan.low === 0 && this.#scan.high === 0) break;
      try {
        await this.#fetch();
      } catch (error) {
        this.#end();
        throw error;
      }
    }
    this.#end();
    return { value: undefined, done: true };
  }

  #end() {
    this.#ended = true;
    this.#entries = [];
    this.#next = 0;
    const { handle, low, high } = this.#scan;
    this.#setScan(0, 0);
    handle.closeScan(low, high);
  }

  /** @param {number} low @param {number} high */
  #setScan(low, high) {
    const had = this.#scan.low !== 0 || this.#scan.high !== 0;
    this.#scan.low = low;
    this.#scan.high = high;
    const has = low !== 0 || high !== 0;
    if (has && !had) registry.register(this, this.#scan, this.#scan);
    else if (had && !has) registry.unregister(this.#scan);
  }

  /** Gets the next page, in this call where it is at hand. @returns {Promise<void> | void} */
  #fetch() {
    if (gate.clear && this.#fetchNow()) return;
    const { handle, low, high } = this.#scan;
    const size = this.#begun ? PAGE : FIRST_PAGE;
    this.#begun = true;
    const job = new PageJob(this.#db, handle, this.#range, this.#options, this.#records, low, high, size);
    return queued(job).then((answer) => this.#take(answer.page, answer.low, answer.high));
  }

  #fetchNow() {
    const { handle, low, high } = this.#scan;
    const slot = native.syncSlot();
    // Keys are in RAM, so a page of them is at hand. A page of records is where it is all of them.
    if (this.#records && this.#begun) return false;
    if (this.#begun) wire.writeScanNumber(slot, low, high);
    else wire.writeScan(slot, this.#range, this.#options, this.#records);
    const op = this.#begun ? native.OP.SCAN_NEXT : native.OP.SCAN;
    const status = handle.run(op, this.#records ? native.AT_HAND : 0, slot);
    slot.trim();
    if (status === STATUS.WOULD_BLOCK || status === STATUS.SHORT_BUFFER) return false;
    if (status !== STATUS.OK) throw native.failure(status, slot);
    this.#begun = true;
    this.#take(wire.pageOf(slot), slot.scanLow, slot.scanHigh);
    return true;
  }

  /** @param {wire.Page} page @param {number} low @param {number} high */
  #take(page, low, high) {
    this.#setScan(low, high);
    this.#next = 0;
    this.#entries = readPage(page, this.#options, this.#records, [], failed, this.#scan.handle.shapes);
  }
}

const dispose = Symbol.asyncDispose;
if (dispose) {
  Object.defineProperty(ScanIterator.prototype, dispose, {
    /** @this {ScanIterator} */
    async value() {
      await this.return();
    },
    configurable: true,
    writable: true,
  });
}
