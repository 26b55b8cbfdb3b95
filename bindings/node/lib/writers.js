// @ts-check

/**
 * writers: which objects have a writer of their own (flat.js), and how a request gets its values.
 *
 * Shapes are learned from the objects that come by: one that is seen a few times gets a writer. Their number
 * is bounded, and so are the attempts to learn; of users' objects only names are kept.
 */

import { types } from "node:util";
import { fits, makeWriter, mayGenerate } from "./flat.js";
import { encodeValue } from "./values.js";
import { addWrite } from "./wire.js";

/** @typedef {import('./slot.js').Request} Request */
/** @typedef {string | Uint8Array} Bytes */

const { isAnyArrayBuffer, isBoxedPrimitive, isProxy } = types;
const { getPrototypeOf, keys: namesOf, prototype: PLAIN } = Object;

const SHAPES_MOST = 32;
const CANDIDATES_MOST = 8;
/** A shape is worth a writer when it comes for this time. */
const SEEN_OFTEN = 4;
/** So many strangers in a row, and no more is learned. */
const STRANGERS_MOST = 500;
/** After so many objects without a shape in a row, only one of a few is looked at: looking costs, too. */
const PATIENCE = 64;
const LOOK_AT = 16;

/** A writer that leaves objects to JSON.stringify too often is given up: what it starts with and can save. */
const CREDIT = 64;
const CREDIT_MOST = 1024;
const MISS = 2;
const BIG_MISS = 16;

class Shape {
  /** @param {string[]} names */
  constructor(names) {
    this.names = names;
    this.length = names.length;
    this.last = names[names.length - 1];
    this.credit = CREDIT;
    /** null: given up @type {import('./flat.js').Writer | null} */
    this.write = makeWriter(names, (much) => {
      this.credit -= much ? BIG_MISS : MISS;
      if (this.credit < 0) this.write = null;
    });
  }

  /** @param {string[]} names */
  is(names) {
    const { length } = this;
    if (names.length !== length || names[length - 1] !== this.last) return false;
    const mine = this.names;
    for (let i = 0; i < length; i++) if (names[i] !== mine[i]) return false;
    return true;
  }
}

/** @type {Shape[]} */
const shapes = [];
/** The shape of the last object. @type {Shape | null} */
let latest = null;
let learning = mayGenerate;
let strangers = 0;
/** Objects since the last that had a shape. */
let without = 0;
/** @type {{names: string[], seen: number}[]} */
const candidates = [];

/** @param {object} value that has no shape @param {string[]} names its own */
function learn(value, names) {
  const known = candidates.findIndex(
    (one) => one.names.length === names.length && one.names.every((name, i) => name === names[i]),
  );
  if (known < 0) {
    if (++strangers > STRANGERS_MOST) learning = false;
    const prototype = getPrototypeOf(value);
    if ((prototype !== PLAIN && prototype !== null) || !fits(names)) return;
    if (candidates.length === CANDIDATES_MOST) candidates.shift();
    candidates.push({ names, seen: 1 });
  } else if (++candidates[known].seen >= SEEN_OFTEN) {
    candidates.splice(known, 1);
    shapes.push(new Shape(names));
    strangers = 0;
    if (shapes.length === SHAPES_MOST) learning = false;
  }
  if (!learning) candidates.length = 0;
}

/**
 * The shape of an object that a writer can be right about. Nothing here can be seen by the object: so not of
 * a proxy, whose traps see every question. Nor of what JSON.stringify or we take for something else than an
 * object: arrays, boxed primitives, bytes.
 * @param {object} value
 * @returns {Shape | null}
 */
function shapeOf(value) {
  if (ArrayBuffer.isView(value) || isProxy(value) || Array.isArray(value)) return null;
  if (++without > PATIENCE && without % LOOK_AT !== 0) return null;
  const names = namesOf(value);
  const shape = latest !== null && latest.is(names) ? latest : find(names);
  if (isBoxedPrimitive(value) || isAnyArrayBuffer(value)) return null;
  if (shape === null && learning) learn(value, names);
  return shape;
}

/** @param {string[]} names */
function find(names) {
  for (const shape of shapes) {
    if (!shape.is(names)) continue;
    latest = shape;
    return shape;
  }
  return null;
}

/**
 * Appends the write of a value to a request. May run the user's code, which may use the same request if it
 * is `fresh`: one that begins with this write.
 * @param {Request} request @param {number} type @param {Bytes} key @param {unknown} value
 * @param {boolean} fresh
 */
export function addValue(request, type, key, value, fresh) {
  const worth = typeof value === "object" && value !== null && (learning || latest !== null);
  const shape = worth ? shapeOf(value) : null;
  /** @type {Bytes | null} */
  let bytes = null;
  if (shape !== null && shape.write !== null) {
    bytes = shape.write(value, request, type, key, fresh);
    if (bytes === "") {
      without = 0;
      if (shape.credit < CREDIT_MOST) shape.credit++;
      return;
    }
  }
  bytes ??= encodeValue(value);
  if (fresh) request.inputLength = 0;
  addWrite(request, type, key, bytes);
}
