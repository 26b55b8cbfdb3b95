// @ts-check

/**
 * args: what a user may pass. Everything is checked here, before it crosses: koffi would take a number for an
 * address, cut a string at a NUL and turn a lone surrogate into another character.
 *
 * Functions that read a property of a user's object may run the user's code (getters, proxies); none of them
 * may be called between writing a request and making the call.
 */

import { types } from "node:util";
import { bytesOf, own } from "./bytes.js";
import { invalid, tooLarge } from "./errors.js";

const { isUint8Array } = types;
const KEY_MAX = 65535;

/**
 * Array.isArray that does not throw for a revoked proxy.
 * @param {unknown} value
 * @returns {value is unknown[]}
 */
function isArray(value) {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** Short words for a value in a message; never the value itself. @param {unknown} value */
export function kindOf(value) {
  if (value === null) return "null";
  if (isArray(value)) return "an array";
  const type = typeof value;
  if (type === "undefined") return type;
  return type === "object" ? "an object" : `a ${type}`;
}

/** Whether an object is one that {} makes, of any realm. @param {object} value */
function isPlain(value) {
  try {
    const prototype = Object.getPrototypeOf(value);
    return prototype === null || Object.getPrototypeOf(prototype) === null;
  } catch {
    return false;
  }
}

/** null counts as "not given". @param {unknown} value @returns {value is null | undefined} */
export const absent = (value) => value === undefined || value === null;

/** @param {object} found @param {string} what */
function namesOf(found, what) {
  try {
    return Object.keys(found);
  } catch (error) {
    // A revoked proxy is no object; what a proxy's own code throws is the user's.
    if (error instanceof TypeError && /revoked/.test(error.message))
      throw invalid(`${what} is a revoked proxy`);
    throw error;
  }
}

/**
 * The own properties of an object, all of them known; each is read once.
 * @param {object} found
 * @param {readonly string[]} known
 * @param {string} what for the message
 * @param {string[]} [names] the object's, where they are known already
 * @returns {Record<string, unknown>}
 */
function properties(found, known, what, names = namesOf(found, what)) {
  /** @type {Record<string, unknown>} */
  const copy = {};
  for (const name of names) {
    if (!known.includes(name)) throw invalid(`${what} has no "${printable(name)}"${hint(name, known)}`);
    copy[name] = Reflect.get(found, name);
  }
  return copy;
}

/**
 * The same of a plain object. null and undefined give an empty one.
 * @param {unknown} options
 * @param {readonly string[]} known
 * @param {string} what for the message
 */
function named(options, known, what) {
  if (absent(options)) return {};
  if (typeof options !== "object" || isArray(options) || !isPlain(options)) {
    throw invalid(`${what} must be a plain object, not ${kindOf(options)}`);
  }
  return properties(options, known, what);
}

/** @param {string} name */
const printable = (name) => JSON.stringify(name.slice(0, 40)).slice(1, -1);

/** The known name that a wrong one was meant to be. @param {string} name @param {readonly string[]} known */
function hint(name, known) {
  const near = known.find((other) => other.toLowerCase() === name.toLowerCase());
  return near ? `: it is "${near}"` : "";
}

/** @param {unknown} value @param {string} what @param {boolean} otherwise */
function boolean(value, what, otherwise) {
  if (absent(value)) return otherwise;
  if (typeof value !== "boolean") throw invalid(`${what} must be true or false, not ${kindOf(value)}`);
  return value;
}

/** @param {unknown} value @param {string} what @param {number} least @param {number} most */
function integer(value, what, least, most) {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    throw invalid(`${what} must be an integer from ${least} to ${most}`);
  }
  return value;
}

/** Refuses what a later version will take. @param {unknown} value @param {string} what */
function notYet(value, what) {
  if (!absent(value)) throw invalid(`${what} is not supported yet`);
}

/** @param {unknown} value @param {string} what @returns {string} a path without NUL */
export function path(value, what) {
  if (typeof value !== "string") throw invalid(`${what} must be a string, not ${kindOf(value)}`);
  if (value === "") throw invalid(`${what} is empty`);
  if (value.includes("\0")) throw invalid(`${what} has a NUL character`);
  if (!value.isWellFormed()) throw invalid(`${what} has a lone surrogate`);
  return value;
}

/**
 * A key, or a bound of a range: a string or a Uint8Array (a Buffer is one).
 * @param {unknown} value
 * @param {string} what for the message
 * @param {boolean} mayBeEmpty
 * @returns {string | Uint8Array} bytes are the caller's memory, not a copy
 */
function text(value, what, mayBeEmpty) {
  if (typeof value === "string") {
    if (value.length === 0 && !mayBeEmpty) throw invalid(`${what} is empty`);
    // Every UTF-16 unit takes 1 to 3 bytes.
    if (value.length * 3 > KEY_MAX && (value.length > KEY_MAX || Buffer.byteLength(value) > KEY_MAX)) {
      throw tooLarge(`${what} has over ${KEY_MAX} bytes`);
    }
    if (!value.isWellFormed()) throw invalid(`${what} has a lone surrogate`);
    return value;
  }
  if (!isUint8Array(value)) throw invalid(`${what} must be a string or a Buffer, not ${kindOf(value)}`);
  const bytes = bytesOf(value, what);
  if (bytes.length === 0 && !mayBeEmpty) throw invalid(`${what} is empty`);
  if (bytes.length > KEY_MAX) throw tooLarge(`${what} has ${bytes.length} bytes, the limit is ${KEY_MAX}`);
  return bytes;
}

/** @param {unknown} value */
export const key = (value) => text(value, "the key", false);

const RANGE = /** @type {const} */ (["gt", "gte", "lt", "lte"]);

/**
 * `lower` and `upper` are the range's own: no caller can change them later.
 * @typedef {{lower?: string | Uint8Array, upper?: string | Uint8Array, prefix?: boolean, lowerGt?: boolean,
 *   upperLte?: boolean}} Range
 */

/** @param {unknown} value @returns {Range} */
export function prefix(value) {
  const lower = own(text(value, "the prefix", true));
  return lower.length === 0 ? {} : { lower, prefix: true };
}

/** @param {unknown} value @returns {Range} */
export function range(value) {
  if (absent(value)) throw invalid(`a range must be an object, not ${kindOf(value)}`);
  const given = named(value, RANGE, "a range");
  const { gt, gte, lt, lte } = given;
  if (!absent(gt) && !absent(gte)) throw invalid("a range has gt or gte, not both");
  if (!absent(lt) && !absent(lte)) throw invalid("a range has lt or lte, not both");
  /** @type {Range} */
  const found = {};
  const lower = absent(gt) ? gte : gt;
  const upper = absent(lt) ? lte : lt;
  if (!absent(lower)) {
    found.lower = own(text(lower, `the range's ${absent(gt) ? "gte" : "gt"}`, true));
    found.lowerGt = !absent(gt);
  }
  if (!absent(upper)) {
    found.upper = own(text(upper, `the range's ${absent(lt) ? "lte" : "lt"}`, true));
    found.upperLte = absent(lt);
  }
  return found;
}

/**
 * A prefix (string, Buffer) or a range (object); not given: everything.
 * @param {unknown} value
 * @returns {Range}
 */
export function prefixOrRange(value) {
  if (absent(value)) return {};
  return typeof value === "string" || ArrayBuffer.isView(value) ? prefix(value) : range(value);
}

/** How values come back. @typedef {'json' | 'text' | 'buffer'} As */

/** @param {unknown} value @returns {As} */
function as(value) {
  if (absent(value) || value === "json") return "json";
  if (value === "text" || value === "buffer") return value;
  throw invalid('"as" must be "json", "text" or "buffer"');
}

const AS = ["as"];

/**
 * The last argument of a read.
 * @param {unknown} options
 * @returns {As}
 */
export function readOptions(options) {
  if (absent(options)) return "json";
  return simpleAs(options) ?? as(named(options, AS, "the options of a read").as);
}

/**
 * The short way for {as: "text"}, which loops of reads pass each time; undefined where a closer look is
 * needed.
 * @param {any} options
 * @returns {As | undefined}
 */
function simpleAs(options) {
  try {
    if (typeof options !== "object" || Object.getPrototypeOf(options) !== Object.prototype) return undefined;
    for (const name in options) if (name !== "as") return undefined;
    const value = options.as;
    return value === "text" || value === "buffer" || value === "json" ? value : undefined;
  } catch {
    return undefined; // the closer look says what is wrong
  }
}

const KEY_SCAN = ["limit", "reverse", "after"];
const RECORD_SCAN = ["limit", "reverse", "after", "as", "corrupt"];

/** @typedef {{limit: number, reverse: boolean, after?: string | Uint8Array, as: As, skipCorrupt: boolean}} ScanOptions
 *   `limit` -1: no limit */

/** @param {unknown} options @param {boolean} records @returns {ScanOptions} */
export function scanOptions(options, records) {
  const given = named(options, records ? RECORD_SCAN : KEY_SCAN, "the options of a scan");
  const { limit, after, corrupt } = given;
  if (!absent(corrupt) && corrupt !== "skip") throw invalid('"corrupt" must be "skip"');
  return {
    limit: absent(limit) ? -1 : integer(limit, "limit", 0, Number.MAX_SAFE_INTEGER),
    reverse: boolean(given.reverse, "reverse", false),
    after: absent(after) ? undefined : own(text(after, "after", false)),
    as: as(given.as),
    skipCorrupt: corrupt === "skip",
  };
}

const OPEN = [
  "readOnly",
  "syncEveryWrite",
  "syncIntervalMs",
  "useMmap",
  "acceptDamage",
  "blobThreshold",
  "indexes",
  "hintEveryN",
  "autoCompact",
];
const OPEN_LATER = ["blobThreshold", "indexes", "autoCompact"];

/** @param {unknown} options */
export function openOptions(options) {
  const given = named(options, OPEN, "the options of open");
  for (const name of OPEN_LATER) notYet(given[name], `the option ${name}`);
  return {
    readOnly: boolean(given.readOnly, "readOnly", false),
    syncEveryWrite: boolean(given.syncEveryWrite, "syncEveryWrite", false),
    useMmap: boolean(given.useMmap, "useMmap", true),
    acceptDamage: boolean(given.acceptDamage, "acceptDamage", false),
    syncIntervalMs: absent(given.syncIntervalMs)
      ? 0
      : integer(given.syncIntervalMs, "syncIntervalMs", 1, 60000),
    hintEveryN: absent(given.hintEveryN)
      ? 0
      : integer(given.hintEveryN, "hintEveryN", 1, Number.MAX_SAFE_INTEGER),
  };
}

/** The arguments of writes that a later version takes. @param {unknown} ix @param {unknown} ttlMs */
export function noIndexNoTtl(ix, ttlMs) {
  notYet(ix, "ix");
  notYet(ttlMs, "ttlMs");
}

/**
 * A list, as long as it is at this moment.
 * @param {unknown} value
 * @param {string} what
 * @returns {unknown[]}
 */
export function list(value, what) {
  if (!isArray(value)) throw invalid(`${what} must be an array, not ${kindOf(value)}`);
  return value;
}

const PUT_ITEM = ["key", "value", "ix", "ttlMs"];
const BATCH_ITEM = ["type", "key", "value", "ix", "ttlMs"];

/**
 * An item of putMany or, with `typed`, of batch. Its properties are read once.
 * @param {unknown} item
 * @param {boolean} typed
 * @returns {{put: boolean, key: string | Uint8Array, value: unknown}}
 */
export function writeItem(item, typed) {
  if (typeof item !== "object" || item === null || isArray(item)) {
    throw invalid(`an item must be an object, not ${kindOf(item)}`);
  }
  const names = namesOf(item, "an item");
  const count = names.length;
  // The short way for nearly all items: names in their usual order. What it reads is read in that order.
  if (!typed && count === 2 && names[0] === "key" && names[1] === "value") {
    const { key: name, value } = /** @type {any} */ (item);
    return { put: true, key: key(name), value };
  }
  if (typed && count === 3 && names[0] === "type" && names[1] === "key" && names[2] === "value") {
    const { type, key: name, value } = /** @type {any} */ (item);
    if (type === "put") return { put: true, key: key(name), value };
    return checkedItem({ type, key: name, value }, typed);
  }
  return checkedItem(properties(item, typed ? BATCH_ITEM : PUT_ITEM, "an item", names), typed);
}

/**
 * @param {Record<string, unknown>} given what was read of an item
 * @param {boolean} typed
 */
function checkedItem(given, typed) {
  const put = !typed || given.type === "put";
  if (!put && given.type !== "del") throw invalid('the type of an item must be "put" or "del"');
  noIndexNoTtl(given.ix, given.ttlMs);
  if (!put && "value" in given) throw invalid('an item of type "del" has no value');
  return { put, key: key(given.key), value: given.value };
}
