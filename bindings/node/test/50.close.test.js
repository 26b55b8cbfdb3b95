// Closing while things go on, and handles that nobody closed.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { gate } from "../lib/gate.js";
import { NteeDB } from "../lib/index.js";
import { codeOf, freshDir, gc, gcUntil, LONG, random, seed } from "./support.js";

const big = "x".repeat(100000); // not at hand

/** Starts `count` calls of all kinds; what they give. */
function start(db, count, next) {
  const kinds = [
    () => db.get("big", { as: "text" }).then((text) => assert.equal(text.length, big.length)),
    () => db.prefixScanRecords("k").then((all) => assert.equal(all.length, 1500)),
    () => db.putAsync(`w${Math.floor(next() * 50)}`, big),
    () => db.sync(),
    () => db.putMany([{ key: "many", value: big }]),
    () => db.getMany(["k1", "big"], { as: "buffer" }).then(([a]) => assert.ok(a.length > 0)),
    () => db.prefixScan("k").then((all) => assert.equal(all.length, 1500)),
    () => db.entries("k").next(),
    () => db.get("k1"),
    () => db.count(),
    () => db.verify().then(({ count }) => assert.equal(count, 0)),
    () => db.details().then(({ state }) => assert.equal(state, "good")),
  ];
  return Array.from({ length: count }, () => kinds[Math.floor(next() * kinds.length)]());
}

/** Every promise settles: fulfilled, or NTEE_CLOSED. */
async function settle(calls) {
  const results = await Promise.allSettled(calls);
  for (const { status, reason } of results)
    if (status === "rejected") assert.equal(reason.code, "NTEE_CLOSED", reason.stack);
  return results.filter(({ status }) => status === "rejected").length;
}

for (const drop of [false, true]) {
  test(
    `${drop ? "drop" : "close"} with 0 to 400 calls under way: all settle, the lock is free, what was acknowledged is there`,
    { timeout: 6000000 },
    async (t) => {
      const next = random(seed(t));
      const rounds = LONG ? 1000 : 40;
      let refused = 0;
      for (let round = 0; round < rounds; round++) {
        const dir = freshDir();
        const db = NteeDB.open(dir, { syncEveryWrite: round % 4 === 0 });
        await db.putMany(Array.from({ length: 1500 }, (_, i) => ({ key: `k${i}`, value: { i } })));
        db.put("big", big);
        const calls = start(db, Math.floor(next() * 401), next);
        if (next() < 0.3) await new Promise((resolve) => setImmediate(resolve));
        const kept = db.putAsync("acknowledged", round);
        if (drop) db.drop();
        else db.close();
        assert.equal(await codeOf(() => db.get("k1")), "NTEE_CLOSED");
        if (drop && round % 2) db.close();
        const [count, , acknowledged] = await Promise.all([
          settle(calls),
          db.closed,
          kept.then(
            () => true,
            (error) => error.code,
          ),
        ]);
        refused += count;
        if (drop) assert.ok(!existsSync(dir));
        const again = NteeDB.open(dir);
        assert.equal(again.hasSync("k1"), !drop);
        if (!drop && acknowledged === true) assert.equal(again.getSync("acknowledged"), round);
        again.drop();
        assert.deepEqual([gate.inFlight, gate.queued], [0, 0]);
      }
      t.diagnostic(`${refused} calls were refused`);
      assert.ok(refused > 0);
    },
  );
}

test("closed resolves when the last call is done, not before; the lock is held till then", async () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  db.put("big", big);
  const order = [];
  const calls = Array.from({ length: 100 }, () =>
    db.get("big", { as: "buffer" }).then(() => order.push("get")),
  );
  db.close();
  assert.throws(() => NteeDB.open(dir), { code: "NTEE_LOCKED" });
  db.closed.then(() => order.push("closed"));
  await Promise.all([...calls, db.closed]);
  assert.equal(order.indexOf("closed"), 100);
  NteeDB.open(dir).drop();
});

test("drop after a close that is still under way destroys the store", async () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  db.put("big", big);
  const call = db.get("big", { as: "buffer" });
  db.close();
  db.drop();
  await Promise.all([call, db.closed]);
  assert.ok(!existsSync(dir));
});

test("closing one store leaves the calls of another alone", async () => {
  const one = NteeDB.open(freshDir());
  const two = NteeDB.open(freshDir());
  one.put("big", big);
  two.put("big", big);
  const ones = [];
  const twos = [];
  for (let i = 0; i < 500; i++) {
    ones.push(one.get("big", { as: "buffer" }));
    twos.push(two.get("big", { as: "buffer" }));
  }
  one.close();
  const [refused] = await Promise.all([settle(ones), ...twos]);
  assert.ok(refused > 100);
  await one.closed;
  two.drop();
  one.drop();
});

test("a handle that is collected is closed", async () => {
  const dir = freshDir();
  (() => {
    NteeDB.open(dir).put("a", 1);
  })();
  let db;
  assert.ok(
    await gcUntil(() => {
      try {
        db = NteeDB.open(dir);
        return true;
      } catch (error) {
        assert.equal(error.code, "NTEE_LOCKED");
        return false;
      }
    }),
  );
  assert.equal(db.getSync("a"), 1);
  db.drop();
});

test("a handle with calls under way, or a walk, is not collected before they are done", async () => {
  const dir = freshDir();
  let walk;
  const calls = (() => {
    const db = NteeDB.open(dir);
    db.put("big", big);
    for (let i = 0; i < 3000; i++) db.put(`k${i}`, i);
    walk = db.entries("k");
    return Array.from({ length: 400 }, () => db.get("big", { as: "buffer" }));
  })();
  gc();
  const answers = [];
  for (const call of calls) {
    answers.push((await call).length);
    if (answers.length % 100 === 0) gc();
  }
  assert.ok(answers.every((length) => length === big.length));
  let count = 0;
  for await (const entry of walk) {
    void entry;
    if (++count % 1000 === 0) gc();
  }
  assert.equal(count, 3000);
  walk = null;
  let again;
  assert.ok(
    await gcUntil(() => {
      try {
        again = NteeDB.open(dir);
        return true;
      } catch {
        return false;
      }
    }),
  );
  again.drop();
});

test("memory of calls off the loop survives collections while they run", async () => {
  const db = NteeDB.open(freshDir());
  for (let round = 0; round < 20; round++) {
    const calls = [];
    for (let i = 0; i < 100; i++) {
      const bytes = Buffer.alloc(70000 + i, i);
      calls.push(db.putAsync(Buffer.from(`g${i}`), bytes));
      bytes.fill(0xee);
      calls.push(db.putMany([{ key: `m${i}`, value: Buffer.alloc(66000, i) }]));
    }
    gc();
    for (let i = 0; i < 50; i++) new ArrayBuffer(100000);
    gc();
    await Promise.all(calls);
    const reads = Array.from({ length: 100 }, (_, i) => db.get(`g${i}`, { as: "buffer" }));
    gc();
    (await Promise.all(reads)).forEach((bytes, i) =>
      assert.ok(bytes.length === 70000 + i && bytes.every((byte) => byte === i)),
    );
  }
  db.drop();
});

test("opening and closing 600 times leaves no memory behind", { timeout: 6000000 }, async () => {
  const dir = freshDir();
  const cycle = () => {
    const db = NteeDB.open(dir);
    db.put("a", 1);
    db.close();
  };
  for (let i = 0; i < 100; i++) cycle();
  gc();
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 600; i++) cycle();
  gc();
  const grown = (process.memoryUsage().rss - before) / 2 ** 20;
  assert.ok(grown < 40, `${grown.toFixed(0)} MiB`);
});

test("reads, scans, walks and failures leave no memory behind", { timeout: 6000000 }, async () => {
  const db = NteeDB.open(freshDir());
  for (let i = 0; i < 2000; i++) db.put(`k${i}`, { i, pad: "x".repeat(200) });
  db.put("big", big);
  db.put("odd", Buffer.from([0xff]));
  const round = async () => {
    const calls = [];
    for (let i = 0; i < 200; i++) {
      calls.push(
        db.get("big", { as: "buffer" }),
        db.get("odd", { as: "text" }),
        db.getMany([`k${i}`, ""]),
        db.prefixScan("k"),
      );
      calls.push(db.getMany(["big", `k${i}`]), db.putAsync("x", undefined), db.get(`k${i}`));
    }
    for (let i = 0; i < 10; i++) calls.push(db.prefixScanRecords("k"), db.verify(), db.details());
    await Promise.allSettled(calls);
    for await (const entry of db.entries("k1")) if (entry.value.i > 1500) break;
  };
  for (let i = 0; i < 10; i++) await round(); // what is kept for later calls has its size then
  gc();
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 15; i++) await round();
  gc();
  const grown = (process.memoryUsage().rss - before) / 2 ** 20;
  assert.ok(grown < 80, `${grown.toFixed(0)} MiB`);
  db.drop();
});
