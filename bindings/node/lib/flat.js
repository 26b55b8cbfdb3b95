// @ts-check

/**
 * flat: writers that put the JSON text of a flat object straight into a request, one for each shape (the
 * ordered list of names). They are made by `new Function`, so that names are constants, reads are of known
 * places and literals are whole words.
 *
 * A writer gives what JSON.stringify gives, for every object whose own enumerable names are the shape's and
 * that is no proxy, array or boxed primitive:
 *  F0. It knows nothing about objects with a toJSON, nor below any prototype but the usual two: others may
 *      have a proxy among them, which can have a toJSON and deny it.
 *  F1. It reads each member once, in order, and writes nothing before all are read: a getter may use the
 *      store, and so the very same request.
 *  F2. What JSON.stringify would ask further (objects, functions and bigints may have a toJSON) ends the
 *      reading at once: JSON.stringify takes over with what was read, and reads the rest itself.
 *  F3. What comes after the last read runs no code of the user's.
 */

import { OBJECT, beginWrite, endWrite } from "./wire.js";

/** @typedef {import('./slot.js').Request} Request */
/** @typedef {string | Uint8Array} Bytes */

/**
 * Appends a write of the object to the request, which is to have no other where it is `fresh`: "" where it
 * has, else the text to be written; null where it has asked nothing, and knows nothing.
 * @typedef {(object: any, request: Request, type: number, key: Bytes, fresh: boolean) => string | null}
 *   Writer
 */

const { getPrototypeOf, prototype: PLAIN } = Object;

/** The longest number: a sign, 17 digits, a point, an exponent. */
const NUMBER_MOST = 25;
/** Larger texts are JSON.stringify's. */
const TEXT_MOST = 1 << 20;
/** What weigh() gives for values that are left out of the text. */
const LEFT_OUT = TEXT_MOST * 2;
/** Longer strings are written by a call into the runtime, which beats a loop from here on. */
const SHORT = 48;
/** Literals are written in whole words: up to so many bytes too many, which the next member overwrites. */
const SLACK = 4;

/** 0 for characters that stand for themselves in a JSON string, 128 for the others below 128. */
const ESCAPED = new Uint8Array(128).map((_, code) =>
  code < 0x20 || code === 0x22 || code === 0x5c ? 128 : 0,
);

/**
 * The room that a value takes beyond its member's fixed share; -1: it may have code that has to run.
 * @param {unknown} value
 */
function weigh(value) {
  if (typeof value === "string") return value.length;
  if (typeof value === "number" || typeof value === "boolean" || value === null) return 0;
  return value === undefined || typeof value === "symbol" ? LEFT_OUT : -1;
}

/**
 * Writes a member's value at `at`.
 * @param {Request} request has room for `need` bytes, of which this member takes its share
 * @param {number} at @param {unknown} value @param {number} need
 * @returns {number} the end
 */
function member(request, at, value, need) {
  if (typeof value === "string") {
    const { length } = value;
    if (length > SHORT) return longString(request, at, value, need);
    const { input, view } = request;
    let odd = 0;
    let i = 0;
    input[at++] = 0x22;
    for (; i + 4 <= length; i += 4) {
      const a = value.charCodeAt(i);
      const b = value.charCodeAt(i + 1);
      const c = value.charCodeAt(i + 2);
      const d = value.charCodeAt(i + 3);
      odd |= a | b | c | d | ESCAPED[a & 127] | ESCAPED[b & 127] | ESCAPED[c & 127] | ESCAPED[d & 127];
      view.setInt32(at + i, a | (b << 8) | (c << 16) | (d << 24), true);
    }
    for (; i < length; i++) {
      const code = value.charCodeAt(i);
      odd |= code | ESCAPED[code & 127];
      input[at + i] = code;
    }
    if (odd > 127) return anyString(request, at - 1, value, need);
    input[at + length] = 0x22;
    return at + length + 1;
  }
  if (typeof value === "number") return number(request.input, at, value);
  if (value === true) return word(request.input, at, 0x74, 0x72, 0x75, 0x65);
  if (value !== false) return word(request.input, at, 0x6e, 0x75, 0x6c, 0x6c);
  request.input[at] = 0x66;
  return word(request.input, at + 1, 0x61, 0x6c, 0x73, 0x65);
}

/**
 * @param {Buffer} input @param {number} at
 * @param {number} a @param {number} b @param {number} c @param {number} d
 */
function word(input, at, a, b, c, d) {
  input[at] = a;
  input[at + 1] = b;
  input[at + 2] = c;
  input[at + 3] = d;
  return at + 4;
}

/**
 * A string that is written by the runtime, and looked through where it stands.
 * @param {Request} request @param {number} at @param {string} text @param {number} need
 */
function longString(request, at, text, need) {
  const { length } = text;
  const start = at + 1;
  let end = start + request.input.write(text, start);
  // There is room for more bytes than characters, so what was cut has more, too.
  if (end !== start + length) {
    if (!text.isWellFormed()) return anyString(request, at, text, need);
    reserve(request, at, length * 3 + need);
    end = start + request.input.write(text, start);
  }
  if (hasEscapes(request, start, end)) return anyString(request, at, text, need);
  request.input[at] = 0x22;
  request.input[end] = 0x22;
  return end + 1;
}

/**
 * Whether some of these bytes want an escape in JSON.
 * @param {Request} request @param {number} start @param {number} end
 */
function hasEscapes({ input, view }, start, end) {
  let odd = 0;
  let i = start;
  for (; i + 4 <= end; i += 4) {
    // Four bytes at a time: a high bit tells of a quote, a backslash or one below 0x20.
    const four = view.getInt32(i, true);
    const quote = four ^ 0x22222222;
    const slash = four ^ 0x5c5c5c5c;
    odd |= ((quote - 0x01010101) & ~quote) | ((slash - 0x01010101) & ~slash) | ((four - 0x20202020) & ~four);
  }
  for (; i < end; i++) odd |= input[i] < 128 ? ESCAPED[input[i]] : 0;
  return (odd & 0x80808080) !== 0;
}

/**
 * A string with escapes, or a short one beyond ASCII.
 * @param {Request} request @param {number} at @param {string} text @param {number} need
 */
function anyString(request, at, text, need) {
  const quoted = JSON.stringify(text);
  reserve(request, at, quoted.length * 3 + need);
  return at + request.writeText(at, quoted);
}

/**
 * Makes room for `more` bytes at `at`, in the middle of a write.
 * @param {Request} request @param {number} at @param {number} more
 */
function reserve(request, at, more) {
  const { inputLength } = request;
  request.needInput(at + more, at);
  request.inputLength = inputLength; // where this write begins, not what was kept
}

/** @param {Buffer} input @param {number} at @param {number} value */
export function number(input, at, value) {
  if (Number.isSafeInteger(value)) {
    if (value < 0) {
      input[at++] = 0x2d;
      value = -value;
    }
    if (value < 2147483648) return digits(input, at, value);
    const high = Math.floor(value / 1e8);
    at = digits(input, at, high) + 8;
    let rest = value - high * 1e8;
    for (let i = 1; i <= 8; i++) {
      const tenth = (rest / 10) | 0;
      input[at - i] = 0x30 + rest - tenth * 10;
      rest = tenth;
    }
    return at;
  }
  const text = Number.isFinite(value) ? "" + value : "null";
  for (let i = 0; i < text.length; i++) input[at + i] = text.charCodeAt(i);
  return at + text.length;
}

/** @param {Buffer} input @param {number} at @param {number} value an integer from 0 to 2^31 - 1; -0 too */
function digits(input, at, value) {
  let rest = value | 0;
  let end = at + 1;
  if (rest >= 1e5) end += rest >= 1e7 ? (rest >= 1e8 ? (rest >= 1e9 ? 9 : 8) : 7) : rest >= 1e6 ? 6 : 5;
  else if (rest >= 10) end += rest >= 1e3 ? (rest >= 1e4 ? 4 : 3) : rest >= 100 ? 2 : 1;
  for (let i = end - 1; i > at; i--) {
    const tenth = (rest / 10) | 0;
    input[i] = 0x30 + rest - tenth * 10;
    rest = tenth;
  }
  input[at] = 0x30 + rest;
  return end;
}

/**
 * JSON.stringify for an object whose first members were read already.
 * @param {any} object @param {readonly string[]} names @param {unknown[]} read
 */
function takeOver(object, names, read) {
  const standIn = Object.create(null);
  names.forEach((name, i) => {
    const how = i < read.length ? { value: read[i] } : { get: () => object[name] };
    Object.defineProperty(standIn, name, { ...how, enumerable: true });
  });
  return JSON.stringify(standIn);
}

/** Whether this environment may make code from text. */
export const mayGenerate = (() => {
  try {
    return new Function("return true")();
  } catch {
    return false;
  }
})();

/** Names that a writer knows: they are the same in a program and in JSON, and mean nothing to either. */
const KNOWN_NAME = /^[ !#-[\]-~]*$/;
const UNFIT = new Set(["__proto__", "toJSON", "rawJSON"]);
const MEMBERS_MOST = 64;
const NAMES_MOST = 2048;

/** Whether there can be a writer for these names. @param {readonly string[]} names */
export function fits(names) {
  if (names.length === 0 || names.length > MEMBERS_MOST) return false;
  let size = 0;
  for (const name of names) {
    size += name.length;
    if (size > NAMES_MOST || !KNOWN_NAME.test(name) || UNFIT.has(name)) return false;
  }
  return true;
}

/** The statements that write a literal at `at + from`. @param {string} literal @param {number} from */
function literalCode(literal, from) {
  const padded = Buffer.from(literal + "\0".repeat(-literal.length & 3));
  let code = "";
  for (let i = 0; i < padded.length; i += 4)
    code += `view.setInt32(at + ${from + i}, ${padded.readInt32LE(i)}, true); `;
  return code;
}

/**
 * The writer of a shape.
 * @param {readonly string[]} names that fit
 * @param {(much: boolean) => void} missed is told of each object that was left to JSON.stringify; `much`:
 *   after work that was for nothing
 * @returns {Writer}
 */
export function makeWriter(names, missed) {
  const values = names.map((_, i) => `v${i}`);
  const quoted = names.map((name) => JSON.stringify(name));
  const literals = quoted.map((name, i) => `${i === 0 ? "{" : ","}${name}:`);
  const fixed = literals.join("").length + names.length * NUMBER_MOST + 1 + SLACK;
  const code = `"use strict";
    function Copy(${values}) { ${quoted.map((name, i) => `this[${name}] = v${i};`).join(" ")} }
    Copy.prototype = Object.freeze(Object.create(null));
    return (object, request, type, key, fresh) => {
      if (!(${quoted[0]} in object)) return null; // it is: this lets the next line cost nothing
      const prototype = getPrototypeOf(object);
      if ((prototype !== PLAIN && prototype !== null) || "toJSON" in object) return null;
      let need = ${fixed}, more = 0;
      ${quoted
        .map(
          (name, i) => `const v${i} = object[${name}]; more = weigh(v${i});
      if (more < 0) { missed(true); return takeOver(object, names, [${values.slice(0, i + 1)}]); }
      need += more;`,
        )
        .join("\n      ")}
      if (need > ${TEXT_MOST}) { missed(false); return JSON.stringify(new Copy(${values})); }
      if (fresh) request.inputLength = 0;
      const start = beginWrite(request, key, need);
      if (start < 0) return JSON.stringify(new Copy(${values}));
      let at = start, view = request.view;
      ${literals
        .map(
          (literal, i) => `${literalCode(literal, 0)}
      at = member(request, at + ${literal.length}, v${i}, need); view = request.view;`,
        )
        .join("\n      ")}
      view.setUint8(at, 0x7d);
      endWrite(request, type | OBJECT, start, at + 1);
      return "";
    };`;
  const helpers = { weigh, member, takeOver, beginWrite, endWrite, OBJECT, missed, names, getPrototypeOf, PLAIN };
  return new Function(...Object.keys(helpers), code)(...Object.values(helpers));
}
