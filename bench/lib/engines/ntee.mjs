// ntee-db, through its package. Each method is the loop that a row times, written as its user would.

export async function load() {
  const { NteeDB } = await import("ntee-db");
  const open = (dir, tier) =>
    new Store(
      NteeDB.open(dir, {
        syncEveryWrite: tier === "durable",
        hintEveryN: tier === "hinted" ? 5 : null,
      }),
    );
  return { open };
}

export function describe(tier) {
  return tier === "durable" ? "syncEveryWrite" : "the fast tier: background sync every 100 ms";
}

export const notes = {
  get: "await get(key), one at a time",
  get_sync: "getSync",
  exists: "hasSync",
  put_fast: "put",
  put_sync_each: "put in a store opened with syncEveryWrite",
  batch_20k: "await batch(ops)",
  put_hint5: "put in a store opened with hintEveryN 5",
  putmany_20k: "await putMany(items)",
  prefix_keys_20k: "await prefixScan(prefix)",
  prefix_records_20k: "await prefixScanRecords(prefix)",
};

class Store {
  constructor(db) {
    this.db = db;
  }

  fill(records) {
    return this.db.putMany(records);
  }

  async get(keys) {
    const db = this.db;
    let sum = 0;
    for (const key of keys) sum += (await db.get(key)).status;
    return sum;
  }

  getSync(keys) {
    const db = this.db;
    let sum = 0;
    for (const key of keys) sum += db.getSync(key).status;
    return sum;
  }

  exists(keys) {
    const db = this.db;
    let found = 0;
    for (const key of keys) if (db.hasSync(key)) found++;
    return found;
  }

  putEach(records) {
    const db = this.db;
    for (const { key, value } of records) db.put(key, value);
  }

  putDurable(records) {
    this.putEach(records);
  }

  prepareBatch(records) {
    return records.map(({ key, value }) => ({ type: "put", key, value }));
  }

  batch(ops) {
    return this.db.batch(ops);
  }

  putMany(items) {
    return this.db.putMany(items);
  }

  keys(prefix) {
    return this.db.prefixScan(prefix);
  }

  records(prefix) {
    return this.db.prefixScanRecords(prefix);
  }

  async close() {
    this.db.close();
    await this.db.closed;
  }
}
