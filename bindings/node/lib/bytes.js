// @ts-check

/**
 * bytes: the memory behind what users pass. Lengths are asked of the language itself, never of a property
 * that a subclass may have overridden.
 */

import { isUtf8 } from "node:buffer";
import { invalid } from "./errors.js";

/** @param {object} prototype @param {string | symbol} name @returns {(this: unknown) => any} */
const getter = (prototype, name) => /** @type {any} */ (Object.getOwnPropertyDescriptor(prototype, name)).get;

const TypedArray = Object.getPrototypeOf(Uint8Array.prototype);
const typedBuffer = getter(TypedArray, "buffer");
const typedOffset = getter(TypedArray, "byteOffset");
const typedLength = getter(TypedArray, "byteLength");
const typedTag = getter(TypedArray, Symbol.toStringTag);
const viewBuffer = getter(DataView.prototype, "buffer");
const viewOffset = getter(DataView.prototype, "byteOffset");
const viewLength = getter(DataView.prototype, "byteLength");

/**
 * A plain Uint8Array over the same memory.
 * @param {ArrayBufferView | ArrayBufferLike} value
 * @param {string} what for the message
 * @returns {Uint8Array}
 */
export function bytesOf(value, what) {
  try {
    if (!ArrayBuffer.isView(value)) return new Uint8Array(value);
    if (typedTag.call(value) !== undefined) {
      return new Uint8Array(typedBuffer.call(value), typedOffset.call(value), typedLength.call(value));
    }
    return new Uint8Array(viewBuffer.call(value), viewOffset.call(value), viewLength.call(value));
  } catch {
    throw invalid(`${what} has no memory: it is detached`);
  }
}

/**
 * What a caller can no longer change.
 * @template {string | Uint8Array} T
 * @param {T} bytes
 * @returns {T}
 */
export const own = (bytes) =>
  typeof bytes === "string" ? bytes : /** @type {T} */ (new Uint8Array(bytes));

/** @param {Buffer} memory @param {number} start @param {number} end */
export function copy(memory, start, end) {
  const bytes = Buffer.allocUnsafe(end - start);
  memory.copy(bytes, 0, start, end);
  return bytes;
}

/**
 * Whether a text that bytes were decoded to is all that they say: they are valid UTF-8.
 * @param {string} text
 * @param {Buffer} memory
 * @param {number} start
 * @param {number} end
 */
export const isWhole = (text, memory, start, end) =>
  !text.includes("\ufffd") || isUtf8(memory.subarray(start, end)); // U+FFFD may have been there
