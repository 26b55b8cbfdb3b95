// put, get, has, delete, putIfAbsent, and their asynchronous forms: what a key is, and what comes back.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { bytewise, codeOf, freshDir } from "./support.js";

const db = NteeDB.open(freshDir());
after(() => db.close());

test("put, get, has, delete and their forms agree", async () => {
  assert.equal(db.put("a", { x: [1, "ü", null] }), undefined);
  assert.deepEqual(await db.get("a"), { x: [1, "ü", null] });
  assert.deepEqual(db.getSync("a"), { x: [1, "ü", null] });
  assert.equal(await db.has("a"), true);
  assert.equal(db.hasSync("a"), true);
  assert.equal(db.delete("a"), true);
  assert.equal(db.delete("a"), false);
  assert.equal(await db.get("a"), null);
  assert.equal(db.getSync("a"), null);
  assert.equal(await db.has("a"), false);
  assert.equal(db.hasSync("a"), false);
});

test("putAsync resolves to undefined and has written", async () => {
  assert.equal(await db.putAsync("async", 5), undefined);
  assert.equal(db.getSync("async"), 5);
});

test("putIfAbsent writes once", () => {
  assert.equal(db.putIfAbsent("once", 1), true);
  assert.equal(db.putIfAbsent("once", 2), false);
  assert.equal(db.getSync("once"), 1);
  db.delete("once");
  assert.equal(db.putIfAbsent("once", 3), true);
  assert.equal(db.getSync("once"), 3);
});

test("a stored null and a missing key are told apart by has alone", async () => {
  db.put("null", null);
  assert.equal(await db.get("null"), null);
  assert.equal(await db.has("null"), true);
  assert.equal(await db.has("nothing"), false);
});

test("a key as text and as the same bytes is one key", () => {
  db.put("kéy", 1);
  assert.equal(db.getSync(Buffer.from("kéy")), 1);
  db.put(new Uint8Array(Buffer.from("kéy")), 2);
  assert.equal(db.getSync("kéy"), 2);
});

test("keys with NUL are distinct keys", async () => {
  const keys = ["a", "a\0", "a\0b", "\0", "\0\0"];
  const own = NteeDB.open(freshDir());
  keys.forEach((key, i) => own.put(key, i));
  keys.forEach((key, i) => assert.equal(own.getSync(key), i));
  assert.deepEqual(await own.prefixScan("a"), ["a", "a\0", "a\0b"]);
  assert.deepEqual(await own.prefixScan("a\0"), ["a\0", "a\0b"]);
  own.delete("a");
  assert.deepEqual(await own.prefixScan(""), ["\0", "\0\0", "a\0", "a\0b"]);
  own.drop();
});

test("keys sort by their bytes, not by UTF-16, and are not normalised", async () => {
  const own = NteeDB.open(freshDir());
  const keys = ["Z", "e\u0301", "é", "\ue000", "Ｚ", "\u{1d655}", "😀"];
  for (const key of [...keys].reverse()) own.put(key, key);
  assert.deepEqual(await own.prefixScan(""), keys);
  assert.deepEqual([...keys].sort(bytewise), keys);
  assert.notDeepEqual([...keys].sort(), keys);
  own.drop();
});

test("a key that is not valid UTF-8 comes back as a Buffer, its neighbours as text", async () => {
  const own = NteeDB.open(freshDir());
  const odd = [Buffer.from([0xc3]), Buffer.from([0xff, 0x00]), Buffer.from([0xed, 0xa0, 0x80])];
  for (const key of [...odd, "a", "é", Buffer.from([0xa9])]) own.put(key, 1);
  const found = await own.prefixScan("");
  assert.deepEqual(found, [
    "a",
    Buffer.from([0xa9]),
    Buffer.from([0xc3]),
    "é",
    Buffer.from([0xed, 0xa0, 0x80]),
    Buffer.from([0xff, 0x00]),
  ]);
  for (const key of found) assert.equal(own.getSync(key), 1);
  own.drop();
});

test("a lone surrogate is refused everywhere, so that no two keys become one", async () => {
  db.put("\ufffd", 3);
  db.put("x\ufffd", 5);
  for (const key of ["\ud800", "\udfff", "x\ud83d", "\ude00\ud83d"]) {
    for (const call of [
      () => db.put(key, 1),
      () => db.getSync(key),
      () => db.hasSync(key),
      () => db.delete(key),
      () => db.putIfAbsent(key, 1),
    ]) {
      assert.throws(call, { code: "NTEE_INVALID" });
    }
    assert.equal(await codeOf(db.get(key)), "NTEE_INVALID");
    assert.equal(await codeOf(db.has(key)), "NTEE_INVALID");
    assert.equal(await codeOf(db.putAsync(key, 1)), "NTEE_INVALID");
    assert.equal(await codeOf(db.getMany([key])), "NTEE_INVALID");
    assert.equal(await codeOf(db.putMany([{ key, value: 1 }])), "NTEE_INVALID");
    assert.equal(await codeOf(db.prefixScan(key)), "NTEE_INVALID");
  }
  assert.equal(db.getSync("\ufffd"), 3);
  assert.equal(db.getSync("x\ufffd"), 5);
});

test("an empty key is refused everywhere", async () => {
  for (const key of ["", Buffer.alloc(0)]) {
    for (const call of [
      () => db.put(key, 1),
      () => db.getSync(key),
      () => db.hasSync(key),
      () => db.delete(key),
      () => db.getManySync([key]),
    ]) {
      assert.throws(call, { code: "NTEE_INVALID" });
    }
    assert.equal(await codeOf(db.get(key)), "NTEE_INVALID");
    assert.equal(await codeOf(db.putMany([{ key, value: 1 }])), "NTEE_INVALID");
  }
});

test("keys of 1 to 65,535 bytes work, one byte more is NTEE_TOO_LARGE, counted in bytes", async () => {
  const own = NteeDB.open(freshDir());
  const sizes = [1, 2, 31, 32, 33, 239, 240, 241, 255, 256, 1000, 32767, 32768, 65534, 65535];
  for (const size of sizes) own.put("k".repeat(size), size);
  own.put("é".repeat(32767), "wide");
  for (const size of sizes) assert.equal(own.getSync("k".repeat(size)), size);
  assert.equal(await own.get("é".repeat(32767), { as: "text" }), "wide");
  assert.deepEqual(
    (await own.prefixScan("k")).map((key) => key.length),
    sizes,
  );
  for (const key of [
    "k".repeat(65536),
    "k".repeat(65537),
    "k".repeat(1 << 20),
    "é".repeat(32768),
    "😀".repeat(16384),
    Buffer.alloc(65536, 1),
  ]) {
    assert.throws(() => own.put(key, 1), { code: "NTEE_TOO_LARGE" });
    assert.throws(() => own.getSync(key), { code: "NTEE_TOO_LARGE" });
    assert.equal(await codeOf(own.get(key)), "NTEE_TOO_LARGE");
    assert.equal(await codeOf(own.putMany([{ key, value: 1 }])), "NTEE_TOO_LARGE");
    assert.equal(await codeOf(own.prefixScan(key)), "NTEE_TOO_LARGE");
  }
  assert.equal(await own.count(), sizes.length + 1);
  own.close();
});

test("text of every kind and length around the buffers' sizes arrives whole", () => {
  const rope = (unit, length) => {
    let text = "";
    while (text.length < length) text += unit;
    return text;
  };
  for (const unit of ["a", "é", "€", "😀"]) {
    for (const length of [0, 1, 31, 32, 33, 97000, 98302, 131072, 262100, 262144, 300001, 1 << 20]) {
      const text = rope(unit, length);
      db.put("rope", text);
      assert.ok(db.getSync("rope", { as: "text" }) === text, `${unit} ${length}`);
    }
  }
});

test("a value that a user keeps is not the store's memory", async () => {
  db.put("bytes", Buffer.from([1, 2, 3]));
  db.put("object", { a: [1] });
  const bytes = await db.get("bytes");
  const object = await db.get("object");
  object.a.push(2);
  db.put("bytes", Buffer.from([9, 9, 9]));
  db.put("object", 1);
  assert.deepEqual(bytes, Buffer.from([1, 2, 3]));
  bytes[0] = 7;
  assert.deepEqual(db.getSync("bytes"), Buffer.from([9, 9, 9]));
});

test("what comes with a later version is refused, and null counts as not given", async () => {
  db.put("later", 1, null, null);
  await db.putAsync("later", 1, undefined, null);
  assert.equal(db.putIfAbsent("later", 1, null, undefined), false);
  for (const [ix, ttlMs] of [
    [{ a: "b" }, undefined],
    [undefined, 5],
    [{}, null],
    [null, NaN],
  ]) {
    assert.throws(() => db.put("later", 2, ix, ttlMs), {
      code: "NTEE_INVALID",
      message: /not supported yet/,
    });
    assert.throws(() => db.putIfAbsent("later2", 2, ix, ttlMs), { code: "NTEE_INVALID" });
    assert.equal(await codeOf(db.putAsync("later", 2, ix, ttlMs)), "NTEE_INVALID");
  }
  assert.equal(db.getSync("later"), 1);
});

test("stats and count follow what is written", async () => {
  const own = NteeDB.open(freshDir());
  const empty = await own.stats();
  assert.deepEqual(Object.keys(empty), ["records", "mainBytes", "blobBytes"]);
  assert.equal(empty.records, 0);
  own.put("a", 1);
  own.put("a", 2);
  own.put("b", 2);
  const stats = await own.stats();
  assert.equal(stats.records, 2);
  assert.ok(stats.mainBytes > empty.mainBytes);
  assert.equal(stats.blobBytes, 0);
  own.delete("a");
  assert.equal((await own.stats()).records, 1);
  assert.equal(await own.count(), 1);
  own.drop();
});
