// @ts-check

/**
 * slot: the memory of one call into the library: what it is told, a request, a result, a reply.
 *
 * All of them are owned by JavaScript and live as long as their slot; the library is given their addresses,
 * which are taken once. A slot belongs to one call at a time: whoever holds it must not let it go before the
 * call has come back. What is handed to users is always a copy.
 */

import { NteeError } from "./errors.js";

/** sizeof(ntee_reply) */
const REPLY_SIZE = 312;
/** sizeof(ntee_call): what a call is told, in memory; here it lies behind the reply. */
const CALL_SIZE = 56;
const TWO_32 = 4294967296;

/** Places of an ntee_reply's fields, in 32-bit words. */
const LENGTH = 0;
const NEEDED = 2;
const COUNT = 4;
const KEYS_LEN = 6;
const VALUES_LEN = 8;
const SCAN = 10;
const KIND = 12;
const FLAGS = 13;
const ERROR_ERRNO = 15;
const ERROR_ITEM = 18;
const STATUS = 14;
const ERROR_MESSAGE = 80; // in bytes

/** And those of its ntee_call. */
const CALL_DB = REPLY_SIZE / 4;
const CALL_OP = CALL_DB + 2;
const CALL_FLAGS = CALL_DB + 3;
const CALL_IN = CALL_DB + 4;
const CALL_IN_LENGTH = CALL_DB + 6;
const CALL_OUT = CALL_DB + 8;
const CALL_OUT_CAP = CALL_DB + 10;
const CALL_REPLY = CALL_DB + 12;

/** @param {number} size @returns {Buffer} memory of its own, 8-byte aligned */
export function memory(size) {
  try {
    return Buffer.allocUnsafeSlow(Math.ceil(size / 8) * 8);
  } catch {
    throw new NteeError("NTEE_NOMEM", `there is no memory for a buffer of ${size} bytes`);
  }
}

/** @param {Buffer} bytes */
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/** A request in the making. */
export class Request {
  /** @param {number} size */
  constructor(size) {
    this.inputLength = 0;
    this.input = memory(size);
    /** The same memory, for whole words. */
    this.view = viewOf(this.input);
  }

  /**
   * Makes room for a request of `size` bytes; what was written so far is kept.
   * @param {number} size
   * @param {number} [written] bytes to keep
   */
  needInput(size, written = 0) {
    if (size <= this.input.length) return;
    const larger = memory(Math.max(size, Math.min(this.input.length * 2, size + (64 << 20))));
    if (written > 0) this.input.copy(larger, 0, 0, written);
    this.setInput(larger, written);
  }

  /**
   * Writes a text as UTF-8 at `at`, where there is room. Returns its length in bytes.
   * @param {number} at
   * @param {string} text
   */
  writeText(at, text) {
    return this.input.write(text, at);
  }

  /**
   * Takes `memory` as the request.
   * @param {Buffer} memory not shared with anybody
   * @param {number} length
   */
  setInput(memory, length) {
    this.input = memory;
    this.view = viewOf(memory);
    this.inputLength = length;
  }
}

/**
 * The memory of the last large request, for the next one: new memory is slow, as the system clears it page by
 * page. Held weakly, so that it is the garbage collector's to take.
 * @type {WeakRef<Buffer> | null}
 */
let spare = null;
const SPARE_LEAST = 256 << 10;
const SPARE_MOST = 16 << 20;

/** @param {number} size @returns {Request} one that is likely to become large */
export function largeRequest(size) {
  const found = size >= SPARE_LEAST ? spare?.deref() : undefined;
  if (!found || found.length < size) return new Request(size);
  spare = null;
  const request = new Request(0);
  request.setInput(found, 0);
  return request;
}

/** Takes the memory of a request back, whose call has ended. @param {Buffer} memory nobody else has it */
export function giveBack(memory) {
  if (memory.length >= SPARE_LEAST && memory.length <= SPARE_MOST) spare = new WeakRef(memory);
}

const encoder = new TextEncoder();
/** Behind so many bytes of a request no view is kept: room for a head and a key of usual length. */
const MOST_VIEWS = 96;

export class Slot extends Request {
  /** The request's memory from a place on, by place. @type {Uint8Array[]} */
  #views = [];
  #address;
  #homeInput;
  #homeView;
  #homeOutput;
  #homeInputAt;
  #homeOutputAt;

  /**
   * @param {(memory: Uint8Array) => number} address gives the address of a piece of memory
   * @param {number} inputSize
   * @param {number} outputSize
   */
  constructor(address, inputSize, outputSize) {
    super(inputSize);
    this.#address = address;
    this.output = memory(outputSize);
    this.reply = memory(REPLY_SIZE + CALL_SIZE);
    this.words = new Uint32Array(this.reply.buffer, this.reply.byteOffset, this.reply.length / 4);
    this.inputAt = address(this.input);
    this.outputAt = address(this.output);
    /** Its result as doubles and as words, as long as it is its own memory. */
    this.doubles = new Float64Array(this.output.buffer, this.output.byteOffset, this.output.length >> 3);
    this.ints = new Int32Array(this.output.buffer, this.output.byteOffset, this.output.length >> 2);
    const replyAt = address(this.reply);
    /** Where the library finds what it is told. */
    this.callAt = replyAt + REPLY_SIZE;
    this.#putNumber(CALL_REPLY, replyAt);
    this.#putOutput();
    this.#putNumber(CALL_IN, this.inputAt);
    this.#homeInput = this.input;
    this.#homeView = this.view;
    this.#homeInputAt = this.inputAt;
    this.#homeOutput = this.output;
    this.#homeOutputAt = this.outputAt;
  }

  /** @param {number} word @param {number} value from 0 on */
  #putNumber(word, value) {
    this.words[word] = value;
    this.words[word + 1] = value / TWO_32;
  }

  #putOutput() {
    this.#putNumber(CALL_OUT, this.outputAt);
    this.#putNumber(CALL_OUT_CAP, this.output.length);
  }

  /**
   * Writes down a call with the request that is in the slot.
   * @param {number} low the store's address: its low half @param {number} high and its high one
   * @param {number} op @param {number} flags
   */
  tell(low, high, op, flags) {
    this.tellUnits(low, high, op, flags, 0);
    this.#putNumber(CALL_IN_LENGTH, this.inputLength);
  }

  /**
   * The same for a call that gets a key in 16-bit units.
   * @param {number} low @param {number} high @param {number} op @param {number} flags @param {number} count
   */
  tellUnits(low, high, op, flags, count) {
    const { words } = this;
    words[CALL_DB] = low;
    words[CALL_DB + 1] = high;
    words[CALL_OP] = op;
    words[CALL_FLAGS] = flags;
    words[CALL_IN_LENGTH] = count;
    words[CALL_IN_LENGTH + 1] = 0;
  }

  /** @param {Buffer} memory @param {number} length @override */
  setInput(memory, length) {
    super.setInput(memory, length);
    this.inputAt = this.#address(memory);
    this.#putNumber(CALL_IN, this.inputAt);
  }

  /**
   * encodeInto is faster than write for text that has just been made, but wants a view of its place.
   * @param {number} at
   * @param {string} text
   * @override
   */
  writeText(at, text) {
    if (at >= MOST_VIEWS || this.input !== this.#homeInput) return this.input.write(text, at);
    const view = (this.#views[at] ??= this.input.subarray(at));
    return /** @type {number} */ (encoder.encodeInto(text, view).written);
  }

  /**
   * Makes room for a result of `size` bytes; what is in it is lost.
   * @param {number} size
   */
  needOutput(size) {
    if (size > this.output.length) this.setOutput(memory(size));
  }

  /** @param {Buffer} memory 8-byte aligned, not shared with anybody */
  setOutput(memory) {
    this.output = memory;
    this.outputAt = this.#address(memory);
    this.#putOutput();
  }

  /** Goes back to its own memory, where it had to take other. */
  trim() {
    if (this.input !== this.#homeInput) {
      this.input = this.#homeInput;
      this.view = this.#homeView;
      this.inputAt = this.#homeInputAt;
      this.#putNumber(CALL_IN, this.inputAt);
    }
    if (this.output !== this.#homeOutput) {
      this.output = this.#homeOutput;
      this.outputAt = this.#homeOutputAt;
      this.#putOutput();
    }
  }

  /**
   * Has the call read its request from other memory, until setInput.
   * @param {number} at its address @param {number} length
   */
  borrowInput(at, length) {
    this.inputAt = at;
    this.#putNumber(CALL_IN, at);
    this.inputLength = length;
  }

  /** The status of the call, as its reply has it. */
  get status() {
    return this.words[STATUS];
  }
  get length() {
    return this.words[LENGTH] + this.words[LENGTH + 1] * TWO_32;
  }
  get needed() {
    return this.words[NEEDED] + this.words[NEEDED + 1] * TWO_32;
  }
  get count() {
    return this.words[COUNT] + this.words[COUNT + 1] * TWO_32;
  }
  get keysLength() {
    return this.words[KEYS_LEN] + this.words[KEYS_LEN + 1] * TWO_32;
  }
  get valuesLength() {
    return this.words[VALUES_LEN] + this.words[VALUES_LEN + 1] * TWO_32;
  }
  get kind() {
    return this.words[KIND];
  }
  get flags() {
    return this.words[FLAGS];
  }
  /** The number of an open scan, as its two halves; 0 and 0: none. */
  get scanLow() {
    return this.words[SCAN];
  }
  get scanHigh() {
    return this.words[SCAN + 1];
  }

  get errorErrno() {
    return this.words[ERROR_ERRNO];
  }
  /** Position in a batch or key list, or -1. */
  get errorItem() {
    return this.words[ERROR_ITEM + 1] === 0xffffffff
      ? -1
      : this.words[ERROR_ITEM] + this.words[ERROR_ITEM + 1] * TWO_32;
  }

  get errorMessage() {
    const end = this.reply.indexOf(0, ERROR_MESSAGE);
    return this.reply.toString("utf8", ERROR_MESSAGE, end < 0 ? REPLY_SIZE : end);
  }
}
