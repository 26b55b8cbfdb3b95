// entries() and keys(): one state, one page in memory, ended in every way.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { codeOf, freshDir, gc, gcUntil } from "./support.js";

const COUNT = 20000;
const db = NteeDB.open(freshDir());
const keys = Array.from({ length: COUNT }, (_, i) => `k${String(i).padStart(6, "0")}`);
await db.putMany(keys.map((key, i) => ({ key, value: { i } })));
after(() => db.close());

const collect = async (iterator) => {
  const all = [];
  for await (const item of iterator) all.push(item);
  return all;
};

test("entries and keys walk through everything, a prefix or a range", async () => {
  assert.deepEqual(await collect(db.keys()), keys);
  assert.deepEqual(await collect(db.keys("")), keys);
  assert.deepEqual(await collect(db.keys(null)), keys);
  assert.deepEqual(
    await collect(db.entries("k0000")),
    keys.slice(0, 100).map((key, i) => ({ key, value: { i } })),
  );
  assert.deepEqual(await collect(db.entries({ gte: "k019998" })), [
    { key: "k019998", value: { i: 19998 } },
    { key: "k019999", value: { i: 19999 } },
  ]);
  assert.deepEqual(
    (await collect(db.entries())).map(({ value }) => value.i),
    keys.map((_, i) => i),
  );
  assert.deepEqual(await collect(db.keys("", { reverse: true, limit: 3, after: "k000005" })), [
    "k000004",
    "k000003",
    "k000002",
  ]);
  assert.deepEqual(await collect(db.keys("none")), []);
  assert.deepEqual(await collect(db.entries("", { limit: 0 })), []);
  assert.deepEqual(await collect(db.entries("k00000", { as: "text", limit: 1 })), [
    { key: "k000000", value: '{"i":0}' },
  ]);
});

test("a walk sees the state of its beginning", async () => {
  const own = NteeDB.open(freshDir());
  await own.putMany(keys.map((key, i) => ({ key, value: { i } })));
  for (const walk of [own.keys(), own.entries()]) {
    const first = await walk.next();
    assert.ok(!first.done);
    for (let i = 1; i < COUNT; i += 2) own.delete(keys[i]);
    own.put("zz", 1);
    let count = 1;
    for await (const item of walk) {
      count++;
      assert.notEqual(item.key ?? item, "zz");
    }
    assert.equal(count, COUNT);
    own.delete("zz");
    await own.putMany(keys.map((key, i) => ({ key, value: { i } })));
  }
  own.drop();
});

test("next calls that overlap are answered in order, also behind the end", async () => {
  const walk = db.keys("k00000");
  const answers = await Promise.all(Array.from({ length: 13 }, () => walk.next()));
  assert.deepEqual(
    answers.slice(0, 10),
    keys.slice(0, 10).map((value) => ({ value, done: false })),
  );
  assert.deepEqual(answers.slice(10), Array(3).fill({ value: undefined, done: true }));
  const long = db.entries();
  const many = await Promise.all(Array.from({ length: COUNT + 1 }, () => long.next()));
  assert.ok(many.slice(0, COUNT).every(({ value }, i) => value.key === keys[i]) && many[COUNT].done);
});

test("break, return and throw end a walk", async () => {
  const walk = db.entries();
  for await (const { key } of walk) if (key === "k000003") break;
  assert.deepEqual(await walk.next(), { value: undefined, done: true });
  const other = db.keys();
  await other.next();
  assert.deepEqual(await other.return(7), { value: 7, done: true });
  assert.deepEqual(await other.next(), { value: undefined, done: true });
  const third = db.keys();
  await third.next();
  await assert.rejects(third.throw(new Error("mine")), /mine/);
  assert.deepEqual(await third.next(), { value: undefined, done: true });
  const racing = db.entries();
  const [first, ended, behind] = await Promise.all([racing.next(), racing.return(), racing.next()]);
  assert.deepEqual([first.value.key, ended.done, behind.done], ["k000000", true, true]);
  if (Symbol.asyncDispose) {
    const fourth = db.keys();
    await fourth.next();
    await fourth[Symbol.asyncDispose]();
    assert.equal((await fourth.next()).done, true);
  }
});

test("a walk over a closed store rejects with NTEE_CLOSED", async () => {
  const dir = freshDir();
  const own = NteeDB.open(dir);
  await own.putMany(keys.map((key) => ({ key, value: 1 })));
  const walks = [own.keys(), own.entries(), own.entries()];
  await walks[0].next();
  await walks[1].next();
  own.close();
  for (const walk of walks) assert.equal(await codeOf(walk.next()), "NTEE_CLOSED");
  for (const walk of walks) assert.equal((await walk.next()).done, true);
  await own.closed;
  NteeDB.open(dir).drop();
});

test("a store closes while a page is on its way", async () => {
  for (let round = 0; round < 20; round++) {
    const dir = freshDir();
    const own = NteeDB.open(dir);
    await own.putMany(keys.map((key) => ({ key, value: 1 })));
    const walk = own.entries();
    const page = walk.next();
    own.close();
    const answer = await page.then(
      ({ value }) => value.key,
      (error) => error.code,
    );
    assert.ok(["k000000", "NTEE_CLOSED"].includes(answer), answer);
    await own.closed;
    NteeDB.open(dir).drop();
  }
});

test("walks that nobody finished let go of their state when they are collected", async () => {
  const own = NteeDB.open(freshDir());
  await own.putMany(keys.map((key) => ({ key, value: "x".repeat(50) })));
  const refs = [];
  await (async () => {
    for (let i = 0; i < 50; i++) {
      const walk = i % 2 ? own.keys() : own.entries();
      await walk.next();
      refs.push(new WeakRef(walk));
    }
  })();
  assert.ok(await gcUntil(() => refs.every((ref) => ref.deref() === undefined)));
  own.close();
  await own.closed;
});

test("a walk holds a page, not everything", { timeout: 6000000 }, async () => {
  const own = NteeDB.open(freshDir());
  const pad = "x".repeat(1000);
  for (let i = 0; i < 100; i++)
    await own.putMany(Array.from({ length: 1000 }, (_, j) => ({ key: `k${i * 1000 + j}`, value: { pad } })));
  gc();
  const before = process.memoryUsage();
  let most = 0;
  let count = 0;
  for await (const entry of own.entries()) {
    if (++count % 10000 === 0) {
      gc();
      const now = process.memoryUsage();
      most = Math.max(most, now.heapUsed + now.external - before.heapUsed - before.external);
    }
    assert.equal(entry.value.pad.length, 1000);
  }
  assert.equal(count, 100000);
  assert.ok(most < 8 << 20, `${most} bytes more in the middle of 100 MB`);
  own.drop();
});

test("text that is none fails where it stands, not before", async () => {
  const own = NteeDB.open(freshDir());
  own.put("a", "text");
  own.put("b", Buffer.from([0xff]));
  own.put("c", "text");
  const walk = own.entries("", { as: "text" });
  assert.deepEqual((await walk.next()).value, { key: "a", value: "text" });
  assert.equal(await codeOf(walk.next()), "NTEE_INVALID");
  assert.equal((await walk.next()).done, true);
  own.drop();
});
