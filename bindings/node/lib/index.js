// @ts-check

export { NteeDB } from "./db.js";
export { NteeError } from "./errors.js";
