// @ts-check

/**
 * shapes: flat JSON objects without JSON.parse.
 *
 * A store tells the engine the member names of flat objects that it has read (a shape). The engine then says
 * where the values of such an object lie (docs/wire.md, "Fields"), and a constructor that was made for the
 * shape builds the object, in a fraction of the time. What it builds is what JSON.parse gives; whatever does
 * not fit goes through JSON.parse. Nothing in here runs the user's code, so the memory that is read stays
 * as it is until everything has been copied out of it.
 */

import * as native from "./native.js";
import * as wire from "./wire.js";
import { STATUS } from "./errors.js";
import { KIND, decodeValue } from "./values.js";

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./handle.js').Handle} Handle */
/** @typedef {(text: string, at: number, doubles: Float64Array, words: Int32Array) => object} Maker */

/** Limits of a shape. */
const MOST_NAMES = 64;
const MOST_NAME_BYTES = 4096;
const MOST_TEXT = 16384;
/** Names that are waiting for their second time. */
const MOST_CANDIDATES = 64;
/** Texts of a page that may fit nothing, beside as many as do fit, before its rest is parsed as a whole. */
const MOST_UNFIT = 8;

/** High words of fields, signed: a string with its length, a constant, an integer. */
const STRING = 0xfff80000 | 0;
const CONSTANT = 0xfff90000 | 0;
const INTEGER = 0xfffa0000 | 0;
const CONSTANTS = Object.freeze([null, true, false]);

/** A name that needs no escape and is not sorted before others, nor a setter. */
const PLAIN_NAME = /^(?!(?:\d+|__proto__)$)[\x20\x21\x23-\x5b\x5d-\x7f]*$/;

/**
 * The names of an object whose text may fit a shape: flat, plain names, the text as JSON.stringify would
 * write it; else null.
 * @param {Record<string, unknown>} object @param {string} text
 */
function namesOf(object, text) {
  const names = Object.keys(object);
  if (names.length === 0 || names.length > MOST_NAMES) return null;
  let canonical = "";
  let bytes = 0;
  for (const name of names) {
    const value = object[name];
    if ((typeof value === "object" && value !== null) || !PLAIN_NAME.test(name)) return null;
    // Only of what is no object: JSON.stringify would look for the user's toJSON there.
    canonical += `${canonical === "" ? "{" : ","}"${name}":${JSON.stringify(value)}`;
    bytes += name.length + 2;
  }
  return bytes <= MOST_NAME_BYTES && `${canonical}}` === text ? names : null;
}

/** Whether code may be made from strings here; null: not asked yet. @type {boolean | null} */
let mayGenerate = null;

function canGenerate() {
  if (mayGenerate === null) {
    try {
      new Function("");
      mayGenerate = true;
    } catch {
      mayGenerate = false;
    }
  }
  return mayGenerate;
}

/**
 * Constructors by their names as JSON. A store that is opened anew finds them warm.
 * @type {Map<string, Maker>}
 */
const makers = new Map();
const MOST_MAKERS = 256;

/**
 * The constructor of a shape. An object literal defines its members, whatever Object.prototype has.
 * @param {string[]} names @param {string} id the same as JSON
 */
function makerOf(names, id) {
  let maker = makers.get(id);
  if (maker) return maker;
  if (makers.size === MOST_MAKERS) makers.clear();
  maker = generate(names);
  makers.set(id, maker);
  return maker;
}

/** @param {string[]} names @returns {Maker} */
function generate(names) {
  const members = names.map((name, i) => {
    const low = `words[2 * at + ${2 * i}]`;
    return `${JSON.stringify(name)}:
      (high = words[2 * at + ${2 * i + 1}]) < ${STRING} || high >= 0 ? doubles[at + ${i}]
      : high < ${CONSTANT} ? text.substring(low = ${low}, low + (high & 0xffff))
      : high < ${INTEGER} ? constants[high & 3] : ${low}`;
  });
  const code = `return (text, at, doubles, words) => { let high, low; return { ${members.join()} }; };`;
  return new Function("constants", code)(CONSTANTS);
}

/** The memory that a value was read from last, as doubles and as words. @type {Buffer | null} */
let viewed = null;
/** @type {Float64Array} */
let viewDoubles = new Float64Array(0);
/** @type {Int32Array} */
let viewWords = new Int32Array(0);

/** @param {Buffer} memory 8-byte aligned */
function view(memory) {
  viewDoubles = new Float64Array(memory.buffer, memory.byteOffset, memory.length >> 3);
  viewWords = new Int32Array(memory.buffer, memory.byteOffset, memory.length >> 2);
  viewed = memory;
}

/** @type {{slot: Slot, doubles: Float64Array, words: Int32Array} | undefined} */
let tape;

/** The slot of calls about shapes; its result is the fields of some texts. */
function theTape() {
  if (tape) return tape;
  const slot = native.newSlot();
  const { buffer } = slot.output;
  tape = { slot, doubles: new Float64Array(buffer), words: new Int32Array(buffer) };
  return tape;
}

/** The shapes of a store. */
export class Shapes {
  #handle;
  /** By the shape's number, from 1 on. @type {Maker[]} */
  #makers = [];
  /** Words of a text with all its fields, by the shape's number. @type {number[]} */
  #sizes = [];
  /** Names that were seen once: they are a shape when they come again. @type {Set<string>} */
  #candidates = new Set();
  /** Objects to pass over before one is looked at; the more of them were no use, the more. */
  #wait = 0;
  #misses = 0;
  #learning = true;

  /** @param {Handle} handle */
  constructor(handle) {
    this.#handle = handle;
    /** The flag that makes GET give fields, as soon as there are shapes. */
    this.flag = 0;
  }

  /** The value of a GET that gave an object. @param {Slot} slot @returns {any} */
  value(slot) {
    const { output, length, count } = slot;
    if (count > 0) {
      if (output !== viewed) view(output);
      const text = output.toString("latin1", 0, length);
      return this.#makers[count](text, (length + 8) >>> 3, viewDoubles, viewWords);
    }
    const value = decodeValue(output, 0, length, KIND.OBJECT, "json");
    if (this.#learning) this.#learn(value, output, 0, length);
    return value;
  }

  /**
   * The same where the call gave its text.
   * @param {Slot} slot with its own memory for results @param {string} text @returns {any}
   */
  valueOf(slot, text) {
    return this.#makers[slot.count](text, (text.length + 8) >>> 3, slot.doubles, slot.ints);
  }

  /**
   * The values of a page, which are all JSON.
   * @param {wire.Page} page
   * @returns {any[]}
   */
  values(page) {
    const { memory, count, keysLength, valuesLength } = page;
    const first = keysLength + 1; // behind the bracket
    const end = keysLength + valuesLength;
    // Values stand between brackets with commas between them: one JSON array.
    if (this.flag === 0 && !this.#isTime()) return JSON.parse(memory.toString("utf8", keysLength, end));
    const values = new Array(count);
    const walk = { memory, at: first, end: end - 1, values, done: 0 };
    this.#build(walk);
    if (walk.done < count) {
      const rest = JSON.parse(`[${memory.toString("utf8", walk.at, end)}`);
      for (const value of rest) values[walk.done++] = value;
    }
    return values;
  }

  /**
   * Builds values of JSON texts with commas between them, as long as that is worth it.
   * @param {{memory: Buffer, at: number, end: number, values: any[], done: number}} walk where it is: at the
   *   text of value number `done`; `end` is behind the last text
   */
  #build(walk) {
    const { memory, end, values } = walk;
    const { slot, doubles, words } = theTape();
    const address = native.address(memory);
    let unfit = 0;
    while (walk.at < end) {
      let { at, done } = walk;
      slot.borrowInput(address + at, end - at);
      if (this.#handle.ask(native.OP.FIELDS, slot) !== STATUS.OK || slot.count === 0) return;
      const first = at;
      const { length } = slot;
      const last = done + slot.count;
      let chunk = "";
      let learned = false;
      for (let head = 0; done < last && !learned; ) {
        const number = words[head];
        const textLength = words[head + 1] >>> 0;
        if (number > 0) {
          if (chunk === "") chunk = memory.toString("latin1", first, first + length);
          values[done++] = this.#makers[number](chunk, (head >> 1) + 1, doubles, words);
          head += this.#sizes[number];
        } else {
          // Where most do not fit, one JSON.parse for all of the rest is better.
          if (++unfit * 2 > done + MOST_UNFIT) break;
          const value = JSON.parse(memory.toString("utf8", at, at + textLength));
          values[done++] = value;
          head += 2;
          // Where there is a shape more, what follows may fit now.
          learned = this.#learning && this.#learn(value, memory, at, at + textLength);
        }
        at += textLength + 1;
      }
      walk.at = at;
      walk.done = done;
      if (done < last && !learned) return;
    }
  }

  /** Whether it is time to look at a value. */
  #isTime() {
    if (this.#wait === 0) return this.#learning;
    this.#wait--;
    return false;
  }

  /** Passes over some values; always some more. */
  #miss() {
    this.#wait = ++this.#misses;
    return false;
  }

  /**
   * Makes a shape of an object that came back through JSON.parse, where that may be of use.
   * @param {unknown} value @param {Buffer} memory @param {number} start @param {number} end
   * @returns {boolean} whether there is a shape more
   */
  #learn(value, memory, start, end) {
    if (typeof value !== "object" || value === null || !this.#isTime()) return false;
    if (end - start > MOST_TEXT || Array.isArray(value)) return this.#miss();
    const names = namesOf(/** @type {any} */ (value), memory.toString("latin1", start, end));
    if (names === null) return this.#miss();
    const candidate = JSON.stringify(names);
    if (this.#candidates.delete(candidate)) return this.#add(names, candidate);
    if (this.#candidates.size < MOST_CANDIDATES) {
      this.#candidates.add(candidate);
      return false;
    }
    // Many objects, all different: names that are data.
    this.#candidates.clear();
    return this.#miss();
  }

  /** @param {string[]} names @param {string} id the same as JSON */
  #add(names, id) {
    const { slot } = theTape();
    this.#learning = canGenerate();
    if (!this.#learning) return false;
    const maker = makerOf(names, id);
    slot.setInput(slot.input, 0);
    for (const name of names) wire.addKey(slot, name);
    // An older library does not know the operation; a handle has room for so many shapes.
    const number = this.#handle.ask(native.OP.SHAPE, slot) === STATUS.OK ? slot.count : 0;
    this.#learning = number > 0;
    if (!this.#learning) return false;
    this.#makers[number] = maker;
    this.#sizes[number] = 2 + 2 * names.length;
    this.flag = native.FIELDS;
    return true;
  }
}
