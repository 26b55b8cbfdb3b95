// What a store knows about itself: details(), the damage that opening finds, accepting it, verify().
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { codeOf, freshDir, logOf, rot, run } from "./support.js";

const LOG = "00000001.log";
const name = (i) => `k${String(i).padStart(2, "0")}`;
const KEYS = Array.from({ length: 50 }, (_, i) => name(i));

/** A closed store of 50 records k00 to k49. */
function made() {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  KEYS.forEach((key, i) => db.put(key, { text: `value-${i}-end` }));
  db.close();
  return dir;
}

/** One where the key of k20 is damaged, so that k00 to k19 may be out of date. */
function lost() {
  const dir = made();
  rot(dir, "k20");
  return dir;
}

const corrupt = (key) => (error) =>
  error.name === "NteeError" && error.code === "NTEE_CORRUPT" && error.message.endsWith(`key ${key}`);

// ---- details ----

test("details of a new store, of one that was closed, and of a reader", async () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  const fresh = await db.details();
  assert.deepEqual(fresh, {
    ...(await db.stats()),
    sequence: 0,
    durableSeq: 0,
    syncLagMs: 0,
    state: "good",
    openScans: 0,
    recovery: { clean: false, replayed: 0, cutBytes: 0, salvagedBytes: 0 },
    damaged: [],
    suspectBytes: 0,
  });
  db.put("a", 1);
  db.put("b", 2);
  db.delete("a");
  db.close();
  for (const [options, state] of [
    [{}, "good"],
    [{ readOnly: true }, "read-only"],
  ]) {
    const again = NteeDB.open(dir, options);
    const { mainBytes, ...rest } = await again.details();
    assert.ok(mainBytes > fresh.mainBytes);
    assert.deepEqual(rest, {
      records: 1,
      blobBytes: 0,
      sequence: 3,
      durableSeq: 3,
      syncLagMs: 0,
      state,
      openScans: 0,
      recovery: { clean: true, replayed: 3, cutBytes: 0, salvagedBytes: 0 },
      damaged: [],
      suspectBytes: 0,
    });
    again.close();
  }
  NteeDB.destroy(dir);
});

test("details follow writes, syncs and walks", async () => {
  const db = NteeDB.open(freshDir(), { syncIntervalMs: 60000 });
  for (let i = 0; i < 2000; i++) db.put(`k${i}`, "x".repeat(100));
  let { sequence, durableSeq, records } = await db.details();
  assert.deepEqual([sequence, durableSeq, records], [2000, 0, 2000]);
  db.put("k0", 1);
  await db.sync();
  ({ sequence, durableSeq, records } = await db.details());
  assert.deepEqual([sequence, durableSeq, records], [2001, 2001, 2000]);
  const { syncLagMs } = await db.details();
  assert.ok(Number.isInteger(syncLagMs) && syncLagMs >= 0 && syncLagMs < 60000, String(syncLagMs));
  const walk = db.entries();
  await walk.next();
  assert.equal((await db.details()).openScans, 1);
  await walk.return();
  assert.equal((await db.details()).openScans, 0);
  db.drop();
  const durable = NteeDB.open(freshDir(), { syncEveryWrite: true });
  durable.put("a", 1);
  ({ sequence, durableSeq } = await durable.details());
  assert.deepEqual([sequence, durableSeq], [1, 1]);
  durable.drop();
});

/** The directory of a store that was killed with 50 records, none of which was ever synced. */
async function killed() {
  const dir = freshDir();
  const { signal } = await run(
    `const db = NteeDB.open(dir, { syncIntervalMs: 60000 });
    for (let i = 10; i < 60; i++) db.put("k" + i, "value-" + i + "-end");
    process.kill(process.pid, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 60000));`,
    { dir },
  ).ended;
  assert.equal(signal, "SIGKILL");
  return dir;
}

test("recovery tells what a crash has left", async () => {
  const whole = NteeDB.open(await killed());
  assert.deepEqual((await whole.details()).recovery, {
    clean: false,
    replayed: 50,
    cutBytes: 0,
    salvagedBytes: 0,
  });
  whole.drop();

  const cut = await killed();
  const end = readFileSync(logOf(cut)).indexOf("value-59-end") + 5;
  truncateSync(logOf(cut), end);
  const torn = NteeDB.open(cut);
  const { recovery: rest } = await torn.details();
  assert.deepEqual([rest.clean, rest.replayed, rest.salvagedBytes], [false, 49, 0]);
  assert.ok(rest.cutBytes > 0 && rest.cutBytes < 200, String(rest.cutBytes));
  torn.drop();

  const dir = await killed();
  rot(dir, "value-30-end");
  const db = NteeDB.open(dir);
  const { recovery, damaged, records, suspectBytes } = await db.details();
  assert.deepEqual([recovery.clean, recovery.replayed, records], [false, 20, 20]);
  assert.ok(recovery.cutBytes > 0 && recovery.cutBytes % 8 === 0);
  assert.equal(recovery.salvagedBytes, recovery.cutBytes);
  assert.ok(readdirSync(dir).length > 2, "there is a salvage file");
  assert.deepEqual([damaged, suspectBytes], [[], 0]);
  assert.equal((await db.verify()).count, 0);
  db.drop();
});

const CC = process.platform === "linux" && (process.env.NTEE_LIBRARY ?? "") === "" && compiler();
function compiler() {
  try {
    execFileSync("cc", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

test("where a sync has failed the state is so: writes are refused, reads go on", { skip: !CC }, async () => {
  const place = freshDir();
  mkdirSync(place);
  const source = join(place, "fail.c");
  const library = join(place, "fail.so");
  writeFileSync(
    source,
    `#include <errno.h>
    #include <stdlib.h>
    #include <unistd.h>
    int fdatasync(int fd) {
        if (access(getenv("NT_FAIL"), F_OK) != 0) return fsync(fd);
        errno = EIO;
        return -1;
    }`,
  );
  execFileSync("cc", ["-shared", "-fPIC", "-o", library, source]);
  const fail = join(place, "now");
  const { out, err } = await run(
    `import { writeFileSync } from "node:fs";
    const db = NteeDB.open(dir, { syncIntervalMs: 60000 });
    const say = async () => {
      const { state, sequence, durableSeq } = await db.details();
      return [state, sequence, durableSeq];
    };
    const code = async (call) => { try { await call(); return "ok"; } catch (error) { return error.code; } };
    db.put("a", 1);
    await db.sync();
    const good = await say();
    db.put("b", 2);
    writeFileSync(${JSON.stringify(fail)}, "");
    const sync = await code(() => db.sync());
    const put = await code(() => db.put("c", 3));
    console.log(JSON.stringify([good, sync, put, await say(), await db.get("b"), (await db.verify()).count]));
    process.exit(0);`,
    { env: { LD_PRELOAD: library, NT_FAIL: fail } },
  ).ended;
  assert.equal(err, "");
  assert.deepEqual(JSON.parse(out), [["good", 1, 1], "NTEE_IO", "NTEE_IO", ["failed", 2, 1], 2, 0]);
});

test("more damaged places than fit into a usual answer", { timeout: 600000 }, async () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  const count = 18000;
  const key = (i) => `key${String(i).padStart(5, "0")}`;
  for (let i = 0; i < count; i++) db.put(key(i), i);
  db.close();
  const log = readFileSync(logOf(dir));
  for (let i = 0, at = 0; i < count; i += 2) log[(at = log.indexOf(key(i), at))] ^= 1;
  writeFileSync(logOf(dir), log);
  rmSync(join(dir, "00000001.hint")); // with it, opening does not look at what it covers
  const again = NteeDB.open(dir);
  const { damaged, records } = await again.details();
  assert.equal(damaged.length, count / 2);
  assert.equal(records, count / 2);
  damaged.reduce((before, { file, offset, length }) => {
    assert.equal(file, LOG);
    assert.ok(offset > before && length > 0 && offset + length <= log.length);
    return offset;
  }, 0);
  const { differences, count: all } = await again.verify();
  assert.equal(differences.length, 1000);
  assert.equal(all, count - 1); // a place and a record before the last place, each
  assert.ok(differences.every(({ file, message }) => file === LOG && message.startsWith(LOG)));
  again.drop();
});

// ---- A flipped bit ----

test("in a value: get names the key, verify finds it, details do not", async () => {
  const dir = made();
  const [at] = rot(dir, "value-20-end");
  const db = NteeDB.open(dir);
  const { damaged, suspectBytes } = await db.details();
  assert.deepEqual([damaged, suspectBytes], [[], 0]);
  await assert.rejects(db.get("k20"), corrupt("k20"));
  const { differences, count } = await db.verify();
  assert.equal(count, 2); // where it lies, and the key that leads there
  assert.equal(differences.length, 2);
  for (const { file, offset, message } of differences) {
    assert.equal(file, basename(logOf(dir)));
    assert.ok(offset < at && offset > at - 200);
    assert.ok(message.endsWith("key k20") && !message.includes("value-20"), message);
  }
  for (const key of KEYS) if (key !== "k20") assert.ok(await db.has(key), key);
  db.drop();
});

test("in a key: what was written before is NTEE_CORRUPT, what was written later is there", async () => {
  const dir = lost();
  const db = NteeDB.open(dir);
  const { damaged, suspectBytes, records, recovery, sequence } = await db.details();
  assert.deepEqual([records, recovery.replayed, sequence], [49, 49, 50]);
  assert.equal(damaged.length, 1);
  const [{ file, offset, length }] = damaged;
  assert.equal(file, LOG);
  assert.ok(suspectBytes >= offset + length);
  const log = readFileSync(logOf(dir));
  assert.ok(log.subarray(offset, offset + length).includes("value-20-end"));

  for (const key of ["k00", "k19"]) {
    await assert.rejects(db.get(key), corrupt(key));
    assert.throws(() => db.getSync(key), corrupt(key));
    await assert.rejects(db.has(key), corrupt(key));
    assert.throws(() => db.hasSync(key), corrupt(key));
    assert.throws(() => db.putIfAbsent(key, 1), corrupt(key));
  }
  const item = (at, key) => (error) => corrupt(key)(error) && error.item === at;
  for (const options of [{}, { as: "text" }]) {
    await assert.rejects(db.getMany(["k30", "k01", "k02"], options), item(1, "k01"));
    assert.throws(() => db.getManySync(["k30", "k40", "k02"], options), item(2, "k02"));
  }
  for (let i = 21; i < 50; i++) assert.deepEqual(await db.get(name(i)), { text: `value-${i}-end` });
  assert.deepEqual(await db.getMany(["k21", "k49"]), [{ text: "value-21-end" }, { text: "value-49-end" }]);
  db.drop();
});

test("in a key: scans of records reject, or leave out what may be out of date", async () => {
  const db = NteeDB.open(lost());
  const later = KEYS.slice(21);
  await assert.rejects(db.prefixScanRecords("k"), corrupt("k00"));
  await assert.rejects(db.rangeScanRecords({ gte: "k10" }), corrupt("k10"));
  await assert.rejects(db.entries().next(), corrupt("k00"));
  assert.deepEqual(
    (await db.rangeScanRecords({ gt: "k19" })).map(({ key }) => key),
    later,
  );
  const skip = { corrupt: "skip" };
  assert.deepEqual(
    (await db.prefixScanRecords("k", skip)).map(({ key }) => key),
    later,
  );
  assert.deepEqual(
    (await db.rangeScanRecords({ lte: "k21" }, { ...skip, reverse: true })).map(({ key }) => key),
    ["k21"],
  );
  const walked = [];
  for await (const { key } of db.entries("", skip)) walked.push(key);
  assert.deepEqual(walked, later);
  db.drop();
});

test("in a key: a write or a delete makes a key whole again, by itself and in a batch", async () => {
  const dir = lost();
  const db = NteeDB.open(dir);
  db.put("k00", "new");
  assert.equal(db.delete("k01"), true);
  await db.putAsync("k02", "new");
  await db.batch([
    { type: "put", key: "k03", value: "new" },
    { type: "del", key: "k04" },
  ]);
  const check = async (store) => {
    assert.deepEqual(await store.getMany(["k00", "k02", "k03"], { as: "text" }), ["new", "new", "new"]);
    assert.deepEqual(await store.getMany(["k01", "k04"]), [null, null]);
    assert.equal(await store.has("k01"), false);
    await assert.rejects(store.get("k05"), corrupt("k05"));
  };
  await check(db);
  assert.equal(db.putIfAbsent("k01", "newer"), true);
  db.delete("k01");
  db.close();
  const again = NteeDB.open(dir);
  await check(again);
  again.drop();
});

test("verify names the place and every record that may be out of date", async () => {
  const db = NteeDB.open(lost(), { readOnly: true });
  const { differences, count } = await db.verify();
  assert.equal(count, 21);
  assert.equal(differences.length, count);
  const { damaged, suspectBytes } = await db.details();
  const [first, ...rest] = differences;
  assert.ok(first.offset >= damaged[0].offset && first.offset < damaged[0].offset + damaged[0].length);
  assert.deepEqual(
    rest.map(({ message }) => message.slice(-3)),
    KEYS.slice(0, 20),
  );
  assert.ok(rest.every(({ offset, file }) => offset < suspectBytes && file === LOG));
  db.close();
});

// ---- Accepting it ----

test("hintEveryN leaves little to read again, and its loss costs nothing but time", async () => {
  const dir = freshDir();
  let db = NteeDB.open(dir, { hintEveryN: 5 });
  for (let i = 0; i < 500; i++) db.put(`key${i}`, { i });
  for (let i = 0; i < 500; i += 2) db.delete(`key${i}`);
  db.close();
  await db.closed;
  db = NteeDB.open(dir);
  assert.equal((await db.details()).recovery.replayed, 0);
  assert.deepEqual(db.getSync("key7"), { i: 7 });
  assert.equal(db.getSync("key8"), null);
  db.close();
  await db.closed;
  rmSync(join(dir, "00000001.hint"));
  db = NteeDB.open(dir, { readOnly: true });
  assert.equal((await db.details()).recovery.replayed, 750);
  assert.equal((await db.stats()).records, 250);
  assert.deepEqual(db.getSync("key7"), { i: 7 });
  db.close();
});

test("acceptDamage gives the older records back, for good", async () => {
  const dir = lost();
  const db = NteeDB.open(dir, { acceptDamage: true });
  let { damaged, suspectBytes, state } = await db.details();
  assert.deepEqual([damaged.length, suspectBytes, state], [1, 0, "good"]);
  const expected = KEYS.filter((key) => key !== "k20");
  assert.deepEqual(
    (await db.prefixScanRecords("k")).map(({ key }) => key),
    expected,
  );
  assert.equal(await db.get("k20"), null);
  assert.equal(db.putIfAbsent("k00", 1), false);
  db.close();
  for (const options of [{}, { acceptDamage: false }, { readOnly: true }, { acceptDamage: true }]) {
    const again = NteeDB.open(dir, options);
    ({ damaged, suspectBytes } = await again.details());
    assert.deepEqual([damaged, suspectBytes], [[], 0]);
    assert.deepEqual(await again.get("k00"), { text: "value-0-end" });
    assert.equal(await again.count(), 49);
    assert.equal((await again.verify()).count, 1, "the place is as it was");
    again.close();
  }
  // What is written later is not accepted with it.
  const more = NteeDB.open(dir);
  more.put("k90", 1);
  more.put("k91", 1);
  more.close();
  rot(dir, "k90");
  const later = NteeDB.open(dir);
  await assert.rejects(later.get("k00"), corrupt("k00"));
  assert.equal((await later.details()).damaged.length, 1);
  assert.equal(await later.get("k91"), 1);
  later.drop();
});

test("a reader that accepts damage reads, and leaves the store as it was", async () => {
  const dir = lost();
  const before = readFileSync(logOf(dir));
  const reader = NteeDB.open(dir, { readOnly: true, acceptDamage: true });
  assert.deepEqual(await reader.get("k19"), { text: "value-19-end" });
  const { damaged, suspectBytes, state } = await reader.details();
  assert.deepEqual([damaged.length, suspectBytes, state], [1, 0, "read-only"]);
  reader.close();
  assert.ok(readFileSync(logOf(dir)).equals(before));
  const other = NteeDB.open(dir, { readOnly: true });
  await assert.rejects(other.get("k19"), corrupt("k19"));
  other.close();
  NteeDB.destroy(dir);
});

test("acceptDamage changes nothing about a store that is whole, nor about a damaged value", async () => {
  const dir = made();
  const { mainBytes } = await closing(NteeDB.open(dir, { readOnly: true }), (db) => db.stats());
  NteeDB.open(dir, { acceptDamage: true }).close();
  NteeDB.open(freshDir(), { acceptDamage: true, syncEveryWrite: true, useMmap: false }).drop();
  const after = await closing(NteeDB.open(dir, { readOnly: true }), (db) => db.stats());
  assert.equal(after.mainBytes, mainBytes);
  rot(dir, "value-20-end");
  const db = NteeDB.open(dir, { acceptDamage: true });
  await assert.rejects(db.get("k20"), corrupt("k20"));
  assert.equal((await db.verify()).count, 2);
  db.drop();
});

async function closing(db, action) {
  const answer = await action(db);
  db.close();
  return answer;
}

// ---- verify, beside other things ----

/** A store that takes a while to read. */
async function large() {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  const value = "x".repeat(4000);
  for (let i = 0; i < 40; i++) {
    await db.putMany(Array.from({ length: 100 }, (_, j) => ({ key: `k${i}-${j}`, value })));
  }
  return { dir, db };
}

for (const options of [{}, { syncEveryWrite: true }, { useMmap: false }]) {
  test(`verify beside writes and reads, opened with ${JSON.stringify(options)}`, async () => {
    const { dir, db: first } = await large();
    first.close();
    await first.closed;
    const db = NteeDB.open(dir, options);
    let done = false;
    const verified = Promise.all(Array.from({ length: 6 }, () => db.verify())).finally(() => {
      done = true;
    });
    let turns = 0;
    while (!done || turns < 20) {
      db.put(`k${turns % 40}-1`, { turns });
      db.delete(`k${turns % 40}-2`);
      await db.putAsync(`new${turns % 10}`, "y".repeat(500));
      assert.deepEqual(await db.get(`k${turns % 40}-1`), { turns });
      await new Promise((resolve) => setImmediate(resolve));
      turns++;
    }
    for (const answer of await verified) assert.deepEqual(answer, { differences: [], count: 0 });
    assert.deepEqual(await db.verify(), { differences: [], count: 0 });
    db.drop();
  });
}

test("verify does not hold the event loop, nor answers at hand", async () => {
  const { db } = await large();
  let done = false;
  const verified = db.verify().then(() => {
    done = true;
  });
  assert.ok(await db.has("k1-1"));
  await db.details();
  assert.ok(!done);
  await verified;
  db.drop();
});

for (const drop of [false, true]) {
  test(`${drop ? "drop" : "close"} lets verify finish; calls that still wait are NTEE_CLOSED`, async () => {
    const { dir, db } = await large();
    const answers = Array.from({ length: 210 }, () => db.verify());
    const details = db.details(); // behind those that wait
    const settled = Promise.allSettled([...answers, details]);
    if (drop) db.drop();
    else db.close();
    for (const call of [() => db.verify(), () => db.details()]) assert.equal(await codeOf(call), "NTEE_CLOSED");
    const results = await settled;
    await db.closed;
    const good = results.filter(({ status }) => status === "fulfilled");
    assert.equal(good.length, 200);
    for (const { value } of good) assert.deepEqual(value, { differences: [], count: 0 });
    for (const { reason } of results.slice(200)) assert.equal(reason.code, "NTEE_CLOSED");
    assert.equal(existsSync(dir), !drop);
    if (!drop) NteeDB.destroy(dir);
  });
}

test("a process that exits while verify is under way ends well", async () => {
  const { dir, db } = await large();
  db.close();
  await db.closed;
  for (const end of ["process.exit(7)", "db.close(); process.exitCode = 7", "process.exitCode = 7"]) {
    const { code, signal, err } = await run(
      `const db = NteeDB.open(dir); for (let i = 0; i < 20; i++) db.verify(); db.put("last", 1); ${end};`,
      { dir },
    ).ended;
    assert.deepEqual([code, signal, err], [7, null, ""]);
  }
  NteeDB.destroy(dir);
});
