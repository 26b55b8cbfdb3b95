// Flat objects that come back without JSON.parse are exactly what JSON.parse gives.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { Shapes } from "../lib/shapes.js";
import { LONG, freshDir, gc, random, run, seed } from "./support.js";

const parse = JSON.parse;

/** How often JSON.parse is called while `action` runs. */
async function parsesOf(action) {
  let calls = 0;
  JSON.parse = (...args) => {
    calls++;
    return parse(...args);
  };
  try {
    await action();
  } finally {
    JSON.parse = parse;
  }
  return calls;
}

/** Whether two values are the same to whoever looks: also -0, the order of members, and prototypes. */
function same(a, b) {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return Object.is(a, b);
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const names = Object.getOwnPropertyNames(a);
  const others = Object.getOwnPropertyNames(b);
  return names.length === others.length && names.every((name, i) => name === others[i] && same(a[name], b[name]));
}

// ---- Documents ----

const NAMES = ["a", "b", "id", "name", "at", "status", "a longer name", "", "x'y", "$", "constructor", "toString"];
const ODD_NAMES = ["__proto__", "0", "17", "01", "-1", "ä", "\\u0061", "a\\\"b", "a\\\\b", "hasOwnProperty", "\u007f"];
const NUMBERS = ["0", "-0", "1", "-1", "1.0", "10", "2147483647", "2147483648", "-2147483648", "-2147483649", "0.1", "1e3"];
const MORE_NUMBERS = ["1E3", "1e+3", "-0.0", "0e0", "-0e5", "9007199254740991", "9007199254740992", "9007199254740993", "1e22",
  "1e23", "123456789012345678901234567890", "1.7976931348623157e308", "5e-324", "1e400", "-1e400", "0.000001", "1e-22",
  "1.00000000000000000000001", "4503599627370496.5", "179.99999999999997", "5e-1", "100000000000000000000"];
const TEXTS = ['""', '"x"', '"some text"', '"a text of more than 13 characters"', '"/api/v1/resource/17"', '"12"', '"{}[],:"'];
const ODD_TEXTS = ['"\\n"', '"\\u0041"', '"\\""', '"ä"', '"€"', '"😀"', '"\\ud800"', '"a\\\\"', '"\u007f"', '"\\/"'];

function generator(next) {
  const pick = (list) => list[Math.floor(next() * list.length)];
  const scalar = (odd) => {
    const kind = next();
    if (kind < 0.3) return pick(odd ? ODD_TEXTS : TEXTS);
    if (kind < 0.4) return `"${"y".repeat(next() * 40)}"`;
    if (kind < 0.5) return pick(["true", "false", "null"]);
    if (kind < 0.6) return pick(odd ? MORE_NUMBERS : NUMBERS);
    if (kind < 0.8) return String(Math.floor(next() * 2 ** (next() * 60)));
    return String((next() - 0.5) * 10 ** Math.floor(next() * (odd ? 40 : 8) - (odd ? 20 : 2)));
  };
  const value = (depth, odd) => {
    if (depth === 0 || next() < 0.8) return scalar(odd);
    if (next() < 0.5) return `[${Array.from({ length: next() * 4 }, () => value(depth - 1, odd))}]`;
    return object([pick(NAMES), pick(NAMES)], depth - 1, odd, "");
  };
  const object = (names, depth, odd, space) =>
    `{${space}${names.map((name) => `"${name}"${space}:${value(depth, odd)}`).join(`,${space}`)}}`;
  // Some shapes that come often, as those of a program do.
  const usual = Array.from({ length: 12 }, () => Array.from({ length: 1 + next() * 8 }, () => pick(NAMES)));
  return () => {
    const kind = next();
    if (kind < 0.7) return object(pick(usual), 0, false, "");
    if (kind < 0.8) return object(pick(usual), 0, true, "");
    if (kind < 0.85) return object(pick(usual), 2, true, "");
    if (kind < 0.88) return object(pick(usual), 0, false, pick([" ", "\n", "\t "]));
    if (kind < 0.93) return object(Array.from({ length: next() * 6 }, () => pick(next() < 0.5 ? ODD_NAMES : NAMES)), 1, true, "");
    if (kind < 0.96) return ` ${object(pick(usual), 0, false, "")}\n`;
    return value(3, true);
  };
}

const COUNT = LONG ? 4_000_000 : 1_000_000;
const ROUND = 10_000;

test(`${COUNT} documents come back as JSON.parse gives them`, async (t) => {
  const next = random(seed(t));
  const db = NteeDB.open(freshDir());
  const check = (got, text, how) => same(got, parse(text)) || assert.fail(`${how}: ${text}`);
  for (let done = 0; done < COUNT; done += ROUND) {
    // A generator a round: other shapes, until the store has no place for more.
    const document = generator(next);
    const items = Array.from({ length: ROUND }, (_, i) => ({ key: `${done + i}`.padStart(8, "0"), value: document() }));
    await db.putMany(items);
    const keys = items.map(({ key }) => key);
    const records = await db.rangeScanRecords({ gte: keys[0], lte: keys.at(-1) });
    assert.equal(records.length, ROUND);
    records.forEach(({ value }, i) => check(value, items[i].value, "a page"));
    for (let i = 0; i < ROUND; i += 4) check(db.getSync(keys[i]), items[i].value, "getSync");
    const some = Array.from({ length: 40 }, () => Math.floor(next() * ROUND));
    const many = await db.getMany(some.map((i) => keys[i]));
    many.forEach((value, i) => check(value, items[some[i]].value, "getMany"));
    for (const i of some) check(await db.get(keys[i]), items[i].value, "get");
    const together = await Promise.all(some.map((i) => db.get(keys[i])));
    together.forEach((value, i) => check(value, items[some[i]].value, "get, several at once"));
    let at = 0;
    for await (const { value } of db.entries({ gte: keys[0] }, { limit: 200 })) check(value, items[at++].value, "entries");
  }
  db.drop();
});

// ---- When ----

const record = (i) => ({ id: i, name: `name-${i}`, path: `/a/longer/path/${i}`, ok: i % 2 === 0, none: null, at: 1.7e12 + i });

test("a shape is known after its second object, and then nothing is parsed", async () => {
  const db = NteeDB.open(freshDir());
  const items = Array.from({ length: 3000 }, (_, i) => ({ key: `k${String(i).padStart(5, "0")}`, value: record(i) }));
  await db.putMany(items);
  assert.equal(await parsesOf(() => db.getSync("k00000")), 1);
  assert.equal(await parsesOf(() => db.get("k00001")), 1);
  assert.equal(await parsesOf(() => db.getSync("k00002")), 0);
  assert.equal(await parsesOf(() => db.get("k00003")), 0);
  assert.equal(await parsesOf(() => db.getManySync(items.map(({ key }) => key))), 0);
  assert.equal(await parsesOf(async () => assert.deepEqual(await db.prefixScanRecords("k"), items)), 0);
  assert.deepEqual(db.getSync("k00007"), record(7));
  const other = await db.getSync("k00001", { as: "text" });
  assert.equal(other, JSON.stringify(record(1)));
  db.close();
  // A page teaches it, too.
  const again = NteeDB.open(freshDir());
  await again.putMany(items);
  assert.ok((await parsesOf(async () => assert.deepEqual(await again.prefixScanRecords("k"), items))) <= 2);
  again.close();
});

test("nested objects are parsed page by page, and hardly looked at", async () => {
  const db = NteeDB.open(freshDir());
  const items = Array.from({ length: 5000 }, (_, i) => ({ key: `k${String(i).padStart(5, "0")}`, value: { id: i, list: [i] } }));
  await db.putMany(items);
  assert.deepEqual(await db.prefixScanRecords("k"), items);
  assert.ok((await parsesOf(() => db.prefixScanRecords("k"))) <= 12);
  // The same where a shape is known.
  await db.putMany([1, 2, 3].map((i) => ({ key: `flat${i}`, value: record(i) })));
  assert.deepEqual((await db.prefixScanRecords("flat")).map(({ value }) => value), [1, 2, 3].map(record));
  assert.deepEqual(await db.prefixScanRecords("k"), items);
  assert.ok((await parsesOf(() => db.prefixScanRecords("k"))) <= 12);
  db.close();
});

test("names that are data do not use up the shapes", () => {
  const db = NteeDB.open(freshDir());
  for (let i = 0; i < 500; i++) db.put(`m${i}`, { [`user-${i}`]: i });
  for (let i = 0; i < 3; i++) db.put(`r${i}`, record(i));
  for (let i = 0; i < 500; i++) assert.deepEqual(db.getSync(`m${i}`), { [`user-${i}`]: i });
  for (let i = 0; i < 500; i++) assert.deepEqual(db.getSync(`r${i % 3}`), record(i % 3));
  return parsesOf(() => db.getSync("r1")).then((calls) => {
    assert.equal(calls, 0);
    db.close();
  });
});

test("more shapes than there is place for", () => {
  const db = NteeDB.open(freshDir());
  const value = (i) => ({ [`n${i % 40}`]: i, b: `text ${i}` });
  for (let i = 0; i < 400; i++) db.put(`k${i}`, value(i));
  for (let round = 0; round < 3; round++)
    for (let i = 0; i < 400; i++) assert.deepEqual(db.getSync(`k${i}`), value(i));
  db.close();
});

// ---- What ----

test("members are own, writable, enumerable and configurable, whatever Object.prototype has", async () => {
  const db = NteeDB.open(freshDir());
  for (let i = 0; i < 5; i++) db.put(`k${i}`, { trap: i, toString: "text", constructor: null });
  for (let i = 0; i < 3; i++) db.getSync(`k${i}`);
  const seen = [];
  Object.defineProperty(Object.prototype, "trap", { set: (value) => seen.push(value), get: () => "no", configurable: true });
  try {
    assert.equal(await parsesOf(() => db.getSync("k3")), 0);
    const value = db.getSync("k4");
    assert.deepEqual(Object.getOwnPropertyDescriptors(value), Object.getOwnPropertyDescriptors(parse(JSON.stringify({ trap: 4, toString: "text", constructor: null }))));
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.deepEqual(seen, []);
  } finally {
    delete Object.prototype.trap;
  }
  db.close();
});

test("objects of one shape have nothing to do with each other, nor with the memory that they were read from", async () => {
  const db = NteeDB.open(freshDir());
  for (let i = 0; i < 100; i++) db.put(`k${i}`, record(i));
  const kept = [];
  for (let i = 0; i < 100; i++) kept.push(db.getSync(`k${i}`));
  await db.prefixScanRecords("k");
  kept[3].name = "changed";
  delete kept[4].ok;
  kept.forEach((value, i) => i === 3 || i === 4 || assert.deepEqual(value, record(i)));
  assert.deepEqual(db.getSync("k3"), record(3));
  db.close();
});

test("any key finds its object, and a wrong one fails as before, once there are shapes", async () => {
  const db = NteeDB.open(freshDir());
  const plain = NteeDB.open(freshDir()); // never has shapes: nothing in it is an object
  plain.put("k", 1);
  const long = Array.from({ length: 300 }, (_, i) => String.fromCharCode(i % 128)).join("");
  const keys = Array.from({ length: 300 }, (_, i) => long.slice(0, i + 1));
  for (let at = 0; at < 9; at++) {
    for (const odd of ["\x80", "\xff", "\u0141", "\u4161", "\uff61", "\u{1f600}"])
      keys.push(`${"a".repeat(at)}${odd}${"a".repeat(8 - at)}`);
  }
  keys.push("a".repeat(9), "\u0100".repeat(9), "x".repeat(65535), "\xe4".repeat(256), `cut ${long} out`.slice(3, 20));
  keys.forEach((key, i) => db.put(key, { id: i, text: "y".repeat(i % 40) }));
  for (const round of [1, 2]) {
    for (let i = 0; i < keys.length; i++) {
      const want = { id: i, text: "y".repeat(i % 40) };
      assert.ok(same(db.getSync(keys[i]), want), `${round}: ${i}`);
      assert.ok(same(await db.get(keys[i]), want));
      assert.equal(db.hasSync(keys[i]), true);
      assert.equal(await db.has(keys[i]), true);
    }
  }
  const thrown = (action) => {
    try {
      return { value: action() };
    } catch ({ name, code, message }) {
      return { name, code, message };
    }
  };
  const wrong = ["", "\ud800", "a\udc00a", "x".repeat(65536), "\xe4".repeat(32768), 7, null, undefined, {}, [], new String("a")];
  for (const key of [...wrong, "none", "none\xe4", "n".repeat(256), "n".repeat(257)]) {
    for (const method of ["getSync", "hasSync"])
      assert.deepEqual(thrown(() => db[method](key)), thrown(() => plain[method](key)));
    for (const method of ["get", "has"]) {
      const [a, b] = await Promise.allSettled([db[method](key), plain[method](key)]);
      assert.deepEqual([a.status, a.value, a.reason?.message], [b.status, b.value, b.reason?.message]);
    }
  }
  db.put("broken", Buffer.from("not JSON"));
  db.put("number", 7);
  db.put("big", { id: 1, text: "z".repeat(300000) });
  assert.deepEqual([db.getSync("broken"), await db.get("broken")], Array(2).fill(Buffer.from("not JSON")));
  assert.deepEqual([db.getSync("number"), await db.get("number")], [7, 7]);
  assert.equal(db.getSync("big").text.length, 300000);
  assert.equal((await db.get("big")).text.length, 300000);
  db.drop();
  plain.drop();
  for (const method of ["getSync", "hasSync", "get", "has"])
    assert.throws(() => db[method]("a"), { code: "NTEE_CLOSED" });
});

test("large and small objects of one shape", async () => {
  const db = NteeDB.open(freshDir());
  const sizes = [0, 1, 12, 13, 16000, 16383, 16384, 16385, 20000, 70000, 300000, 5];
  const items = sizes.flatMap((size, i) => [0, 1].map((j) => ({ key: `k${i}${j}`, value: { a: "x".repeat(size), b: j, c: "end" } })));
  await db.putMany(items);
  for (let round = 0; round < 3; round++) {
    for (const { key, value } of items) assert.deepEqual(db.getSync(key), value);
    for (const { key, value } of items) assert.deepEqual(await db.get(key), value);
    const records = await db.prefixScanRecords("k");
    assert.deepEqual(records, items.toSorted((a, b) => (a.key < b.key ? -1 : 1)));
    assert.deepEqual(db.getManySync(items.map(({ key }) => key)), items.map(({ value }) => value));
  }
  db.close();
});

test("a kept string does not keep its page", async () => {
  const db = NteeDB.open(freshDir());
  const filler = "f".repeat(8000);
  for (let i = 0; i < 4000; i++) db.put(`k${String(i).padStart(5, "0")}`, { text: `a text of more than 13 characters: ${i}`, filler });
  const keep = (records) => records.filter((_, i) => i % 60 === 0).map(({ value }) => value.text);
  keep(await db.prefixScanRecords("k"));
  gc();
  const before = process.memoryUsage().heapUsed;
  const kept = keep(await db.prefixScanRecords("k"));
  gc();
  const grown = process.memoryUsage().heapUsed - before;
  assert.equal(kept.length, 67);
  assert.equal(kept[1], "a text of more than 13 characters: 60");
  assert.ok(grown < kept.length * 20_000 + 1_000_000, `${grown} bytes`);
  db.close();
});

// ---- Where it cannot be ----

test("without code from strings everything is parsed", async () => {
  const text = `
    const db = NteeDB.open(dir);
    for (let i = 0; i < 50; i++) db.put("k" + i, { id: i, name: "x" });
    for (let i = 0; i < 50; i++) if (db.getSync("k" + i).id !== i) throw new Error("wrong");
    const records = await db.prefixScanRecords("k");
    let allowed = true;
    try { new Function("") } catch { allowed = false }
    console.log(records.length, records[7].value.name, (await db.get("k3")).id, allowed);
    db.close();`;
  const { out, err, code } = await run(text, { execArgv: ["--disallow-code-generation-from-strings"] }).ended;
  assert.equal(err, "");
  assert.equal(out, "50 x 3 false\n");
  assert.equal(code, 0);
});

/** A page of these texts, as the engine lays it out; entries are not looked at. */
function pageOf(texts) {
  const list = Buffer.from(`[${texts.join()}]`);
  const memory = Buffer.allocUnsafeSlow((list.length + 15) & ~7);
  list.copy(memory);
  return { memory, count: texts.length, keysLength: 0, valuesLength: list.length, flags: 5 };
}

test("a library that knows no shapes is asked once", () => {
  const asked = [];
  const shapes = new Shapes({ ask: (op) => asked.push(op) && 2 });
  const texts = Array.from({ length: 20 }, (_, i) => JSON.stringify(record(i)));
  for (let i = 0; i < 5; i++) assert.deepEqual(shapes.values(pageOf(texts)), texts.map((text) => parse(text)));
  assert.equal(shapes.flag, 0);
  assert.ok(asked.every((op) => op === 12));
});

test("names and fields are framed as the engine has them", () => {
  const golden = parse(readFileSync(new URL("../../../tests/golden/wire.json", import.meta.url)));
  const listOf = (hex) => Buffer.from(hex, "hex").toString();
  let known = 0;
  let vector = null;
  const ask = (op, slot) => {
    slot.reply.fill(0);
    if (op === 11) {
      assert.equal(slot.input.toString("hex", 0, slot.inputLength), golden.shapes[known].hex);
      slot.words[4] = ++known;
    } else if (vector === null) {
      // One text is taken, and fits nothing.
      const [text] = current;
      slot.output.writeUInt32LE(0, 0);
      slot.output.writeUInt32LE(text.length, 4);
      slot.words[4] = 1;
      slot.words[0] = Math.min(text.length + 1, slot.inputLength);
    } else {
      Buffer.from(vector.hex, "hex").copy(slot.output);
      slot.words[4] = vector.count;
      slot.words[0] = slot.inputLength;
    }
    return 0;
  };
  let current = [];
  const shapes = new Shapes({ ask });
  for (const { names } of golden.shapes) {
    current = [1, 2, 3].map((n) => JSON.stringify(Object.fromEntries(names.map((name) => [name, n]))));
    assert.deepEqual(shapes.values(pageOf(current)), current.map((text) => parse(text)));
  }
  assert.equal(known, 2);
  for (vector of golden.fields) {
    const want = parse(`[${listOf(vector.texts)}]`);
    const page = pageOf([listOf(vector.texts)]);
    assert.ok(same(shapes.values({ ...page, count: vector.count }), want), vector.what);
  }
});
