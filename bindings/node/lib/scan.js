// @ts-check

/**
 * scan: keys or records of a range, page by page, all from one state of the store.
 */

import * as native from "./native.js";
import * as wire from "./wire.js";
import { STATUS, closed } from "./errors.js";
import { gate } from "./gate.js";
import { Job, Failed, queued, raise } from "./jobs.js";
import { makeRoom } from "./requests.js";
import { memory } from "./slot.js";

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./handle.js').Handle} Handle */
/** @typedef {import('./gate.js').Call} Call */
/** @typedef {import('./args.js').Range} Range */
/** @typedef {import('./args.js').ScanOptions} ScanOptions */

/** Bytes of a page: what is read at once, and what is turned into JavaScript values at once. */
const PAGE_BYTES = 512 << 10;
const MOST_IDLE_PAGES = 4;

/** @type {Buffer[]} */
const idlePages = [];
const takePage = () => idlePages.pop() ?? memory(PAGE_BYTES);
/** @param {Buffer} page */
const givePage = (page) => {
  if (page.length === PAGE_BYTES && idlePages.length < MOST_IDLE_PAGES) idlePages.push(page);
};

/**
 * Appends what a page has to `into`: keys, or {key, value}.
 * @param {import('./wire.js').Page} page
 * @param {ScanOptions} options
 * @param {boolean} records
 * @param {any[]} into
 * @param {(error: unknown) => any} onError gives what stands for an entry whose value cannot be given
 * @param {import('./shapes.js').Shapes} shapes of the store that the page is from
 */
export function readPage(page, options, records, into, onError, shapes) {
  if (!records) return wire.readKeyPage(page, into);
  const keys = wire.readRecordKeys(page);
  const values = wire.readValues(page, options.as, onError, shapes);
  let next = wire.reserve(into, keys.length);
  for (let i = 0; i < keys.length; i++) {
    into[next++] = values[i] instanceof Failed ? values[i] : { key: keys[i], value: values[i] };
  }
  return into;
}

/** A whole scan: it has its slot from the first page to the last. */
class ScanJob extends Job {
  /** @type {any[]} */
  #results = [];
  #low = 0;
  #high = 0;
  #failed = false;

  /**
   * @param {object} db @param {Handle} handle @param {Range} range @param {ScanOptions} options
   * @param {boolean} records @param {number} size bytes that probably hold everything; 0: unknown
   */
  constructor(db, handle, range, options, records, size) {
    super(db, handle);
    this.range = range;
    this.options = options;
    this.records = records;
    this.size = size;
  }

  /** @param {Slot} slot */
  encode(slot) {
    wire.writeScan(slot, this.range, this.options, this.records);
    if (this.size > slot.output.length) slot.setOutput(takePage());
    return native.OP.SCAN;
  }

  /** @param {Slot} slot @param {number} status @param {Call} call */
  finish(slot, status, call) {
    if (this.#failed) return this.#close(slot);
    if (status === STATUS.SHORT_BUFFER) {
      makeRoom(slot);
      return call.again(call.op);
    }
    if (status !== STATUS.OK) {
      const error = native.failure(status, slot);
      this.#close(slot);
      throw error;
    }
    const page = wire.pageOf(slot);
    this.#low = slot.scanLow;
    this.#high = slot.scanHigh;
    const more = this.#low !== 0 || this.#high !== 0;
    if (more) {
      // The next page is fetched while this one is read.
      slot.setOutput(takePage());
      wire.writeScanNumber(slot, this.#low, this.#high);
      call.again(native.OP.SCAN_NEXT);
    }
    readPage(page, this.options, this.records, this.#results, raise, this.handle.shapes);
    givePage(page.memory);
    if (!more) this.resolve(this.#results);
  }

  /** @param {Slot} slot */
  #close(slot) {
    this.handle.closeScan(slot.scanLow, slot.scanHigh);
  }

  /** @param {unknown} error @override */
  fail(error) {
    this.#failed = true;
    this.#results = [];
    this.reject(error);
  }
}

/** One page of a scan that somebody walks through: {entries, low, high}. */
export class PageJob extends Job {
  /**
   * @param {object} db @param {Handle} handle @param {Range} range @param {ScanOptions} options
   * @param {boolean} records @param {number} low @param {number} high the scan; 0 and 0: a new one
   * @param {number} size bytes of the page
   */
  constructor(db, handle, range, options, records, low, high, size) {
    super(db, handle);
    this.range = range;
    this.options = options;
    this.records = records;
    this.low = low;
    this.high = high;
    this.size = size;
  }

  /** @param {Slot} slot */
  encode(slot) {
    slot.setOutput(memory(this.size));
    if (this.low === 0 && this.high === 0) {
      wire.writeScan(slot, this.range, this.options, this.records);
      return native.OP.SCAN;
    }
    wire.writeScanNumber(slot, this.low, this.high);
    return native.OP.SCAN_NEXT;
  }

  /** @param {Slot} slot @param {number} status @param {Call} call */
  finish(slot, status, call) {
    if (status === STATUS.SHORT_BUFFER) {
      makeRoom(slot);
      return call.again(call.op);
    }
    if (status !== STATUS.OK) throw native.failure(status, slot);
    this.resolve({ page: wire.pageOf(slot), low: slot.scanLow, high: slot.scanHigh });
    slot.trim();
  }
}

/**
 * Everything of a range.
 * @param {object} db
 * @param {Handle} handle
 * @param {Range} range
 * @param {ScanOptions} options
 * @param {boolean} records
 * @returns {Promise<any[]>}
 */
export function scanAll(db, handle, range, options, records) {
  if (!handle.open) throw closed();
  if (options.limit === 0) return Promise.resolve([]);
  let size = 0;
  if (gate.clear) {
    const slot = native.syncSlot();
    wire.writeScan(slot, range, options, records);
    const status = handle.run(native.OP.SCAN, native.AT_HAND, slot);
    slot.trim();
    if (status === STATUS.OK) {
      return Promise.resolve(readPage(wire.pageOf(slot), options, records, [], raise, handle.shapes));
    }
    if (status !== STATUS.WOULD_BLOCK && status !== STATUS.SHORT_BUFFER) throw native.failure(status, slot);
    size = slot.needed;
  }
  return queued(new ScanJob(db, handle, range, options, records, size));
}
