// The library's JSON check and JSON.parse agree on 200,000 generated and mutated documents.
//
//   node --test tests/unit/json_agrees.test.mjs
//
// NT_JSON_VERDICT names the program made of json_verdict.c; without it the test compiles it (CC, else cc).
// NT_SEED repeats a run.
import { test } from "node:test";
import assert from "node:assert/strict";
import { isUtf8 } from "node:buffer";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const COUNT = 200_000, ROUND = 20_000;
const seed = BigInt.asUintN(64, BigInt(process.env.NT_SEED ?? Date.now()));

let state = seed;
function below(n) {
  state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
  let z = state;
  z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return Number((z ^ (z >> 31n)) & 0xffffffffn) % n;
}
const pick = (choices) => choices[below(choices.length)];

const SPACES = ["", "", "", "", " ", "\n", "\t", "\r", "   "];
const NUMBERS = ["0", "-0", "1", "-12", "3.14", "1e5", "1E-7", "-0.0e+0", "123456789012345678901234567890", "1e999"];
const PARTS = ["", "a", "plain text of some length", "\\n", "\\u00e9", "\\ud800", "\\\\", "\\\"", "é", "€", "\u{1f600}",
  "\u2028", "\x7f", "/", "__proto__", "\ufeff", "\ufffd", "\uffff"];
const string = () => `"${Array.from({ length: below(5) }, () => pick(PARTS)).join("")}"`;

function value(depth) {
  const space = pick(SPACES), kind = below(depth > 6 ? 6 : 10);
  if (kind < 2) return space + string() + pick(SPACES);
  if (kind < 4) return space + pick(NUMBERS) + pick(SPACES);
  if (kind < 6) return space + pick(["true", "false", "null", "{}", "[]", "[ ]"]) + pick(SPACES);
  const items = Array.from({ length: below(4) }, () => value(depth + 1));
  if (kind < 8) return `${space}[${items.join(",")}]${pick(SPACES)}`;
  return `${space}{${items.map((item) => `${pick(SPACES)}${string()}${pick(SPACES)}:${item}`).join(",")}}${pick(SPACES)}`;
}

const LIKELY = Buffer.from('"\\{}[],:0123456789-+.eEutfn \n\t/');
const UNLIKELY = Buffer.from([0, 1, 0x1f, 0x7f, 0x80, 0xbf, 0xc0, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff]);

function mutate(bytes) {
  const at = below(bytes.length + 1), piece = Buffer.of(pick(below(3) ? LIKELY : UNLIKELY));
  switch (below(5)) {
    case 0: return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)]);
    case 1: return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
    case 2: return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + 1)]);
    case 3: return bytes.subarray(0, at);
    default: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] ^= 1 << below(8);
      return copy;
    }
  }
}

// What JSON.parse says: "0" not JSON, "1" JSON, "2" an object.
function verdict(bytes) {
  if (!isUtf8(bytes)) return "0";
  const text = bytes.toString();
  try {
    JSON.parse(text);
  } catch {
    return "0";
  }
  return /^[ \t\r\n]*\{/.test(text) ? "2" : "1";
}

// The C side's answers, as a string of one character each.
function ask(program, documents) {
  const parts = documents.flatMap((bytes) => {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(bytes.length);
    return [head, bytes];
  });
  const run = spawnSync(program, { input: Buffer.concat(parts), maxBuffer: 1 << 24 });
  assert.equal(run.status, 0, String(run.stderr));
  return run.stdout.toString("latin1");
}

function compile(dir) {
  const program = join(dir, "json_verdict");
  const sources = ["tests/unit/json_verdict.c", "src/format/json.c", "src/base/os.c", "src/base/os_posix.c"];
  execFileSync(process.env.CC ?? "cc", ["-std=c11", "-O2", "-Iinclude", "-Isrc", ...sources, "-lpthread", "-o", program],
    { cwd: ROOT, stdio: "inherit" });
  return program;
}

test(`${COUNT} documents, NT_SEED=${seed}`, () => {
  const dir = mkdtempSync(join(tmpdir(), "nt-json-"));
  const seen = { 0: 0, 1: 0, 2: 0 };
  try {
    const program = process.env.NT_JSON_VERDICT ?? compile(dir);
    for (let done = 0; done < COUNT; done += ROUND) {
      const documents = Array.from({ length: ROUND }, () => {
        let bytes = Buffer.from(value(0));
        for (let n = below(3); n > 0; n--) bytes = mutate(bytes);
        return bytes;
      });
      const answers = ask(program, documents);
      assert.equal(answers.length, ROUND);
      documents.forEach((bytes, i) => {
        const want = verdict(bytes);
        seen[want]++;
        if (answers[i] !== want) assert.fail(`${answers[i]} instead of ${want}: ${bytes.toString("hex")}`);
      });
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
  console.log(`not JSON: ${seen[0]}, JSON: ${seen[1]}, objects: ${seen[2]}`);
  for (const count of Object.values(seen)) assert.ok(count > COUNT / 20, "the generator is out of balance");
});
