// The rows: what is timed, per how many operations, and how its result is proved afterwards.
//
// `store` says what a row starts from:
//   filled   the round's store, which holds all records already
//   empty    a fresh store of the fast tier
//   durable  a fresh store in which every write waits for its sync
//   hinted   a fresh store of the fast tier that saves its index after every 5 writes; of ntee alone

import assert from "node:assert/strict";
import { sampleOf } from "./workload.mjs";

const SAMPLE = 64;
const READ_PASSES = 3;

export const rows = {
  get: {
    unit: "us",
    store: "filled",
    passes: READ_PASSES,
    operations: (work) => work.n,
    run: (store, work) => store.get(work.shuffled),
    check: (sum, work, store) => checkGets(sum, work, store),
  },
  get_sync: {
    unit: "us",
    store: "filled",
    passes: READ_PASSES,
    operations: (work) => work.n,
    run: (store, work) => store.getSync(work.shuffled),
    check: (sum, work, store) => checkGets(sum, work, store),
  },
  exists: {
    unit: "us",
    store: "filled",
    passes: READ_PASSES,
    operations: (work) => work.n,
    run: (store, work) => store.exists(work.shuffled),
    check: (found, work, store) => {
      assert.equal(found, work.n);
      assert.equal(store.exists(["api:", "none"]), 0);
    },
  },
  put_fast: {
    unit: "us",
    store: "empty",
    operations: (work) => work.n,
    run: (store, work) => store.putEach(work.records),
    check: (_, work, store) => checkHolds(store, work.prefix, work.records),
  },
  put_sync_each: {
    unit: "us",
    store: "durable",
    operations: (work) => work.durable.length,
    run: (store, work) => store.putDurable(work.durable),
    check: (_, work, store) => checkHolds(store, work.prefix, work.durable),
  },
  put_hint5: {
    unit: "us",
    store: "hinted",
    alone: true,
    operations: (work) => work.n,
    run: (store, work) => store.putEach(work.records),
    check: (_, work, store) => checkHolds(store, work.prefix, work.records),
  },
  batch_20k: {
    unit: "us",
    store: "empty",
    operations: (work) => work.n,
    prepare: (store, work) => store.prepareBatch(work.records),
    run: (store, work, prepared) => store.batch(prepared),
    check: (_, work, store) => checkHolds(store, work.prefix, work.records),
  },
  putmany_20k: {
    unit: "us",
    store: "empty",
    operations: (work) => work.n,
    run: (store, work) => store.putMany(work.records),
    check: (_, work, store) => checkHolds(store, work.prefix, work.records),
  },
  prefix_keys_20k: {
    unit: "ms",
    store: "filled",
    passes: READ_PASSES,
    operations: () => 1,
    run: (store, work) => store.keys(work.prefix),
    check: (keys, work) => assert.deepEqual(keys, work.keys),
  },
  prefix_records_20k: {
    unit: "ms",
    store: "filled",
    passes: READ_PASSES,
    operations: () => 1,
    run: (store, work) => store.records(work.prefix),
    check: (found, work) => checkRecords(found, work.records),
  },
};

function checkGets(sum, work, store) {
  assert.equal(sum, work.statusSum);
  for (const { key, value } of sampleOf(work.records, 8)) {
    assert.equal(store.getSync([key]), value.status);
  }
}

async function checkHolds(store, prefix, expected) {
  checkRecords(await store.records(prefix), expected);
}

function checkRecords(found, expected) {
  assert.equal(found.length, expected.length);
  const places = sampleOf([...expected.keys()], SAMPLE);
  for (const at of places) {
    assert.equal(found[at].key, expected[at].key);
    assert.deepEqual({ ...found[at].value }, expected[at].value);
  }
}
