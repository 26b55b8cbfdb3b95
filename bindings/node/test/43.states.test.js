// Every method while the store is idle, while somebody walks through it, while calls are in flight, and
// while the gate is full: the same answers. (Closed: 10.open.)
import assert from "node:assert/strict";
import { test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { freshDir } from "./support.js";

const METHODS = {
  put: [(db) => db.put("new", 1), undefined],
  putAsync: [(db) => db.putAsync("new", 1), undefined],
  putIfAbsent: [(db) => db.putIfAbsent("k1", 1), false],
  putMany: [(db) => db.putMany([{ key: "new", value: 1 }]), 1],
  batch: [(db) => db.batch([{ type: "del", key: "new" }]), 1],
  get: [(db) => db.get("k1"), { i: 1 }],
  getSync: [(db) => db.getSync("k1"), { i: 1 }],
  getMany: [(db) => db.getMany(["k1", "none"]), [{ i: 1 }, null]],
  getManySync: [(db) => db.getManySync(["none", "k2"]), [null, { i: 2 }]],
  has: [(db) => db.has("k1"), true],
  hasSync: [(db) => db.hasSync("none"), false],
  delete: [(db) => db.delete("none"), false],
  prefixScan: [
    (db) => db.prefixScan("k199"),
    ["k199", "k1990", "k1991", "k1992", "k1993", "k1994", "k1995", "k1996", "k1997", "k1998", "k1999"],
  ],
  rangeScan: [(db) => db.rangeScan({ gte: "k1998", lte: "k1999" }), ["k1998", "k1999"]],
  prefixScanRecords: [(db) => db.prefixScanRecords("k1999"), [{ key: "k1999", value: { i: 1999 } }]],
  rangeScanRecords: [
    (db) => db.rangeScanRecords({ gt: "k1998", lte: "k1999" }),
    [{ key: "k1999", value: { i: 1999 } }],
  ],
  entries: [async (db) => (await db.entries("k1999").next()).value, { key: "k1999", value: { i: 1999 } }],
  keys: [async (db) => (await db.keys("k1").next()).value, "k1"],
  count: [(db) => db.count("k"), 2000],
  stats: [async (db) => (await db.stats()).blobBytes, 0],
  details: [async (db) => (await db.details()).state, "good"],
  verify: [(db) => db.verify(), { differences: [], count: 0 }],
  sync: [(db) => db.sync(), undefined],
};

const STATES = {
  idle: async () => async () => {},
  iterating: async (db) => {
    const walks = [db.entries(), db.keys("", { reverse: true })];
    for (const walk of walks) await walk.next();
    return async () => {
      for (const walk of walks) assert.ok(!(await walk.next()).done);
    };
  },
  busy: async (db) => {
    const calls = [
      db.get("big", { as: "buffer" }),
      db.prefixScanRecords("k"),
      db.sync(),
      db.putMany([{ key: "busy", value: "x".repeat(100000) }]),
    ];
    return async () => {
      await Promise.all(calls);
    };
  },
  full: async (db) => {
    const calls = Array.from({ length: 300 }, () => db.get("big", { as: "buffer" }));
    return async () => {
      await Promise.all(calls);
    };
  },
};

test("the table has every method", () => {
  const methods = Object.getOwnPropertyNames(NteeDB.prototype).filter(
    (name) => !["constructor", "close", "drop", "closed"].includes(name),
  );
  assert.deepEqual(methods.sort(), Object.keys(METHODS).sort());
});

const OPTIONS = [{}, { syncEveryWrite: true }, { useMmap: false }];

for (const options of OPTIONS) {
  for (const [state, enter] of Object.entries(STATES)) {
    test(`every method while ${state}, opened with ${JSON.stringify(options)}`, async () => {
      const db = NteeDB.open(freshDir(), options);
      await db.putMany(Array.from({ length: 2000 }, (_, i) => ({ key: `k${i}`, value: { i } })));
      db.put("big", "x".repeat(100000));
      for (const [name, [call, want]] of Object.entries(METHODS)) {
        const leave = await enter(db);
        assert.deepEqual(await call(db), want, name);
        await leave();
      }
      db.drop();
    });
  }
}
