// putMany, batch, getMany: all or nothing, in order, as things were at the call.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { codeOf, freshDir, gc } from "./support.js";

const db = NteeDB.open(freshDir());
after(() => db.close());

test("putMany and batch give the number of items, a later item of the same key wins", async () => {
  assert.equal(
    await db.putMany([
      { key: "a", value: 1 },
      { key: "b", value: "x" },
      { key: "a", value: 2 },
    ]),
    3,
  );
  assert.equal(db.getSync("a"), 2);
  assert.equal(
    await db.batch([
      { type: "del", key: "a" },
      { type: "put", key: "c", value: [1] },
      { type: "del", key: "missing" },
      { type: "put", key: "d", value: 1 },
      { type: "del", key: "d" },
    ]),
    5,
  );
  assert.deepEqual(await db.getMany(["a", "b", "c", "d"]), [null, Buffer.from("x"), [1], null]);
});

test("nothing at all is 0 items and no write", async () => {
  const before = await db.stats();
  assert.equal(await db.putMany([]), 0);
  assert.equal(await db.batch([]), 0);
  assert.deepEqual(await db.stats(), before);
  assert.deepEqual(await db.getMany([]), []);
  assert.deepEqual(db.getManySync([]), []);
});

test("one bad item rejects all, names its place and writes nothing", async () => {
  await db.sync();
  const before = await db.stats();
  const cyclic = {};
  cyclic.a = cyclic;
  const bad = [
    undefined,
    null,
    5,
    "x",
    [],
    {},
    { key: "x" },
    { value: 1 },
    { key: "", value: 1 },
    { key: 5, value: 1 },
    { key: "\ud800", value: 1 },
    { key: "k".repeat(65536), value: 1 },
    { key: "x", value: undefined },
    { key: "x", value: 10n },
    { key: "x", value: NaN },
    { key: "x", value: "\ud800" },
    { key: "x", value: 1, extra: 1 },
    { key: "x", value: 1, ix: {} },
    { key: "x", value: 1, ttlMs: NaN },
    { key: "x", value: 1, type: "put" },
  ];
  for (const item of bad) {
    const items = [0, 1, 2, 3, 4].map((i) => (i === 2 ? item : { key: `new${i}`, value: i }));
    await assert.rejects(
      db.putMany(items),
      (error) =>
        error.name === "NteeError" &&
        error.item === 2 &&
        error.message.startsWith("item 2: ") &&
        ["NTEE_INVALID", "NTEE_TOO_LARGE"].includes(error.code),
    );
  }
  await assert.rejects(
    db.putMany([
      { key: "new", value: 1 },
      { key: "x", value: cyclic },
    ]),
    TypeError,
  );
  for (const item of [
    { key: "x", value: 1 },
    { type: "putIfAbsent", key: "x", value: 1 },
    { type: "del" },
    { type: "del", key: "x", value: 1 },
    { type: "del", key: "x", ttlMs: 5 },
    { type: "delete", key: "x" },
  ]) {
    await assert.rejects(
      db.batch([{ type: "put", key: "new", value: 1 }, item]),
      (error) => error.item === 1,
    );
  }
  assert.deepEqual(await db.stats(), before);
  assert.deepEqual(await db.prefixScan("new"), []);
  assert.equal(await db.putMany([{ key: "good", value: 1, ix: null, ttlMs: undefined }]), 1);
});

test("what is no array is refused", async () => {
  for (const items of [
    undefined,
    null,
    5,
    "ab",
    {},
    { length: 1, 0: { key: "a", value: 1 } },
    new Set(),
    [][Symbol.iterator](),
    () => {},
  ]) {
    assert.equal(await codeOf(db.putMany(items)), "NTEE_INVALID");
    assert.equal(await codeOf(db.batch(items)), "NTEE_INVALID");
    assert.equal(await codeOf(db.getMany(items)), "NTEE_INVALID");
    assert.equal(await codeOf(() => db.getManySync(items)), "NTEE_INVALID");
  }
  await assert.rejects(db.putMany(new Array(3)), (error) => error.item === 0);
});

test("a bad key in getMany rejects and names its place", async () => {
  for (const key of ["", 5, null, undefined, "\ud800", {}, Buffer.alloc(65536)]) {
    await assert.rejects(db.getMany(["a", "b", key]), (error) => error.item === 2);
    assert.throws(
      () => db.getManySync(["a", "b", key]),
      (error) => error.item === 2,
    );
  }
});

test("getMany is aligned to its keys, with gaps, doubles and any number of them", async () => {
  const own = NteeDB.open(freshDir());
  for (let i = 0; i < 5000; i += 2) own.put(`k${i}`, { i });
  for (const count of [1, 2, 999, 1000, 1001, 5000]) {
    const keys = Array.from({ length: count }, (_, i) => `k${(i * 7) % 5000}`);
    const want = keys.map((key) => (Number(key.slice(1)) % 2 === 0 ? { i: Number(key.slice(1)) } : null));
    assert.deepEqual(await own.getMany(keys), want);
    assert.deepEqual(own.getManySync(keys), want);
    assert.deepEqual(
      await own.getMany(keys, { as: "text" }),
      want.map((value) => value && JSON.stringify(value)),
    );
  }
  own.drop();
});

test("values that are too many for one buffer at first arrive all the same", async () => {
  const own = NteeDB.open(freshDir());
  const value = Buffer.alloc(300000, 0xff);
  const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);
  await own.putMany(keys.map((key) => ({ key, value })));
  for (const got of [
    await own.getMany(keys),
    own.getManySync(keys),
    await Promise.all(keys.map((key) => own.get(key))),
  ]) {
    assert.ok(got.length === 40 && got.every((bytes) => bytes.equals(value)));
  }
  own.drop();
});

test("items are stored as they are at the call", async () => {
  const own = NteeDB.open(freshDir(), { syncEveryWrite: true });
  const slow = Array.from({ length: 20 }, (_, i) => own.putAsync(`slow${i}`, i));
  const bytes = Buffer.from("before");
  const key = Buffer.from("bytes-key");
  const object = { x: 1 };
  const items = [
    { key: "bytes", value: bytes },
    { key: "object", value: object },
    { key, value: 1 },
  ];
  const many = own.putMany(items);
  const single = own.putAsync(key, bytes);
  bytes.fill(0);
  key.fill(0x7a);
  object.x = 2;
  items.length = 0;
  gc();
  await Promise.all([...slow, many, single]);
  assert.deepEqual(await own.get("bytes"), Buffer.from("before"));
  assert.deepEqual(await own.get("object"), { x: 1 });
  assert.deepEqual(await own.get("bytes-key"), Buffer.from("before"));
  assert.equal(await own.has(key), false);
  own.drop();
});

test("an array that its own items change while it is read is taken as long as it was", async () => {
  const items = [];
  items.push(
    {
      key: "grow1",
      get value() {
        items.push({ key: "grow3", value: 3 });
        return 1;
      },
    },
    { key: "grow2", value: 2 },
  );
  assert.equal(await db.putMany(items), 2);
  assert.deepEqual(await db.prefixScan("grow"), ["grow1", "grow2"]);
  const shrinking = [];
  shrinking.push(
    {
      key: "shrink1",
      get value() {
        shrinking.length = 1;
        return 1;
      },
    },
    { key: "shrink2", value: 2 },
  );
  await assert.rejects(db.putMany(shrinking), (error) => error.item === 1);
  assert.deepEqual(await db.prefixScan("shrink"), []);
});

test("what an item has is asked once, in its own order", async () => {
  const own = NteeDB.open(freshDir());
  const log = [];
  const item = (given) =>
    new Proxy(given, {
      ownKeys: (target) => {
        log.push("names");
        return Reflect.ownKeys(target);
      },
      get: (target, name) => {
        log.push(name);
        return target[name];
      },
    });
  const cases = [
    [{ key: "k", value: 1 }, "names key value"],
    [{ value: 2, key: "k" }, "names value key"],
    [{ key: "k", value: 3, ix: null }, "names key value ix"],
    [Object.assign(new (class {})(), { key: "k", value: 4 }), "names key value"],
  ];
  for (const [given, wanted] of cases) {
    log.length = 0;
    await own.putMany([item(given)]);
    assert.equal(log.join(" "), wanted);
    assert.equal(own.getSync("k"), given.value);
    log.length = 0;
    await own.batch([item({ type: "put", ...given })]);
    assert.equal(log.join(" "), wanted.replace("names", "names type"));
  }
  log.length = 0;
  await assert.rejects(own.batch([item({ type: "no", key: "k", value: 1 })]), /item 0: the type of an item/);
  assert.equal(log.join(" "), "names type key value");
  await own.batch([item({ type: "del", key: "k" })]);
  assert.equal(own.getSync("k"), null);
  // What is inherited is no part of an item.
  await assert.rejects(own.putMany([Object.create({ key: "k", value: 1 })]), (error) => error.item === 0);
  own.drop();
});

test("200,000 items in one batch", async () => {
  const own = NteeDB.open(freshDir());
  const items = Array.from({ length: 200000 }, (_, i) => ({
    key: `k${i}`,
    value: { i, text: "x".repeat(60) },
  }));
  assert.equal(await own.putMany(items), 200000);
  assert.equal(await own.count(), 200000);
  assert.deepEqual(await own.getMany(["k0", "k199999"]), [items[0].value, items[199999].value]);
  const deletes = items.map(({ key }) => ({ type: "del", key }));
  assert.equal(await own.batch(deletes), 200000);
  assert.equal(await own.count(), 0);
  own.drop();
});

test("a batch over 1 GiB is refused before anything is written", { timeout: 6000000 }, async () => {
  const value = Buffer.alloc(300 << 20);
  const before = await db.stats();
  await assert.rejects(
    db.putMany([0, 1, 2, 3].map((i) => ({ key: `big${i}`, value }))),
    (error) => error.code === "NTEE_TOO_LARGE" && error.item === 3,
  );
  assert.deepEqual(await db.stats(), before);
});

test("large batches that follow each other, or overlap, do not share the memory of their requests", async () => {
  const store = NteeDB.open(freshDir());
  const items = (round) =>
    Array.from({ length: 2500 }, (_, i) => ({
      key: `${round}:${i}`,
      value: { round, i, text: `${round}`.repeat(100) },
    }));
  // The first memory is free when the third begins; two are then made while others are on their way.
  await store.putMany(items(0));
  await store.putMany(items(1));
  await Promise.all([2, 3, 4, 5].map((round) => store.putMany(items(round))));
  await Promise.all([
    store.putMany(items(6)).then(() => store.putMany(items(7))),
    store.putMany(items(8)).then(() => store.putMany(items(9))),
  ]);
  for (let round = 0; round < 10; round++) {
    const found = await store.prefixScanRecords(`${round}:`);
    assert.deepEqual(
      found.map(({ value }) => value).sort((a, b) => a.i - b.i),
      items(round).map(({ value }) => value),
    );
  }
  store.drop();
});
