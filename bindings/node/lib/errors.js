// @ts-check

/**
 * errors: the one class of error that this package makes, and the names of the library's statuses.
 */

/** Names by status number, as ntee.h lists them. */
export const NAMES = Object.freeze([
  "NTEE_OK",
  "NTEE_NOT_FOUND",
  "NTEE_INVALID",
  "NTEE_TOO_LARGE",
  "NTEE_LOCKED",
  "NTEE_IO",
  "NTEE_FULL",
  "NTEE_CORRUPT",
  "NTEE_VERSION",
  "NTEE_NOMEM",
  "NTEE_TYPE",
  "NTEE_OVERFLOW",
  "NTEE_EXISTS",
  "NTEE_CLOSED",
  "NTEE_READONLY",
  "NTEE_FORKED",
  "NTEE_CANCELLED",
  "NTEE_SHORT_BUFFER",
  "NTEE_WOULD_BLOCK",
]);

/** Statuses that the code looks at. */
export const STATUS = Object.freeze({
  OK: 0,
  NOT_FOUND: 1,
  TOO_LARGE: 3,
  EXISTS: 12,
  CLOSED: 13,
  SHORT_BUFFER: 17,
  WOULD_BLOCK: 18,
});

/** What every failure of this package is, misuse of arguments included. */
export class NteeError extends Error {
  /**
   * @param {string} code the status' name, "NTEE_IO"
   * @param {string} message
   * @param {{item?: number, errno?: number}} [detail] `item`: position in a list of items or keys;
   *   `errno`: what the operating system said
   */
  constructor(code, message, detail) {
    super(message);
    this.code = code;
    if (detail?.item !== undefined) this.item = detail.item;
    if (detail?.errno !== undefined) this.errno = detail.errno;
  }
}
Object.defineProperty(NteeError.prototype, "name", {
  value: "NteeError",
  configurable: true,
  writable: true,
});

/** @param {string} message */
export const invalid = (message) => new NteeError("NTEE_INVALID", message);
/** @param {string} message */
export const tooLarge = (message) => new NteeError("NTEE_TOO_LARGE", message);
export const closed = () => new NteeError("NTEE_CLOSED", "the store is closed");

/**
 * Names the item of a list in the error that its content made; other people's errors pass as they are.
 * @param {unknown} error
 * @param {number} item
 */
export const atItem = (error, item) =>
  error instanceof NteeError ? new NteeError(error.code, `item ${item}: ${error.message}`, { item }) : error;
