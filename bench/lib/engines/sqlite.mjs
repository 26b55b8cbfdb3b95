// better-sqlite3: WAL, prepared statements, values as JSON text. A WITHOUT ROWID table measured better
// than a rowid table with a unique index, and synchronous=OFF better than NORMAL.
//
// It is measured twice. "sqlite" admits other connections, which is what gives SQLite readers beside a
// writer, and how programs run it. "sqlite_exclusive" has locking_mode=EXCLUSIVE: that saves the locking
// calls of every statement and leaves one connection in all.

export async function load({ exclusive = false } = {}) {
  const { default: Database } = await import("better-sqlite3");
  return {
    open(dir, tier) {
      const db = new Database(`${dir}/data.sqlite`);
      if (exclusive) db.pragma("locking_mode = EXCLUSIVE");
      db.pragma("journal_mode = WAL");
      db.pragma(`synchronous = ${tier === "durable" ? "FULL" : "OFF"}`);
      db.pragma("wal_autocheckpoint = 8000");
      db.pragma("mmap_size = 268435456");
      db.pragma("cache_size = -65536");
      db.exec("CREATE TABLE data (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID");
      return new Store(db);
    },
  };
}

export function describe(tier, { exclusive = false } = {}) {
  const sync = tier === "durable" ? "FULL" : "OFF";
  const locking = exclusive ? "locking_mode=EXCLUSIVE" : "other connections admitted";
  return `WAL, synchronous=${sync}, WITHOUT ROWID, 64 MiB cache, mmap, ${locking}`;
}

export const notes = {
  get: "get of a prepared statement (synchronous) and JSON.parse",
  get_sync: "get of a prepared statement and JSON.parse",
  exists: "SELECT 1 by a prepared statement",
  put_fast: "JSON.stringify and run of a prepared statement, autocommit",
  put_sync_each: "the same, synchronous=FULL",
  batch_20k: "one transaction",
  putmany_20k: "one transaction",
  prefix_keys_20k: "one SELECT of keys",
  prefix_records_20k: "one SELECT of keys and values, JSON.parse of each",
};

class Store {
  constructor(db) {
    this.db = db;
    this.upsert = db.prepare("INSERT OR REPLACE INTO data VALUES (?, ?)");
    this.select = db.prepare("SELECT value FROM data WHERE key = ?").pluck();
    this.selectOne = db.prepare("SELECT 1 FROM data WHERE key = ?").pluck();
    this.selectKeys = db.prepare("SELECT key FROM data WHERE key >= ? AND key < ? ORDER BY key").pluck();
    this.selectRecords = db
      .prepare("SELECT key, value FROM data WHERE key >= ? AND key < ? ORDER BY key")
      .raw();
    this.upsertAll = db.transaction((records) => {
      for (const { key, value } of records) this.upsert.run(key, JSON.stringify(value));
    });
  }

  fill(records) {
    this.upsertAll(records);
    this.db.pragma("wal_checkpoint(TRUNCATE)");
  }

  get(keys) {
    const select = this.select;
    let sum = 0;
    for (const key of keys) sum += JSON.parse(select.get(key)).status;
    return sum;
  }

  getSync(keys) {
    return this.get(keys);
  }

  exists(keys) {
    const selectOne = this.selectOne;
    let found = 0;
    for (const key of keys) if (selectOne.get(key) === 1) found++;
    return found;
  }

  putEach(records) {
    const upsert = this.upsert;
    for (const { key, value } of records) upsert.run(key, JSON.stringify(value));
  }

  putDurable(records) {
    this.putEach(records);
  }

  prepareBatch(records) {
    return records;
  }

  batch(records) {
    this.upsertAll(records);
  }

  putMany(records) {
    this.upsertAll(records);
  }

  keys(prefix) {
    return this.selectKeys.all(prefix, `${prefix}\uffff`);
  }

  records(prefix) {
    return this.selectRecords
      .all(prefix, `${prefix}\uffff`)
      .map(([key, value]) => ({ key, value: JSON.parse(value) }));
  }

  close() {
    this.db.close();
  }
}
