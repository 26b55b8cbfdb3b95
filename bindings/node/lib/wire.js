// @ts-check

/**
 * wire: the framed bytes that cross the border, the twin of the engine's wire.c; docs/wire.md is the prose of
 * both. Requests are written into a slot's input, pages are read from a slot's output. All integers are
 * little-endian, as the machines are that the library is built for.
 */

import { copy, isWhole } from "./bytes.js";
import { tooLarge } from "./errors.js";
import { decodeValue } from "./values.js";

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./slot.js').Request} Request */
/** @typedef {import('./args.js').As} As */
/** @typedef {string | Uint8Array} Bytes */

/** Types of a write. */
export const PUT = 1;
export const DELETE = 2;
export const PUT_IF_ABSENT = 3;
/** With a type: the value is the text of an object that we made, and need not be looked through. */
export const OBJECT = 0x400;
const WRITE_HEAD = 8;
const BATCH_MAX = 1 << 30;
const KEY_HEAD = 2;
/** A value of 1 MiB of characters has at most so many bytes, escapes and all. */
const VALUE_GROWTH = 8 << 20;

/** Flags of a scan request. */
const SCAN_HEAD = 32;
const REVERSE = 1;
const VALUES = 2;
const SKIP_CORRUPT = 4;
const PREFIX = 1 << 8;
const LOWER_GT = 2 << 8;
const UPPER_LTE = 4 << 8;
const HAS_LOWER = 1 << 16;
const HAS_UPPER = 1 << 17;
const HAS_AFTER = 1 << 18;

/** Flags of a page. */
const PAGE_KEYS_ASCII = 2;
const PAGE_ALL_JSON = 4;

/** Keys up to this many characters are copied by a loop, which beats a call into the runtime. */
const SHORT_KEY = 32;
/** Keys are cut from strings of about this many bytes, which is what one kept key keeps alive. */
const KEY_CHUNK = 4096;
/** One JSON.parse takes at most so many bytes. */
const PARSE_MAX = 1 << 26;

/** The most bytes that a string or bytes may take. @param {Bytes} bytes */
const roomFor = (bytes) => (typeof bytes === "string" ? bytes.length * 3 : bytes.byteLength);

/**
 * Writes a string as UTF-8, or bytes, at `at`, where there is room. Returns the length.
 * @param {Request} request
 * @param {number} at
 * @param {Bytes} bytes
 */
function writeBytes(request, at, bytes) {
  const { input } = request;
  if (typeof bytes === "string") {
    const { length } = bytes;
    if (length > SHORT_KEY) return request.writeText(at, bytes);
    for (let i = 0; i < length; i++) {
      const code = bytes.charCodeAt(i);
      if (code > 127) return request.writeText(at, bytes);
      input[at + i] = code;
    }
    return length;
  }
  input.set(bytes, at);
  return bytes.byteLength;
}

/** The request of GET and HAS: the key itself. @param {Request} slot @param {Bytes} key */
export function writeKey(slot, key) {
  slot.needInput(roomFor(key));
  slot.inputLength = writeBytes(slot, 0, key);
}

/**
 * Appends a write to the request: u8 type, u8 flags, u16 key length, u32 value length, key, value.
 * @param {Request} slot
 * @param {number} type
 * @param {Bytes} key
 * @param {Bytes} value
 */
export function addWrite(slot, type, key, value) {
  const at = slot.inputLength;
  const most = at + WRITE_HEAD + roomFor(key) + roomFor(value);
  if (most > slot.input.length) {
    // Long strings are measured, since most take 1 byte a character and not 3.
    const size = typeof value === "string" ? most - value.length * 3 + Buffer.byteLength(value) : most;
    if (at > 0 && size > BATCH_MAX) throw tooLarge(`the batch has over ${BATCH_MAX} bytes`);
    slot.needInput(size, at);
  }
  const valueAt = at + WRITE_HEAD + writeBytes(slot, at + WRITE_HEAD, key);
  endWrite(slot, type, valueAt, valueAt + writeBytes(slot, valueAt, value));
}

/**
 * The same in two steps, for a value of at most `most` bytes that the caller writes: this one writes the key,
 * endWrite the head. Returns the value's place; -1 where the batch could become too large: addWrite knows.
 * @param {Request} slot
 * @param {Bytes} key
 * @param {number} most less than 1 MiB; what takes more in the end has to make room for itself
 */
export function beginWrite(slot, key, most) {
  const at = slot.inputLength;
  const end = at + WRITE_HEAD + roomFor(key) + most;
  if (end > slot.input.length) {
    if (end > BATCH_MAX - VALUE_GROWTH) return -1;
    slot.needInput(end, at);
  }
  return at + WRITE_HEAD + writeBytes(slot, at + WRITE_HEAD, key);
}

/**
 * @param {Request} slot
 * @param {number} type a type of write, with OBJECT where the value is the text of an object that we made
 * @param {number} valueAt
 * @param {number} end the value's
 */
export function endWrite(slot, type, valueAt, end) {
  const { inputLength: at, view } = slot;
  view.setUint32(at, type | ((valueAt - at - WRITE_HEAD) << 16), true);
  view.setUint32(at + 4, end - valueAt, true);
  slot.inputLength = end;
}

/** Appends a key to a list of keys: u16 length, key. @param {Request} slot @param {Bytes} key */
export function addKey(slot, key) {
  const at = slot.inputLength;
  slot.needInput(at + KEY_HEAD + roomFor(key), at);
  const length = writeBytes(slot, at + KEY_HEAD, key);
  slot.input[at] = length;
  slot.input[at + 1] = length >> 8;
  slot.inputLength = at + KEY_HEAD + length;
}

/**
 * The request of SCAN and COUNT.
 * @param {Slot} slot
 * @param {import('./args.js').Range} range
 * @param {{limit: number, reverse: boolean, after?: Bytes, skipCorrupt: boolean} | null} options null: none
 * @param {boolean} values whether records are wanted
 */
export function writeScan(slot, range, options, values) {
  const { lower, upper } = range;
  const after = options?.after;
  slot.needInput(SCAN_HEAD + 3 * (roomFor(lower ?? "") + roomFor(upper ?? "") + roomFor(after ?? "")));
  const { input } = slot;
  let at = SCAN_HEAD;
  const add = (/** @type {Bytes | undefined} */ bytes) => {
    const length = bytes === undefined ? 0 : writeBytes(slot, at, bytes);
    at += length;
    return length;
  };
  input.fill(0, 0, SCAN_HEAD);
  input.writeUInt32LE(
    (options?.reverse ? REVERSE : 0) |
      (values ? VALUES : 0) |
      (options?.skipCorrupt ? SKIP_CORRUPT : 0) |
      (range.prefix ? PREFIX : 0) |
      (range.lowerGt ? LOWER_GT : 0) |
      (range.upperLte ? UPPER_LTE : 0) |
      (lower === undefined ? 0 : HAS_LOWER) |
      (upper === undefined ? 0 : HAS_UPPER) |
      (after === undefined ? 0 : HAS_AFTER),
    0,
  );
  if (options && options.limit > 0) input.writeBigUInt64LE(BigInt(options.limit), 8);
  input.writeUInt32LE(add(lower), 16);
  input.writeUInt32LE(add(upper), 20);
  input.writeUInt32LE(add(after), 24);
  slot.inputLength = at;
}

/** The request of SCAN_NEXT and SCAN_CLOSE. @param {Slot} slot @param {number} low @param {number} high */
export function writeScanNumber(slot, low, high) {
  slot.input.writeUInt32LE(low, 0);
  slot.input.writeUInt32LE(high, 4);
  slot.inputLength = 8;
}

/**
 * A page: keys from the start of the memory, values behind them, entries from its end downwards.
 * @typedef {{memory: Buffer, count: number, keysLength: number, valuesLength: number, flags: number}} Page
 */

/** The page in a slot's output. @param {Slot} slot @returns {Page} */
export function pageOf(slot) {
  return {
    memory: slot.output,
    count: slot.count,
    keysLength: slot.keysLength,
    valuesLength: slot.valuesLength,
    flags: slot.flags,
  };
}

/** Where entry 0 begins if entries have `size` bytes. @param {Page} page @param {number} size */
const firstEntry = (page, size) => (page.memory.length & ~7) - size;

/**
 * A key as users get it: a string, or a Buffer where it is not valid UTF-8.
 * @param {Buffer} memory @param {number} start @param {number} end
 * @returns {string | Buffer}
 */
function decodeKey(memory, start, end) {
  const text = memory.toString("utf8", start, end);
  return isWhole(text, memory, start, end) ? text : copy(memory, start, end);
}

/** Arrays that are made longer than this at once become slow. */
const MOST_RESERVED = 1 << 24;

/**
 * Makes room for `count` more items of a list, which are then set one by one.
 * @param {any[]} list @param {number} count
 */
export function reserve(list, count) {
  const { length } = list;
  if (length + count <= MOST_RESERVED) list.length = length + count;
  return length;
}

/**
 * The keys of a page, appended to `keys`.
 * @param {Page} page
 * @param {number} entrySize
 * @param {(string | Buffer)[]} keys
 */
function readKeys(page, entrySize, keys) {
  const { memory, count, keysLength } = page;
  const lengths = new Uint16Array(memory.buffer, memory.byteOffset, memory.length >> 1);
  const step = entrySize >> 1;
  let entry = firstEntry(page, entrySize) >> 1;
  let at = 0;
  let next = reserve(keys, count);
  const end = next + count;
  if (!(page.flags & PAGE_KEYS_ASCII)) {
    for (; next < end; entry -= step) {
      const length = lengths[entry];
      keys[next++] = decodeKey(memory, at, at + length);
      at += length;
    }
    return keys;
  }
  while (next < end) {
    // As many keys as lie in one chunk, the first one whatever its length.
    const most = Math.max(lengths[entry], Math.min(KEY_CHUNK, keysLength - at));
    const chunk = memory.toString("latin1", at, at + most);
    let from = 0;
    for (let to = lengths[entry]; to <= most; to += lengths[entry]) {
      keys[next++] = chunk.substring(from, to);
      from = to;
      if (next === end) break;
      entry -= step;
    }
    at += from;
  }
  return keys;
}

const VALUE_ENTRY = 8;
const KEY_ENTRY = 2;

/**
 * The keys of a page without values, appended to `keys`.
 * @param {Page} page
 * @param {(string | Buffer)[]} keys
 */
export const readKeyPage = (page, keys) => readKeys(page, KEY_ENTRY, keys);

/** The keys of a page with values. @param {Page} page @returns {(string | Buffer)[]} */
export const readRecordKeys = (page) => readKeys(page, VALUE_ENTRY, []);

/**
 * The values of a page.
 * @param {Page} page
 * @param {As} as
 * @param {(error: unknown) => any} failed gives what stands for a value that cannot be given as `as`
 * @param {import('./shapes.js').Shapes} shapes of the store that the page is from
 * @returns {any[]}
 */
export function readValues(page, as, failed, shapes) {
  if (page.count === 0) return [];
  if (as === "json" && page.flags & PAGE_ALL_JSON && page.valuesLength <= PARSE_MAX) {
    return shapes.values(page);
  }
  return readEach(page, () => as, failed);
}

/**
 * The same, one by one, each in its own form.
 * @param {Page} page
 * @param {(index: number) => As} asOf
 * @param {(error: unknown) => any} failed
 * @returns {any[]}
 */
export function readEach(page, asOf, failed) {
  const { memory, count } = page;
  const values = new Array(count);
  let entry = firstEntry(page, VALUE_ENTRY);
  let at = page.keysLength;
  for (let i = 0; i < count; i++, entry -= VALUE_ENTRY) {
    const start = at + 1; // behind the bracket or comma
    at = start + memory.readUInt32LE(entry + 4);
    try {
      values[i] = decodeValue(memory, start, at, memory[entry + 2], asOf(i));
    } catch (error) {
      values[i] = failed(error);
    }
  }
  return values;
}
