// @ts-check

/**
 * native: the only file that knows koffi. It finds and loads the library, checks that it is the right one,
 * and makes the calls.
 *
 * Nearly everything crosses as plain numbers: a pointer is the address of memory that JavaScript owns (a
 * slot, see slot.js) or of a store (see handle.js). koffi takes a number for a pointer without asking, so
 * nothing that a user passed may get here unchecked; the one thing of theirs that crosses as it is is a key
 * that is known to be a string (runUnits). What a call is told lies in its slot, and the library reads it
 * when the call begins, perhaps on another thread: a slot that is out is left alone. koffi does not keep memory alive during an async call, but it
 * keeps the callback: so the callback of start() must refer to the slot.
 */

import koffi from "koffi";
import { isMainThread } from "node:worker_threads";
import { NteeError, NAMES } from "./errors.js";
import { locate } from "./locate.js";
import { Slot } from "./slot.js";

/** The NTEE_ABI of the header that this code was written against. */
const ABI = 1;

/** Operations and flags of ntee_run. */
export const OP = Object.freeze({
  GET: 1,
  HAS: 2,
  GET_MANY: 3,
  WRITE: 4,
  SCAN: 5,
  SCAN_NEXT: 6,
  SCAN_CLOSE: 7,
  COUNT: 8,
  STATS: 9,
  SYNC: 10,
  SHAPE: 11,
  FIELDS: 12,
  DETAILS: 13,
  VERIFY: 14,
});
export const AT_HAND = 1;
export const FIELDS = 2;
/** NTEE_UNITS_MAX */
export const UNITS_MOST = 256;

/** Flags of ntee_open. */
const READ_ONLY = 1;
const SYNC_EVERY_WRITE = 2;
const NO_MMAP = 4;
const ACCEPT_DAMAGE = 8;
const OPTIONS_SIZE = 80;

/** Room for what the engine calls "at hand": 64 KiB of values and their page. */
const SYNC_OUTPUT = 128 << 10;

/** @typedef {(error: Error | null, status: number) => void} Callback */

/** @param {ArrayBufferView} memory */
export const address = (memory) => Number(koffi.address(memory));

const RTLD_NOW = 2;

/**
 * Keeps the library in the process. koffi lets go of it when a worker or the process ends, and a store's own
 * thread may be running in it then.
 * @param {string} path
 */
function pin(path) {
  koffi.load(null).func("void *dlopen(const char *, int)")(path, RTLD_NOW);
}

/**
 * In a worker thread: has the system close a store when the thread ends, however it ends. worker.terminate()
 * runs no JavaScript, so this is left to the destructor of a thread-specific value.
 */
const threads = isMainThread
  ? null
  : (() => {
      const libc = koffi.load(null);
      const keySize = process.platform === "darwin" ? 8 : 4;
      const create = libc.func("int pthread_key_create(void *, void *)");
      const remove = libc.func("int pthread_key_delete(size_t)");
      const set = libc.func("int pthread_setspecific(size_t, uintptr_t)");
      return {
        /** @param {number} pointer @returns {number | null} null where the process has no key left */
        guard(pointer) {
          const place = Buffer.alloc(8);
          if (create(place, library.closeAddress) !== 0) return null;
          const key = keySize === 8 ? Number(place.readBigUInt64LE(0)) : place.readUInt32LE(0);
          set(key, pointer);
          return key;
        },
        /** @param {number} key */
        unguard(key) {
          set(key, 0);
          remove(key);
        },
      };
    })();

/** @param {number} pointer a store that has just been opened @returns {number | null} for unguard() */
export const guard = (pointer) => threads && threads.guard(pointer);
/** @param {number | null} key */
export const unguard = (key) => {
  if (threads && key !== null) threads.unguard(key);
};

function load() {
  const { path, tried, key } = locate();
  if (path === null) {
    throw new NteeError("NTEE_IO", `the native library for ${key} was not found; tried ${tried.join(", ")}`);
  }
  let library;
  try {
    library = koffi.load(path);
  } catch (error) {
    throw new NteeError(
      "NTEE_IO",
      `the native library ${path} for ${key} does not load: ${Object(error).message}`,
    );
  }
  const abi = library.func("int ntee_abi(void)")();
  if (abi !== ABI) {
    throw new NteeError(
      "NTEE_VERSION",
      `the native library ${path} has ABI ${abi}, this package needs ${ABI}`,
    );
  }
  pin(path);
  const errorType = koffi.struct({
    status: "int32_t",
    os_errno: "int32_t",
    offset: "int64_t",
    item: "int64_t",
    message: koffi.array("char", 232),
  });
  return {
    errorType,
    strerror: library.func("const char *ntee_strerror(int)"),
    lastError: library.func("void *ntee_last_error(void)"),
    open: library.func("int ntee_open(uintptr_t, uintptr_t, uintptr_t)"),
    close: library.func("int ntee_close(uintptr_t)"),
    closeAddress: library.symbol("ntee_close"),
    destroy: library.func("int ntee_destroy(uintptr_t)"),
    drop: library.func("int ntee_drop(uintptr_t)"),
    run: library.func("int ntee_run_call(uintptr_t)"),
    runUnits: library.func("const char *ntee_run_units(uintptr_t, str16)"),
  };
}

/** @type {ReturnType<typeof load>} */
let library;
/** The slot of all synchronous calls. @type {Slot} */
let scratch;

/** Loads the library at its first use, so that importing the package never fails. */
function ready() {
  if (library) return;
  library = load();
  scratch = new Slot(address, 256 << 10, SYNC_OUTPUT);
}

/** The slot for a call that ends before anything else can happen. */
export function syncSlot() {
  scratch.trim();
  return scratch;
}

/** A slot for a call that goes to a libuv thread. */
export const newSlot = () => new Slot(address, 4 << 10, 64 << 10);

/**
 * Makes a call and waits for it. What it is told crosses in the slot's memory: arguments cost.
 * @param {number} low half of the store's address
 * @param {number} high half
 * @param {number} op
 * @param {number} flags
 * @param {Slot} slot holds the request, and the answer afterwards
 * @returns {number} status
 */
export function run(low, high, op, flags, slot) {
  slot.tell(low, high, op, flags);
  return library.run(slot.callAt);
}

/**
 * GET and HAS of a key that crosses as it is, without becoming bytes first. The status is in the slot;
 * NTEE_INVALID where the key has a character beyond ASCII.
 * @param {number} low @param {number} high @param {number} op @param {number} flags @param {Slot} slot
 * @param {string} key a primitive of at most UNITS_MOST units
 * @returns {string | null} the text of an object that has fields behind it, in the slot
 */
export function runUnits(low, high, op, flags, slot, key) {
  slot.tellUnits(low, high, op, flags, key.length);
  return library.runUnits(slot.callAt, key);
}

/**
 * Hands a call to a libuv thread. Throws what koffi throws where it has no place for another one.
 * @param {number} low @param {number} high
 * @param {number} op
 * @param {Slot} slot
 * @param {Callback} callback refers to the slot
 */
export function start(low, high, op, slot, callback) {
  slot.tell(low, high, op, 0);
  library.run.async(slot.callAt, callback);
}

/** Whether an error says that koffi has no place for another async call. @param {unknown} error */
export const isCapError = (error) => /asynchronous calls/i.test(String(Object(error).message));

/** The error of a failed ntee_run. @param {number} status @param {Slot} slot */
export function failure(status, slot) {
  const item = slot.errorItem;
  const errno = slot.errorErrno;
  return new NteeError(NAMES[status] ?? "NTEE_IO", slot.errorMessage || library.strerror(status), {
    item: item < 0 ? undefined : item,
    errno: errno || undefined,
  });
}

/** The error of any other call that failed in this thread just now. @param {number} status */
function lastFailure(status) {
  const detail = koffi.decode(library.lastError(), library.errorType);
  return new NteeError(NAMES[status] ?? "NTEE_IO", detail.message || library.strerror(status), {
    errno: detail.os_errno || undefined,
  });
}

/**
 * Puts a path, NUL-terminated, into the scratch slot from `at` on.
 * @param {string} path
 * @param {number} at
 */
function putPath(path, at) {
  const length = Buffer.byteLength(path);
  scratch.needInput(at + length + 1);
  scratch.input.write(path, at);
  scratch.input[at + length] = 0;
  return scratch.inputAt + at;
}

/**
 * @param {string} path without NUL
 * @param {{readOnly: boolean, syncEveryWrite: boolean, useMmap: boolean, acceptDamage: boolean,
 *   syncIntervalMs: number, hintEveryN: number}} options
 * @returns {number} the store's address
 */
export function open(path, options) {
  ready();
  const at = putPath(path, OPTIONS_SIZE);
  const { input, output } = scratch;
  input.fill(0, 0, OPTIONS_SIZE);
  input.writeUInt32LE(OPTIONS_SIZE, 0);
  input.writeUInt32LE(
    (options.readOnly ? READ_ONLY : 0) |
      (options.syncEveryWrite ? SYNC_EVERY_WRITE : 0) |
      (options.useMmap ? 0 : NO_MMAP) |
      (options.acceptDamage ? ACCEPT_DAMAGE : 0),
    8,
  );
  input.writeUInt32LE(options.syncIntervalMs, 12);
  input.writeBigUInt64LE(BigInt(options.hintEveryN), 16);
  const status = library.open(at, scratch.inputAt, scratch.outputAt);
  if (status !== 0) throw lastFailure(status);
  return output.readUInt32LE(0) + output.readUInt32LE(4) * 4294967296;
}

/** @param {string} path without NUL */
export function destroy(path) {
  ready();
  const status = library.destroy(putPath(path, 0));
  if (status !== 0) throw lastFailure(status);
}

/** Closes a store and waits; with `drop` destroys it too. @param {number} pointer @param {boolean} drop */
export function close(pointer, drop) {
  const status = (drop ? library.drop : library.close)(pointer);
  return status === 0 ? null : lastFailure(status);
}

/**
 * The same on a libuv thread. Throws as start() does.
 * @param {number} pointer @param {boolean} drop @param {(error: NteeError | null) => void} done
 */
export function closeAsync(pointer, drop, done) {
  const call = drop ? library.drop : library.close;
  call.async(pointer, (/** @type {Error | null} */ error, /** @type {number} */ status) => {
    if (error) return done(new NteeError("NTEE_IO", error.message));
    // The detail belongs to the other thread.
    done(status === 0 ? null : new NteeError(NAMES[status] ?? "NTEE_IO", library.strerror(status)));
  });
}
