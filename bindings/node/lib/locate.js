// @ts-check

/**
 * locate: where the native library is.
 *
 * In this order: the file that the environment variable NTEE_LIBRARY names; prebuilds/<key>/ in this package;
 * prebuilds/<key>/ at the root of a checkout of the repository.
 */

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

/** Whether this Node was built for musl (Alpine) rather than glibc. */
function isMusl() {
  if (process.platform !== "linux") return false;
  const loader = `/lib/ld-musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`;
  if (!existsSync(loader)) return false;
  // Both may be installed. A report knows which one this process runs on, but takes its time.
  const header = /** @type {any} */ (process.report.getReport()).header;
  return !header.glibcVersionRuntime;
}

/** The name of this platform's folder of prebuilds: "linux-x64", "linux-x64-musl", "darwin-arm64". */
export function platformKey() {
  return `${process.platform}-${process.arch}${isMusl() ? "-musl" : ""}`;
}

/**
 * The files to try, in order.
 * @param {string} key
 */
function candidates(key) {
  const named = process.env.NTEE_LIBRARY;
  if (named) return [resolve(named)];
  const file = process.platform === "darwin" ? "libntee.dylib" : "libntee.so";
  const here = join(import.meta.dirname, "..");
  return [join(here, "prebuilds", key, file), join(here, "..", "..", "prebuilds", key, file)];
}

/** @returns {{path: string | null, tried: string[], key: string}} */
export function locate() {
  const key = platformKey();
  const tried = candidates(key);
  return { path: tried.find((file) => existsSync(file)) ?? null, tried, key };
}
