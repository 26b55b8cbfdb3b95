// @ts-check

/**
 * db: NteeDB, the one class that users see.
 *
 * Every method goes the same way: is the store open; are the arguments right, and what are they (this may
 * run the user's code); then the call, within this call where it may be, else through the gate. A method
 * that returns a promise throws only NTEE_CLOSED; everything else rejects.
 */

import * as args from "./args.js";
import * as native from "./native.js";
import * as wire from "./wire.js";
import { Handle } from "./handle.js";
import { STATUS, closed, invalid } from "./errors.js";
import { gate } from "./gate.js";
import { ScanIterator } from "./iterate.js";
import { getOne, getOneSync, getShort, has, hasNow, hasShort } from "./reads.js";
import { getMany, getManySync, long, small } from "./reads.js";
import { takeDetails, takeDifferences, takeStats, writeVerify } from "./report.js";
import { batchRequest, keyList, takeCount, writeNothing } from "./requests.js";
import { scanAll } from "./scan.js";
import { addValue } from "./writers.js";
import { encodeValue } from "./values.js";
import { writeOne, writeBatch, sync } from "./writes.js";

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./args.js').As} As */
/** @typedef {import('./args.js').Range} Range */

const { OP } = native;

const TOKEN = Symbol("only NteeDB.open makes these");

/** Closes what nobody has any more. */
const registry = new FinalizationRegistry((/** @type {Handle} */ handle) => handle.abandon());

export class NteeDB {
  /** @type {Handle} */
  #handle;

  /** @param {symbol} token @param {Handle} handle */
  constructor(token, handle) {
    if (token !== TOKEN) throw invalid("a store is opened with NteeDB.open(dir, options)");
    this.#handle = handle;
    registry.register(this, handle, handle);
  }

  // ---- The store's life ----

  /** @param {string} dir @param {object} [options] */
  static open(dir, options) {
    const path = args.path(dir, "the directory");
    return new NteeDB(TOKEN, new Handle(path, args.openOptions(options)));
  }

  /** @param {string} dir */
  static destroy(dir) {
    native.destroy(args.path(dir, "the directory"));
  }

  close() {
    this.#shut(false);
  }

  drop() {
    this.#shut(true);
  }

  get closed() {
    return this.#handle.closed;
  }

  /** @param {boolean} drop */
  #shut(drop) {
    const handle = this.#handle;
    if (handle.shut(drop)) {
      registry.unregister(handle);
      handle.lane?.cancel();
      gate.cancel(handle);
    }
    handle.finish();
  }

  /** @returns {Handle} */
  #live() {
    if (!this.#handle.open) throw closed();
    return this.#handle;
  }

  // ---- One key ----

  /**
   * @param {string | Uint8Array} key
   * @param {unknown} value
   * @param {unknown} [ix]
   * @param {unknown} [ttlMs]
   */
  put(key, value, ix, ttlMs) {
    this.#write(wire.PUT, key, value, ix, ttlMs);
  }

  /**
   * @param {string | Uint8Array} key
   * @param {unknown} value
   * @param {unknown} [ix]
   * @param {unknown} [ttlMs]
   */
  putIfAbsent(key, value, ix, ttlMs) {
    return this.#write(wire.PUT_IF_ABSENT, key, value, ix, ttlMs) > 0;
  }

  /** @param {string | Uint8Array} key */
  delete(key) {
    return this.#write(wire.DELETE, key, "", undefined, undefined) > 0;
  }

  /**
   * @param {number} type @param {unknown} key @param {unknown} value @param {unknown} ix @param {unknown}
   * ttlMs
   * @returns {number} how many records it changed
   */
  #write(type, key, value, ix, ttlMs) {
    const handle = this.#live();
    if (ix !== undefined || ttlMs !== undefined) args.noIndexNoTtl(ix, ttlMs);
    const name = args.key(key);
    const slot = native.syncSlot();
    addValue(slot, type, name, value, true);
    const status = handle.run(OP.WRITE, 0, slot);
    slot.trim();
    if (status === STATUS.OK) return slot.count;
    if (status === STATUS.EXISTS) return 0;
    throw native.failure(status, slot);
  }

  /**
   * @param {string | Uint8Array} key
   * @param {unknown} value
   * @param {unknown} [ix]
   * @param {unknown} [ttlMs]
   */
  putAsync(key, value, ix, ttlMs) {
    const handle = this.#live();
    try {
      if (ix !== undefined || ttlMs !== undefined) args.noIndexNoTtl(ix, ttlMs);
      const name = args.key(key);
      const bytes = encodeValue(value);
      return writeOne(this, handle, name, bytes);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @param {string | Uint8Array} key @param {{as?: As}} [options] */
  get(key, options) {
    const handle = this.#live();
    try {
      if (options === undefined && typeof key === "string" && gate.clear) {
        const value = getShort(handle, key, native.AT_HAND);
        if (value !== undefined) return Promise.resolve(value);
      }
      const as = options === undefined ? "json" : args.readOptions(options);
      const name = args.key(key);
      return getOne(this, handle, name, as);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @param {string | Uint8Array} key @param {{as?: As}} [options] */
  getSync(key, options) {
    const handle = this.#live();
    if (options === undefined && typeof key === "string") {
      const value = getShort(handle, key, 0);
      if (value !== undefined) return value;
    }
    const as = options === undefined ? "json" : args.readOptions(options);
    return getOneSync(handle, args.key(key), as);
  }

  /** @param {string | Uint8Array} key */
  has(key) {
    const handle = this.#live();
    try {
      if (typeof key === "string" && gate.clear) {
        const there = hasShort(handle, key);
        if (there !== undefined) return Promise.resolve(there);
      }
      return has(this, handle, args.key(key));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @param {string | Uint8Array} key */
  hasSync(key) {
    const handle = this.#live();
    if (typeof key === "string") {
      const there = hasShort(handle, key);
      if (there !== undefined) return there;
    }
    return hasNow(handle, args.key(key));
  }

  // ---- Many keys ----

  /** @param {(string | Uint8Array)[]} keys @param {{as?: As}} [options] */
  getMany(keys, options) {
    const handle = this.#live();
    try {
      const as = args.readOptions(options);
      const names = keyList(keys);
      return getMany(this, handle, names, as);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @param {(string | Uint8Array)[]} keys @param {{as?: As}} [options] */
  getManySync(keys, options) {
    const handle = this.#live();
    const as = args.readOptions(options);
    return getManySync(handle, keyList(keys), as);
  }

  /** @param {object[]} items */
  putMany(items) {
    return this.#bulk(items, false);
  }

  /** @param {object[]} operations */
  batch(operations) {
    return this.#bulk(operations, true);
  }

  /** @param {unknown} items @param {boolean} typed @returns {Promise<number>} */
  #bulk(items, typed) {
    const handle = this.#live();
    try {
      const { request, length } = batchRequest(items, typed);
      return writeBatch(this, handle, request, length);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  // ---- Ranges ----

  /** @param {string | Uint8Array} prefix @param {object} [options] */
  prefixScan(prefix, options) {
    return this.#scan(args.prefix, prefix, options, false);
  }

  /** @param {object} range @param {object} [options] */
  rangeScan(range, options) {
    return this.#scan(args.range, range, options, false);
  }

  /** @param {string | Uint8Array} prefix @param {object} [options] */
  prefixScanRecords(prefix, options) {
    return this.#scan(args.prefix, prefix, options, true);
  }

  /** @param {object} range @param {object} [options] */
  rangeScanRecords(range, options) {
    return this.#scan(args.range, range, options, true);
  }

  /**
   * @param {(value: unknown) => Range} check @param {unknown} where @param {unknown} given @param {boolean}
   * records
   * @returns {Promise<any[]>}
   */
  #scan(check, where, given, records) {
    const handle = this.#live();
    try {
      const range = check(where);
      const options = args.scanOptions(given, records);
      return scanAll(this, handle, range, options, records);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @param {string | Uint8Array | object} [where] @param {object} [options] */
  entries(where, options) {
    const handle = this.#live();
    return new ScanIterator(this, handle, args.prefixOrRange(where), args.scanOptions(options, true), true);
  }

  /** @param {string | Uint8Array | object} [where] @param {object} [options] */
  keys(where, options) {
    const handle = this.#live();
    return new ScanIterator(this, handle, args.prefixOrRange(where), args.scanOptions(options, false), false);
  }

  /** @param {string | Uint8Array | object} [where] */
  count(where) {
    const handle = this.#live();
    try {
      const range = args.prefixOrRange(where);
      return small(this, handle, OP.COUNT, (slot) => wire.writeScan(slot, range, null, false), takeCount);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  // ---- The store as a whole ----

  stats() {
    const handle = this.#live();
    try {
      return small(this, handle, OP.STATS, writeNothing, takeStats);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  details() {
    const handle = this.#live();
    try {
      return small(this, handle, OP.DETAILS, writeNothing, takeDetails);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  verify() {
    const handle = this.#live();
    try {
      return long(this, handle, OP.VERIFY, writeVerify, takeDifferences);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  sync() {
    const handle = this.#live();
    try {
      return sync(this, handle);
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

if (Symbol.dispose) {
  Object.defineProperty(NteeDB.prototype, Symbol.dispose, {
    /** @this {NteeDB} */
    value() {
      this.close();
    },
    configurable: true,
    writable: true,
  });
}
