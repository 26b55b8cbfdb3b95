// lmdb-js. Of its configurations that give back equal objects this one measured best: MessagePack with
// shared structures; for the fast tier noSync and a writable map.

export async function load() {
  const { open } = await import("lmdb");
  return { open: (dir, tier) => new Store(open({ path: `${dir}/data.mdb`, ...options(tier) })) };
}

function options(tier) {
  const values = { encoding: "msgpack", sharedStructuresKey: Symbol.for("structures"), cache: false };
  // Without overlappingSync a putSync returns only after its sync.
  return tier === "durable"
    ? { ...values, overlappingSync: false }
    : { ...values, noSync: true, useWritemap: true };
}

export function describe(tier) {
  const common = "msgpack with shared structures, no cache";
  return tier === "durable" ? `${common}, overlappingSync off` : `${common}, noSync, useWritemap`;
}

export const notes = {
  get: "get (synchronous)",
  get_sync: "get",
  exists: "doesExist",
  put_fast:
    "put for all, one await at the end: the fastest, but not durable at return, so less than the others do " +
    "(putSync, which is, took 3 to 5 times as long)",
  put_sync_each: "putSync",
  batch_20k: "await batch(callback)",
  putmany_20k: "await batch(callback)",
  prefix_keys_20k: "getKeys(range).asArray",
  prefix_records_20k: "getRange(range).asArray",
};

class Store {
  constructor(db) {
    this.db = db;
  }

  fill(records) {
    return this.batch(records);
  }

  get(keys) {
    const db = this.db;
    let sum = 0;
    for (const key of keys) sum += db.get(key).status;
    return sum;
  }

  getSync(keys) {
    return this.get(keys);
  }

  exists(keys) {
    const db = this.db;
    let found = 0;
    for (const key of keys) if (db.doesExist(key)) found++;
    return found;
  }

  async putEach(records) {
    const db = this.db;
    let last;
    for (const { key, value } of records) last = db.put(key, value);
    await last;
  }

  putDurable(records) {
    const db = this.db;
    for (const { key, value } of records) db.putSync(key, value);
  }

  prepareBatch(records) {
    return records;
  }

  async batch(records) {
    const db = this.db;
    await db.batch(() => {
      for (const { key, value } of records) db.put(key, value);
    });
  }

  putMany(records) {
    return this.batch(records);
  }

  keys(prefix) {
    return this.db.getKeys(rangeOf(prefix)).asArray;
  }

  records(prefix) {
    return this.db.getRange(rangeOf(prefix)).asArray;
  }

  close() {
    return this.db.close();
  }
}

function rangeOf(prefix) {
  return { start: prefix, end: `${prefix}\uffff` };
}
