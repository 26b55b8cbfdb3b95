// @ts-check

/**
 * values: what is stored for a JavaScript value, and what comes back.
 *
 * A string is stored as its own text, bytes as they are, anything else as its JSON text. What comes back is
 * decided by what the engine noted about the bytes, not by how they were put: valid JSON comes back parsed.
 */

import { types } from "node:util";
import { invalid, tooLarge } from "./errors.js";
import { kindOf } from "./args.js";
import { bytesOf, copy, isWhole } from "./bytes.js";

const { isAnyArrayBuffer } = types;
const VALUE_MAX = 4294967295;

/** ntee_kind. */
export const KIND = Object.freeze({ BINARY: 0, JSON: 1, OBJECT: 2, COUNTER: 3, MISSING: 4 });

/**
 * The text or the bytes that are stored for a value. May run the user's code (toJSON, getters), and throws
 * what that throws.
 * @param {unknown} value
 * @returns {string | Uint8Array} bytes are the caller's own memory, not a copy
 */
export function encodeValue(value) {
  if (typeof value === "string") {
    if (!value.isWellFormed()) throw invalid("the value is a string with a lone surrogate");
    return value;
  }
  if (typeof value === "object" && value !== null) {
    if (ArrayBuffer.isView(value) || isAnyArrayBuffer(value))
      return checkedLength(bytesOf(value, "the value"));
  } else if (typeof value === "number") {
    if (!Number.isFinite(value)) throw invalid("the value is not a finite number");
  } else if (typeof value !== "boolean" && value !== null) {
    throw invalid(`the value is ${kindOf(value)}`);
  }
  const text = JSON.stringify(value);
  if (text === undefined) throw invalid("the value has no JSON text: JSON.stringify gives undefined");
  return text;
}

/** @param {Uint8Array} bytes */
function checkedLength(bytes) {
  if (bytes.length > VALUE_MAX)
    throw tooLarge(`the value has ${bytes.length} bytes, the limit is ${VALUE_MAX}`);
  return bytes;
}

/**
 * A value from its bytes, as the caller asked for it. Bytes are copied.
 * @param {Buffer} memory
 * @param {number} start
 * @param {number} end
 * @param {number} kind ntee_kind
 * @param {import('./args.js').As} as
 * @returns {any}
 */
export function decodeValue(memory, start, end, kind, as) {
  if (kind === KIND.MISSING) return null;
  if (as === "json") {
    if (kind === KIND.OBJECT || kind === KIND.JSON) return JSON.parse(utf8(memory, start, end));
    if (kind === KIND.COUNTER) return Number(memory.toString("latin1", start, end));
    return copy(memory, start, end);
  }
  if (as === "buffer") return copy(memory, start, end);
  const text = utf8(memory, start, end);
  if (kind === KIND.BINARY && !isWhole(text, memory, start, end)) {
    throw invalid('the value is not valid UTF-8: read it as "buffer"');
  }
  return text;
}

/** @param {Buffer} memory @param {number} start @param {number} end */
function utf8(memory, start, end) {
  try {
    return memory.toString("utf8", start, end);
  } catch (error) {
    throw tooLong(error, end - start);
  }
}

/** @param {unknown} error @param {number} length */
function tooLong(error, length) {
  return Object(error).code === "ERR_STRING_TOO_LONG"
    ? tooLarge(`a value of ${length} bytes is too long for a string: read it as "buffer"`)
    : error;
}
