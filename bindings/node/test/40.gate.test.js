// The gate: 200 calls off the loop at most, first in, first out, whatever else goes on.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { inspect } from "node:util";
import { gate } from "../lib/gate.js";
import { NteeDB } from "../lib/index.js";
import { codeOf, freshDir, gc, run } from "./support.js";

const big = "x".repeat(200000); // not at hand: over 64 KiB
const db = NteeDB.open(freshDir());
db.put("big", big);
db.put("small", 1);
after(() => db.close());

const pending = (promise) => inspect(promise).includes("<pending>");
const bigGet = () => db.get("big", { as: "text" });

test("answers at hand are there within the call", async () => {
  const own = NteeDB.open(freshDir());
  const items = Array.from({ length: 500 }, (_, i) => ({ key: `k${i}`, value: i }));
  const calls = {
    putAsync: own.putAsync("a", 1),
    putMany: own.putMany(items),
    batch: own.batch([{ type: "del", key: "a" }]),
    get: own.get("k1"),
    getMany: own.getMany(["k1", "k2", "k3"]),
    has: own.has("k1"),
    prefixScan: own.prefixScan("k"),
    prefixScanRecords: own.prefixScanRecords("k1"),
    rangeScan: own.rangeScan({ gte: "k2" }),
    count: own.count("k"),
    stats: own.stats(),
    details: own.details(),
  };
  for (const [name, promise] of Object.entries(calls)) assert.ok(!pending(promise), name);
  assert.equal(gate.inFlight, 0);
  for (const promise of Object.values(calls)) await promise;
  assert.equal((await calls.prefixScan).length, 500);
  own.drop();
});

test("a call that is not at hand does not make others wait", async () => {
  const slow = bigGet();
  assert.ok(pending(slow));
  assert.ok(!pending(db.get("small")));
  assert.equal((await slow).length, big.length);
});

test("200 at most are in flight; behind the queue nothing is answered in place, and everything is in order", async () => {
  const order = [];
  const note = (name, promise) => promise.then(() => order.push(name));
  const first = Array.from({ length: 200 }, bigGet);
  assert.equal(gate.inFlight, 200);
  assert.equal(gate.queued, 0);
  assert.ok(!pending(db.get("small")), "nothing is queued yet");
  const queued = bigGet();
  assert.equal(gate.queued, 1);
  const behind = [
    note("get", db.get("small")),
    note("has", db.has("small")),
    note("getMany", db.getMany(["small"])),
    note("scan", db.prefixScan("s")),
    note("count", db.count()),
    note("stats", db.stats()),
    note("details", db.details()),
    note("verify", db.verify()),
    note("put", db.putAsync("gate", 1)),
    note("keys", db.keys("s").next()),
    note("entries", db.entries("s").next()),
    note("batch", db.batch([{ type: "put", key: "gate2", value: 1 }])),
    note("sync", db.sync()),
  ];
  assert.equal(order.length, 0);
  assert.equal(db.getSync("small"), 1, "synchronous methods never queue");
  assert.equal(db.hasSync("gate"), false);
  db.put("gate-sync", 1);
  await Promise.all([...first, queued, ...behind]);
  assert.equal(gate.queued, 0);
  assert.equal(gate.inFlight, 0);
  assert.equal(order.length, behind.length);
  assert.equal(db.getSync("gate"), 1);
});

test("queued calls are begun first in, first out; a write waits for the writes before it, and for nothing else", async () => {
  // With one libuv thread calls end in the order in which they begin.
  const { out, code } = await run(
    `
    const db = NteeDB.open(dir);
    db.put("big", "x".repeat(200000));
    db.put("mid", "x".repeat(60000)); // one call is enough for it
    const order = [];
    const all = [];
    for (let i = 0; i < 201; i++) all.push(db.get("big", { as: "text" }));
    for (let i = 0; i < 900; i++) {
      const call = [() => db.prefixScan("b"), () => db.get("mid", { as: "text" }), () => db.has("big"), () => db.putAsync("k" + i, i),
        () => db.count(), () => db.sync(), () => db.getMany(["mid"], { as: "text" })][i % 7];
      all.push(call().then(() => order.push(i)));
    }
    await Promise.all(all);
    const sorted = (list) => list.every((n, i) => i === 0 || n > list[i - 1]);
    const write = (n) => n % 7 === 3 || n % 7 === 5; // a sync waits for the writes before it, too
    console.log(order.length, sorted(order.filter(write)), sorted(order.filter((n) => !write(n))));
    db.close();
  `,
    { env: { UV_THREADPOOL_SIZE: "1" } },
  ).ended;
  assert.equal(out, "900 true true\n");
  assert.equal(code, 0);
});

test("of two asynchronous writes of a key the later one wins, in both tiers", async () => {
  for (const syncEveryWrite of [false, true]) {
    const own = NteeDB.open(freshDir(), { syncEveryWrite });
    const all = [];
    for (let i = 0; i < 3000; i++) {
      if (i % 100 === 50)
        all.push(
          own.putMany([
            { key: "k", value: i },
            { key: `m${i}`, value: i },
          ]),
        );
      else all.push(own.putAsync("k", i));
      if (i % 100 === 99) await null;
    }
    await Promise.all(all);
    assert.equal(own.getSync("k"), 2999);
    assert.equal(await own.count("m"), 30);
    own.drop();
  }
});

test("asynchronous writes that wait share syncs", async () => {
  const own = NteeDB.open(freshDir(), { syncEveryWrite: true });
  const count = 5000;
  const started = performance.now();
  for (let i = 0; i < 20; i++) own.put(`s${i}`, i);
  const each = (performance.now() - started) / 20;
  const before = performance.now();
  await Promise.all(Array.from({ length: count }, (_, i) => own.putAsync(`a${i}`, i)));
  const all = performance.now() - before;
  assert.ok(all < (count * each) / 4, `${all.toFixed(0)} ms for ${count}, ${each.toFixed(2)} ms each alone`);
  assert.equal(await own.count("a"), count);
  own.drop();
});

test("100,000 concurrent calls of every kind resolve", { timeout: 6000000 }, async () => {
  const own = NteeDB.open(freshDir());
  for (let i = 0; i < 2000; i++) own.put(`k${i}`, { i });
  own.put("big", big);
  const all = [];
  for (let i = 0; i < 300; i++)
    all.push(own.get("big", { as: "text" }).then((text) => text.length === big.length));
  for (let i = 0; i < 100000; i++) {
    const k = `k${i % 2000}`;
    const call = [
      () => own.get(k).then((value) => value.i === i % 2000),
      () => own.get(k, { as: "text" }).then((text) => text === `{"i":${i % 2000}}`),
      () => own.has(k).then((yes) => yes),
      () => own.getMany([k, "no"]).then(([a, b]) => a.i === i % 2000 && b === null),
      () => own.putAsync(`new${i}`, i).then((nothing) => nothing === undefined),
      () => own.get("missing").then((value) => value === null),
    ][i % 6];
    all.push(call());
  }
  assert.ok(gate.queued > 50000);
  const results = await Promise.all(all);
  assert.ok(results.every(Boolean));
  assert.equal(await own.count("new"), Math.floor((100000 + 1) / 6));
  own.drop();
});

test("a waiting get takes about half a kilobyte, and gives it back", async () => {
  const own = NteeDB.open(freshDir());
  own.put("big", big);
  const keys = Array.from({ length: 200000 }, (_, i) => `key-number-${i}`);
  const busy = Array.from({ length: 201 }, () => own.get("big", { as: "buffer" }));
  gc();
  const before = process.memoryUsage().heapUsed;
  const waiting = keys.map((key) => own.get(key));
  assert.equal(gate.queued, 200001);
  gc();
  const each = (process.memoryUsage().heapUsed - before) / keys.length;
  assert.ok(each < 600, `${each.toFixed(0)} bytes each`);
  await Promise.all(busy);
  await Promise.all(waiting);
  waiting.length = 0;
  gc();
  assert.ok(process.memoryUsage().heapUsed - before < 5 << 20);
  own.drop();
});

test("an error rejects its own call and frees its place", async () => {
  const own = NteeDB.open(freshDir());
  own.put("big", big);
  own.put("odd", Buffer.alloc(100000, 0xff));
  const all = Array.from({ length: 1000 }, (_, i) => own.get(i % 2 ? "odd" : "big", { as: "text" }));
  const results = await Promise.allSettled(all);
  results.forEach(({ status, reason }, i) => {
    assert.equal(status, i % 2 ? "rejected" : "fulfilled");
    if (reason) assert.equal(reason.code, "NTEE_INVALID");
  });
  assert.deepEqual([gate.inFlight, gate.queued], [0, 0]);
  assert.equal(await codeOf(own.get(5)), "NTEE_INVALID");
  own.drop();
});

test("another user of koffi that holds places, even all of them, only makes calls wait", async () => {
  const { out, code, err } = await run(`
    import { createRequire } from "node:module";
    const koffi = createRequire(${JSON.stringify(import.meta.url)})("koffi");
    const usleep = koffi.load(null).func("int usleep(unsigned int)");
    const db = NteeDB.open(dir);
    db.put("big", "x".repeat(200000));
    const get = () => db.get("big", { as: "text" }).then((text) => text.length);
    for (const held of [150, 255, 256]) {
      let others = 0;
      for (let i = 0; i < held; i++) usleep.async(1000, () => { others++; });
      const lengths = await Promise.all(Array.from({ length: 600 }, get));
      console.log(held, lengths.every((length) => length === 200000), (await db.count()) === 1);
      while (others < held) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    db.close();
    await db.closed;
  `).ended;
  assert.equal(err, "");
  assert.equal(out, "150 true true\n255 true true\n256 true true\n");
  assert.equal(code, 0);
});

test("synchronous writes go on while asynchronous ones hold every libuv thread", async () => {
  const { out, code } = await run(
    `
    import { readFile } from "node:fs/promises";
    const db = NteeDB.open(dir, { syncEveryWrite: true });
    const all = Array.from({ length: 500 }, (_, i) => db.putAsync("a" + i, i));
    for (let i = 0; i < 50; i++) db.put("s" + i, i);
    await readFile(process.execPath.slice(0, 0) + "/etc/hosts");
    await Promise.all(all);
    console.log(await db.count());
    db.close();
  `,
    { env: { UV_THREADPOOL_SIZE: "1" } },
  ).ended;
  assert.equal(out, "550\n");
  assert.equal(code, 0);
});
