// What the tests share.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
export const ENTRY = join(PACKAGE, "lib", "index.js");
export const ENTRY_CJS = join(PACKAGE, "lib", "index.cjs");
export const LONG = Boolean(process.env.NT_LONG);

const root = mkdtempSync(join(tmpdir(), "ntee-test-"));
after(() => rmSync(root, { recursive: true, force: true }));
let made = 0;

/** A path where nothing is. */
export const freshDir = () => join(root, `s${made++}`);

/** The path of a closed store's log. */
export const logOf = (dir) =>
  join(
    dir,
    readdirSync(dir).find((name) => name.endsWith(".log")),
  );

/** Flips a bit where each of `texts` is in a store's log for the first time; the places. */
export function rot(dir, ...texts) {
  const log = readFileSync(logOf(dir));
  const places = texts.map((text) => {
    const at = log.indexOf(text);
    if (at < 0) throw new Error(`${text} is not in the log`);
    log[at] ^= 1;
    return at;
  });
  writeFileSync(logOf(dir), log);
  return places;
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

/** Collects garbage until `done` holds; whether it came to hold. */
export async function gcUntil(done, rounds = 100) {
  for (let i = 0; i < rounds; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (done()) return true;
    await new Promise((resolve) => setTimeout(resolve, 0)); // what done() looked at is kept until its turn ends
  }
  return false;
}
export const gc = () => collect();

/** The code of the error that `action` throws or rejects with; undefined where it does not. */
export async function codeOf(action) {
  try {
    await (typeof action === "function" ? action() : action);
    return undefined;
  } catch (error) {
    return error.code ?? error;
  }
}

/**
 * Runs a program in a process of its own: the text of a module, where `NteeDB`, `NteeError` and `dir` are
 * there; or, with `file`, the path of one, which gets `dir` as its argument.
 */
export function run(text, { dir = freshDir(), env = {}, args = [], execArgv = [], file = false } = {}) {
  const source = [
    `import { NteeDB, NteeError } from ${JSON.stringify(pathToFileURL(ENTRY).href)};`,
    `const dir = ${JSON.stringify(dir)};`,
    text,
  ].join("\n");
  const program = file ? [text, dir] : ["--input-type=module", "-e", source, "--"];
  const child = spawn(process.execPath, [...execArgv, ...program, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...env },
  });
  const ended = new Promise((resolve) => {
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    child.stderr.on("data", (chunk) => {
      err += chunk;
    });
    child.on("close", (code, signal) => resolve({ code, signal, out, err }));
  });
  return { child, dir, ended };
}

/** Numbers that look random and are the same for the same seed. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

/** The seed of a test: from NT_SEED, else from the clock; printed so that a failure can be had again. */
export function seed(t) {
  const value = process.env.NT_SEED ? Number(process.env.NT_SEED) : Date.now() % 1000000007;
  t.diagnostic(`NT_SEED=${value}`);
  return value;
}

export const bytewise = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
