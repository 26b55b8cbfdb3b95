// What is stored for a value, and what comes back for it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { runInNewContext } from "node:vm";
import { NteeDB } from "../lib/index.js";
import { codeOf, freshDir, LONG, random, seed } from "./support.js";

const db = NteeDB.open(freshDir());
after(() => db.close());

/** Stores `value` and gives it as every way of reading gives it, having compared them. */
async function through(value) {
  db.put("v", value);
  const got = db.getSync("v");
  assert.deepStrictEqual(await db.get("v"), got);
  assert.deepStrictEqual(db.getManySync(["v", "none"]), [got, null]);
  assert.deepStrictEqual(await db.getMany(["none", "v"]), [null, got]);
  assert.deepStrictEqual(await db.prefixScanRecords("v"), [{ key: "v", value: got }]);
  for await (const entry of db.entries("v")) assert.deepStrictEqual(entry, { key: "v", value: got });
  return got;
}

test("what JSON has comes back as it was", async () => {
  for (const value of [
    {},
    [],
    { a: 1, b: [true, false, null, "ü😀\0"] },
    0,
    1.5,
    -1e300,
    true,
    false,
    null,
    [[[]]],
    { "": "" },
  ]) {
    assert.deepStrictEqual(await through(value), value);
  }
});

test("a string is its own text: JSON comes back parsed, other text as a Buffer", async () => {
  for (const text of [
    "0",
    "false",
    '""',
    "null",
    "[]",
    "{}",
    "123",
    " \n123\t",
    '"a\\u0000b"',
    '"\u2028"',
    "1e400",
    "12345678901234567890",
    "-0",
    '{"a":1,"a":2}',
    '"\\ud800"',
  ]) {
    assert.deepStrictEqual(await through(text), JSON.parse(text), text);
    assert.equal(await db.get("v", { as: "text" }), text);
  }
  assert.ok(Object.is(await through("-0"), -0));
  for (const text of [
    "",
    "hello",
    "01",
    "+1",
    "1.",
    ".5",
    "NaN",
    "'a'",
    "\u00a01",
    "1 2",
    "{a:1}",
    "[1,]",
    "undefined",
    "\ufeff1",
    '"\t"',
  ]) {
    assert.deepStrictEqual(await through(text), Buffer.from(text), text);
    assert.equal(await db.get("v", { as: "text" }), text);
  }
});

test("bytes are bytes: valid JSON comes back parsed, anything else byte-exact", async () => {
  const hex = [
    "efbbbf7b7d",
    "22ff22",
    "22eda08022",
    "22c08022",
    "220122",
    "3100",
    "",
    "00",
    "ff",
    "5b315d5d",
  ];
  for (const item of hex)
    assert.deepStrictEqual(await through(Buffer.from(item, "hex")), Buffer.from(item, "hex"), item);
  assert.deepStrictEqual(await through(Buffer.from('{"a":1}')), { a: 1 });
});

test("every kind of bytes is taken as it lies in memory", async () => {
  const memory = new Uint8Array([0, 1, 2, 3, 4, 5, 6, 0xff, 8, 9, 10, 11, 12, 13, 14, 15]);
  const shared = new SharedArrayBuffer(4);
  new Uint8Array(shared).set([1, 2, 3, 4]);
  const cases = [
    [memory, memory],
    [memory.subarray(3, 9), memory.subarray(3, 9)],
    [memory.buffer, memory],
    [new DataView(memory.buffer, 1, 5), memory.subarray(1, 6)],
    [new Float64Array(memory.buffer), memory],
    [new Uint16Array(memory.buffer, 2, 2), memory.subarray(2, 6)],
    [new BigInt64Array(memory.buffer), memory],
    [shared, new Uint8Array(shared)],
    [Buffer.from(memory), memory],
    [new Uint8ClampedArray([1, 2]), new Uint8Array([1, 2])],
    [runInNewContext("new Uint8Array([1, 2, 3])"), new Uint8Array([1, 2, 3])],
    [runInNewContext("new ArrayBuffer(3)"), new Uint8Array(3)],
  ];
  for (const [value, bytes] of cases) {
    const got = await through(value);
    assert.ok(Buffer.isBuffer(got));
    assert.deepStrictEqual(got, Buffer.from(bytes));
  }
});

test("a subclass that lies about its length stores what it has", async () => {
  class Liar extends Uint8Array {
    get length() {
      return 1000;
    }
    get byteLength() {
      return 1 << 30;
    }
    get byteOffset() {
      return -5;
    }
    get buffer() {
      return null;
    }
  }
  assert.deepStrictEqual(await through(new Liar([0xff, 2])), Buffer.from([0xff, 2]));
  db.put(new Liar([0xfe, 3]), 1);
  assert.equal(db.getSync(Buffer.from([0xfe, 3])), 1);
});

test("what JSON has no text for is refused, and the old value stays", async () => {
  db.put("v", "old");
  const detached = new Uint8Array(4);
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  const refused = [
    undefined,
    () => 1,
    Symbol("x"),
    10n,
    NaN,
    Infinity,
    -Infinity,
    { toJSON() {} },
    { toJSON: () => () => {} },
    { toJSON: () => Symbol("x") },
    "\ud800",
    "a\udfffb",
    detached,
    detached.buffer,
    class {},
  ];
  const before = await db.stats();
  for (const value of refused) {
    assert.throws(() => db.put("v", value), { name: "NteeError", code: "NTEE_INVALID" });
    assert.throws(() => db.putIfAbsent("v2", value), { code: "NTEE_INVALID" });
    assert.equal(await codeOf(db.putAsync("v", value)), "NTEE_INVALID");
    assert.equal(await codeOf(db.putMany([{ key: "v", value }])), "NTEE_INVALID");
  }
  assert.deepStrictEqual(await db.stats(), before);
  assert.equal(db.getSync("v", { as: "text" }), "old");
});

test("what JSON.stringify throws is thrown", async () => {
  const cyclic = {};
  cyclic.self = cyclic;
  const mine = new Error("mine");
  const cases = [
    [{ a: 1n }, TypeError],
    [cyclic, TypeError],
    [
      {
        toJSON() {
          throw mine;
        },
      },
      mine,
    ],
    [
      {
        get a() {
          throw mine;
        },
      },
      mine,
    ],
  ];
  db.put("v", "old");
  for (const [value, expected] of cases) {
    assert.throws(() => db.put("v", value), expected);
    await assert.rejects(db.putAsync("v", value), expected);
    await assert.rejects(db.putMany([{ key: "w", value }]), expected);
  }
  assert.equal(db.getSync("v", { as: "text" }), "old");
});

test("inside an object JSON.stringify's rules hold", async () => {
  for (const value of [
    { a: NaN, b: undefined, c: () => 1 },
    [undefined, Symbol("x")],
    new Date(5),
    new Map([[1, 2]]),
    new String("s"),
    new Number(NaN),
    { toJSON: () => "é" },
    { e: "\ud800", f: "\ud83d\ude00" },
    new Error("x"),
    -0,
    /x/,
    new Set([1]),
  ]) {
    assert.deepStrictEqual(await through(value), JSON.parse(JSON.stringify(value)));
  }
});

test("names that prototypes use are names like others", async () => {
  db.put("__proto__", { polluted: 1 });
  assert.deepStrictEqual(await db.getMany(["__proto__", "constructor", "toString"]), [
    { polluted: 1 },
    null,
    null,
  ]);
  const value = JSON.parse('{"__proto__":{"x":1},"constructor":2}');
  assert.deepStrictEqual(await through(value), value);
  assert.equal({}.polluted, undefined);
  assert.equal({}.x, undefined);
});

test("as text gives any valid UTF-8, as buffer any bytes", async () => {
  const cases = [
    ['{"a": 1}', '{"a": 1}'],
    [{ a: 1 }, '{"a":1}'],
    ["plain", "plain"],
    ["", ""],
    [null, "null"],
    [Buffer.from("é"), "é"],
  ];
  for (const [value, text] of cases) {
    db.put("v", value);
    assert.equal(db.getSync("v", { as: "text" }), text);
    assert.equal(await db.get("v", { as: "text" }), text);
    assert.deepStrictEqual(db.getManySync(["v", "no"], { as: "text" }), [text, null]);
    assert.deepStrictEqual(await db.getMany(["no", "v"], { as: "buffer" }), [null, Buffer.from(text)]);
    assert.deepStrictEqual(await db.get("v", { as: "buffer" }), Buffer.from(text));
    assert.deepStrictEqual(await db.prefixScanRecords("v", { as: "text" }), [{ key: "v", value: text }]);
    assert.deepStrictEqual(await db.rangeScanRecords({ gte: "v", lte: "v" }, { as: "buffer" }), [
      { key: "v", value: Buffer.from(text) },
    ]);
  }
  db.put("v", Buffer.from([0xff]));
  assert.throws(() => db.getSync("v", { as: "text" }), { code: "NTEE_INVALID" });
  assert.equal(await codeOf(db.get("v", { as: "text" })), "NTEE_INVALID");
  assert.equal(await codeOf(db.getMany(["v"], { as: "text" })), "NTEE_INVALID");
  assert.equal(await codeOf(db.prefixScanRecords("v", { as: "text" })), "NTEE_INVALID");
  assert.deepStrictEqual(db.getSync("v", { as: "json" }), Buffer.from([0xff]));
});

test("deep nesting comes back", async () => {
  const text = "[".repeat(100000) + "]".repeat(100000);
  db.put("deep", text);
  let depth = 0;
  for (let at = await db.get("deep"); at !== undefined; at = at[0]) depth++;
  assert.equal(depth, 100000);
  assert.equal(db.getSync("deep", { as: "text" }), text);
  await db.putMany([{ key: "deep", value: '{"a":'.repeat(50000) + "1" + "}".repeat(50000) }]);
  assert.equal(typeof (await db.get("deep")), "object");
  db.delete("deep");
});

// ---- Generated values ----

const WORDS = [
  "",
  "a",
  "key",
  "ü",
  "😀",
  "\u2028",
  '"',
  "\\",
  "\0",
  "\u001f",
  "\ud83d\ude00",
  "__proto__",
  "length",
  "null",
];

function value(next, depth) {
  const pick = (list) => list[Math.floor(next() * list.length)];
  const kind = Math.floor(next() * (depth > 3 ? 5 : 8));
  if (kind === 0)
    return pick([0, -0, 1, -1, 0.1, 1e21, 5e-324, 1.7976931348623157e308, 4294967296, -(2 ** 53)]) + 0;
  if (kind === 1) return next() * 1e6 - 5e5;
  if (kind === 2) return pick(WORDS) + pick(WORDS) + Math.floor(next() * 1000);
  if (kind === 3) return pick([true, false, null]);
  if (kind === 4) return Math.floor(next() * 2 ** 32);
  if (kind === 5) return Array.from({ length: Math.floor(next() * 5) }, () => value(next, depth + 1));
  const object = {};
  for (let i = Math.floor(next() * 6); i > 0; i--) {
    Object.defineProperty(object, pick(WORDS) + Math.floor(next() * 3), {
      value: value(next, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return object;
}

/** Bytes that are near to JSON: changed, cut, with bad UTF-8 inside quotes, or plain noise. */
function bytes(next) {
  const text = Buffer.from(JSON.stringify(value(next, 0)));
  const kind = Math.floor(next() * 5);
  const at = Math.floor(next() * text.length);
  if (kind === 0) return text;
  if (kind === 1) return text.subarray(0, at);
  if (kind === 2) {
    text[at] = Math.floor(next() * 256);
    return text;
  }
  if (kind === 3)
    return Buffer.concat([
      Buffer.from('"'),
      Buffer.from([0xc0 + Math.floor(next() * 64), Math.floor(next() * 256)]),
      Buffer.from('"'),
    ]);
  return Buffer.from(Array.from({ length: Math.floor(next() * 20) }, () => Math.floor(next() * 256)));
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What the rules say must come back for stored bytes. */
function expected(stored) {
  try {
    return JSON.parse(strict.decode(stored));
  } catch {
    return Buffer.from(stored);
  }
}

test("any JSON value and any bytes make the round trip", { timeout: 6000000 }, (t) => {
  const rounds = LONG ? 1000000 : 100000;
  const next = random(seed(t));
  const own = NteeDB.open(freshDir());
  for (let i = 0; i < rounds; i++) {
    const key = `k${i % 1000}`;
    if (i % 2 === 0) {
      const given = value(next, 0);
      const want =
        typeof given === "string" ? expected(Buffer.from(given)) : JSON.parse(JSON.stringify(given));
      own.put(key, given);
      const got = own.getSync(key);
      if (JSON.stringify(got) !== JSON.stringify(want)) assert.deepStrictEqual(got, want, `round ${i}`);
      if (i % 32 === 0) assert.deepStrictEqual(got, want, `round ${i}`);
    } else {
      const given = bytes(next);
      const want = expected(given);
      own.put(key, given);
      const got = own.getSync(key);
      assert.equal(Buffer.isBuffer(got), Buffer.isBuffer(want), `round ${i}: ${given.toString("hex")}`);
      if (Buffer.isBuffer(got)) assert.ok(got.equals(want), `round ${i}`);
      else if (JSON.stringify(got) !== JSON.stringify(want)) assert.deepStrictEqual(got, want, `round ${i}`);
      assert.ok(own.getSync(key, { as: "buffer" }).equals(given), `round ${i}`);
    }
  }
  own.drop();
});
