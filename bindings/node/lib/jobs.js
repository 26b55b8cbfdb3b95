// @ts-check

/**
 * jobs: what all jobs for the gate are made of.
 */

import { closed } from "./errors.js";
import { gate } from "./gate.js";

/** @typedef {import("./handle.js").Handle} Handle */
/** @typedef {import("./gate.js").Fifo} Fifo */

/** What all jobs are. */
export class Job {
  /**
   * @param {object} db kept alive until the job is done: a collected NteeDB closes its handle
   * @param {Handle} handle
   */
  constructor(db, handle) {
    this.db = db;
    this.handle = handle;
    /** @type {(value: any) => void} */
    this.resolve = unset;
    /** @type {(error: unknown) => void} */
    this.reject = unset;
  }

  /** @param {Fifo} _waiting @returns {any} */
  admit(_waiting) {
    return this;
  }

  /** @param {unknown} error */
  fail(error) {
    this.reject(error);
  }
}

function unset() {}

/**
 * Hands a job to the gate.
 * @param {Job & import('./gate.js').Waiting} job
 * @returns {Promise<any>}
 */
export function queued(job) {
  // The user's code may have closed the store while the arguments were read.
  if (!job.handle.open) throw closed();
  return new Promise((resolve, reject) => {
    job.resolve = resolve;
    job.reject = reject;
    gate.submit(job);
  });
}

/** Stands for a value that cannot be given. */
export class Failed {
  /** @param {unknown} error */
  constructor(error) {
    this.error = error;
  }
}

/** @param {unknown} error */
export const failed = (error) => new Failed(error);

/** @param {unknown} error */
export const raise = (error) => {
  throw error;
};
