// Scans and counts against a model.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { bytewise, codeOf, freshDir, random, seed } from "./support.js";

const db = NteeDB.open(freshDir());
const keys = Array.from({ length: 3000 }, (_, i) => `k:${String(i).padStart(5, "0")}`);
await db.putMany(keys.map((key, i) => ({ key, value: { i } })));
db.put("other", 1);
after(() => db.close());

test("a prefix gives its keys in order; the empty one gives all", async () => {
  assert.deepEqual(await db.prefixScan("k:"), keys);
  assert.deepEqual(await db.prefixScan(Buffer.from("k:")), keys);
  assert.deepEqual(await db.prefixScan(""), [...keys, "other"]);
  assert.deepEqual(await db.prefixScan("k:0001"), keys.slice(10, 20));
  assert.deepEqual(await db.prefixScan("none"), []);
  assert.deepEqual(await db.prefixScan("k:00010"), ["k:00010"]);
});

test("records come with their values", async () => {
  assert.deepEqual(
    await db.prefixScanRecords("k:"),
    keys.map((key, i) => ({ key, value: { i } })),
  );
  assert.deepEqual(
    await db.prefixScanRecords("k:0000"),
    keys.slice(0, 10).map((key, i) => ({ key, value: { i } })),
  );
  assert.deepEqual(await db.rangeScanRecords({ gte: "k:02999" }), [
    { key: "k:02999", value: { i: 2999 } },
    { key: "other", value: 1 },
  ]);
});

test("ranges take gt, gte, lt, lte", async () => {
  assert.deepEqual(await db.rangeScan({}), [...keys, "other"]);
  assert.deepEqual(await db.rangeScan({ gte: "k:00010", lt: "k:00013" }), keys.slice(10, 13));
  assert.deepEqual(await db.rangeScan({ gt: "k:00010", lte: "k:00013" }), keys.slice(11, 14));
  assert.deepEqual(await db.rangeScan({ gt: "k:00010", lt: "k:00011" }), []);
  assert.deepEqual(await db.rangeScan({ gte: "z", lt: "a" }), []);
  assert.deepEqual(await db.rangeScan({ gte: null, gt: undefined, lt: "k:00001" }), ["k:00000"]);
  assert.deepEqual(await db.rangeScan({ gte: "", lt: "k:00001" }), ["k:00000"]);
  assert.deepEqual(await db.rangeScan({ gt: "", lte: "k:00000" }), ["k:00000"]);
  assert.deepEqual(await db.rangeScan({ lt: "" }), []);
  assert.deepEqual(await db.rangeScan({ gte: Buffer.from([0xff]) }), []);
});

test("limit, reverse and after page through", async () => {
  assert.deepEqual(await db.prefixScan("k:", { limit: 2 }), keys.slice(0, 2));
  assert.deepEqual(await db.prefixScan("k:", { limit: 0 }), []);
  assert.deepEqual(await db.prefixScanRecords("k:", { limit: 0 }), []);
  assert.deepEqual(await db.prefixScan("k:", { reverse: true, limit: 2 }), ["k:02999", "k:02998"]);
  assert.deepEqual(await db.prefixScan("k:", { reverse: true }), [...keys].reverse());
  assert.deepEqual(await db.prefixScan("k:", { limit: null, reverse: null, after: null }), keys);
  for (const reverse of [false, true]) {
    const seen = [];
    let after;
    for (;;) {
      const page = await db.prefixScan("k:", { limit: 700, reverse, after });
      seen.push(...page);
      if (page.length < 700) break;
      after = page.at(-1);
    }
    assert.deepEqual(seen, reverse ? [...keys].reverse() : keys);
  }
  assert.deepEqual(await db.rangeScan({ gte: "k:00005" }, { after: "a", limit: 1 }), ["k:00005"]);
  assert.deepEqual(await db.rangeScan({ lte: "k:00005" }, { after: "z", reverse: true, limit: 1 }), [
    "k:00005",
  ]);
  assert.deepEqual(await db.prefixScan("k:", { after: "k:00009x", limit: 1 }), ["k:00010"]);
});

test("count counts prefixes, ranges and everything", async () => {
  assert.equal(await db.count(), 3001);
  assert.equal(await db.count(""), 3001);
  assert.equal(await db.count({}), 3001);
  assert.equal(await db.count("k:"), 3000);
  assert.equal(await db.count("k:000"), 100);
  assert.equal(await db.count({ gt: "k:00000", lte: "k:00010" }), 10);
  assert.equal(await db.count("none"), 0);
});

test("arguments are checked", async () => {
  const scans = [
    (options) => db.prefixScan("k:", options),
    (options) => db.rangeScan({}, options),
    (options) => db.prefixScanRecords("k:", options),
    (options) => db.rangeScanRecords({}, options),
    (options) => db.entries("k:", options).next(),
    (options) => db.keys("k:", options).next(),
  ];
  for (const scan of scans) {
    for (const options of [
      { limit: -1 },
      { limit: 1.5 },
      { limit: NaN },
      { limit: Infinity },
      { limit: "1" },
      { limit: 1n },
      { limit: 2 ** 53 },
      { reverse: 1 },
      { reverse: "true" },
      { after: 5 },
      { after: "" },
      { after: "\ud800" },
      { Limit: 1 },
      { unknown: 1 },
      5,
      "x",
      [],
      true,
      { corrupt: "keep" },
      { as: "JSON" },
    ]) {
      assert.equal(
        await codeOf(() => scan(options)),
        "NTEE_INVALID",
        JSON.stringify(options, (_, v) => (typeof v === "bigint" ? "n" : v)),
      );
    }
  }
  for (const option of [{ as: "text" }, { corrupt: "skip" }]) {
    assert.equal(await codeOf(db.prefixScan("k:", option)), "NTEE_INVALID");
    assert.equal(await codeOf(() => db.keys("k:", option)), "NTEE_INVALID");
  }
  for (const prefix of [undefined, null, 5, {}, [], true, Symbol("x"), "\ud800"]) {
    assert.equal(await codeOf(db.prefixScan(prefix)), "NTEE_INVALID");
    assert.equal(await codeOf(db.prefixScanRecords(prefix)), "NTEE_INVALID");
  }
  for (const range of [
    undefined,
    null,
    5,
    "k",
    [],
    true,
    new Map(),
    new Date(),
    { min: 1 },
    { gt: "a", gte: "b" },
    { lt: "a", lte: "b" },
    { gte: 5 },
    { lt: {} },
    { gte: "\ud800" },
  ]) {
    assert.equal(await codeOf(db.rangeScan(range)), "NTEE_INVALID");
    assert.equal(await codeOf(db.rangeScanRecords(range)), "NTEE_INVALID");
  }
  assert.equal(await codeOf(db.prefixScan("k".repeat(65536))), "NTEE_TOO_LARGE");
  assert.equal(await codeOf(db.rangeScan({ lt: "k".repeat(65536) })), "NTEE_TOO_LARGE");
  assert.equal(await codeOf(db.count(5)), "NTEE_INVALID");
  assert.deepEqual(await db.prefixScan("k".repeat(65535)), []);
});

test("a scan sees one state, whatever is written while it runs", async () => {
  const own = NteeDB.open(freshDir());
  const key = (i) => `k${String(i).padStart(6, "0")}`;
  const all = (round) =>
    Array.from({ length: 30000 }, (_, i) => ({ key: key(i), value: { round, pad: "x".repeat(100) } }));
  await own.putMany(all(0));
  for (let round = 1; round <= 5; round++) {
    const scans = [
      own.prefixScanRecords(""),
      own.prefixScanRecords("", { reverse: true }),
      own.rangeScanRecords({ gte: "k" }),
    ];
    // One by one, from the end: a scan has the keys up to some place and no hole.
    for (let i = 29999; i >= 25000; i--) own.delete(key(i));
    const batch = own.putMany(all(round));
    for (const records of await Promise.all(scans)) {
      const rounds = new Set(records.map(({ value }) => value.round));
      assert.equal(rounds.size, 1);
      if (records[0].key !== key(0)) records.reverse();
      assert.ok(records.length >= 25000 && records.every((record, i) => record.key === key(i)));
    }
    await batch;
  }
  own.drop();
});

test("any range, limit, order and after gives what a sorted list gives", async (t) => {
  const next = random(seed(t));
  const own = NteeDB.open(freshDir());
  const model = new Map();
  const alphabet = ["", "a", "b", "\0", "é", "😀", "zz", "~"];
  const word = () =>
    Array.from(
      { length: 1 + Math.floor(next() * 4) },
      () => alphabet[Math.floor(next() * alphabet.length)],
    ).join("");
  for (let i = 0; i < 2500; i++) {
    const key = word() + (next() < 0.5 ? Math.floor(next() * 50) : "");
    if (!key) continue;
    own.put(key, i);
    model.set(key, i);
  }
  const sorted = [...model.keys()].sort(bytewise);
  const less = (a, b) => bytewise(a, b) < 0;
  for (let round = 0; round < 1500; round++) {
    const range = {};
    const where = next() < 0.3 ? alphabet[Math.floor(next() * alphabet.length)] : range;
    if (next() < 0.5) range[next() < 0.5 ? "gt" : "gte"] = word();
    if (next() < 0.5) range[next() < 0.5 ? "lt" : "lte"] = word();
    const options = {};
    if (next() < 0.5) options.reverse = next() < 0.5;
    if (next() < 0.4) options.limit = Math.floor(next() * 30);
    if (next() < 0.4) options.after = word() || "a";
    let want = sorted.filter((key) => {
      if (typeof where === "string") return key.startsWith(where);
      if (range.gt !== undefined && !less(range.gt, key)) return false;
      if (range.gte !== undefined && less(key, range.gte)) return false;
      if (range.lt !== undefined && !less(key, range.lt)) return false;
      return range.lte === undefined || !less(range.lte, key);
    });
    assert.equal(await own.count(where), want.length);
    if (options.reverse) want.reverse();
    if (options.after !== undefined)
      want = want.filter((key) => (options.reverse ? less(key, options.after) : less(options.after, key)));
    want = want.slice(0, options.limit ?? want.length);
    const what = JSON.stringify({ where, options });
    const scan = typeof where === "string" ? own.prefixScan(where, options) : own.rangeScan(where, options);
    assert.deepEqual(await scan, want, what);
    const records =
      typeof where === "string"
        ? own.prefixScanRecords(where, options)
        : own.rangeScanRecords(where, options);
    assert.deepEqual(
      await records,
      want.map((key) => ({ key, value: model.get(key) })),
      what,
    );
    const walked = [];
    for await (const key of own.keys(where, options)) walked.push(key);
    assert.deepEqual(walked, want, what);
  }
  own.drop();
});
