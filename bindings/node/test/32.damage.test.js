// A damaged record is an error that names its key, never a wrong value.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { freshDir, rot } from "./support.js";

/** A store of 50 records where the value of k20 is damaged on disk. */
function damaged() {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  for (let i = 0; i < 50; i++) db.put(`k${String(i).padStart(2, "0")}`, { text: `value-${i}-end` });
  db.close();
  rot(dir, "value-20-end");
  return NteeDB.open(dir);
}
const corrupt = (error) => error.code === "NTEE_CORRUPT" && error.message.includes("k20");

test("reads of a damaged value are NTEE_CORRUPT and name the key; the rest is readable", async () => {
  const db = damaged();
  assert.throws(() => db.getSync("k20"), corrupt);
  await assert.rejects(db.get("k20"), corrupt);
  assert.equal(await db.has("k20"), true);
  assert.deepEqual(await db.get("k19"), { text: "value-19-end" });
  assert.deepEqual(await db.get("k21"), { text: "value-21-end" });
  await assert.rejects(db.getMany(["k19", "k20"]), (error) => corrupt(error) && error.item === 1);
  assert.throws(
    () => db.getManySync(["k20", "k19"]),
    (error) => corrupt(error) && error.item === 0,
  );
  assert.equal((await db.prefixScan("")).length, 50);
  assert.equal(await db.count(), 50);
  db.drop();
});

test("record scans reject, or leave the record out under corrupt: skip", async () => {
  const db = damaged();
  await assert.rejects(db.prefixScanRecords(""), corrupt);
  await assert.rejects(db.rangeScanRecords({ gte: "k20" }), corrupt);
  const rest = await db.prefixScanRecords("", { corrupt: "skip" });
  assert.equal(rest.length, 49);
  assert.ok(!rest.some(({ key }) => key === "k20"));
  assert.equal(
    (await db.rangeScanRecords({ gte: "k20", lte: "k22" }, { corrupt: "skip", reverse: true })).length,
    2,
  );
  db.drop();
});

test("a walk gives what is before the damage, then rejects; with skip it goes on", async () => {
  const db = damaged();
  const seen = [];
  await assert.rejects(async () => {
    for await (const { key } of db.entries()) seen.push(key);
  }, corrupt);
  assert.deepEqual(
    seen,
    Array.from({ length: 20 }, (_, i) => `k${String(i).padStart(2, "0")}`),
  );
  let count = 0;
  for await (const { key } of db.entries("", { corrupt: "skip" })) {
    assert.notEqual(key, "k20");
    count++;
  }
  assert.equal(count, 49);
  db.drop();
});

test("among gets that share a call only the damaged one rejects", async () => {
  const db = damaged();
  const busy = Array.from({ length: 400 }, () =>
    db.sync().then(
      () => {},
      (error) => error.code,
    ),
  );
  db.put("x", 1); // so that there is something to sync
  const filler = Array.from({ length: 400 }, () => {
    db.put("x", 1);
    return db.sync();
  });
  const gets = Array.from({ length: 300 }, (_, i) => db.get(`k${String(i % 50).padStart(2, "0")}`));
  const answers = await Promise.allSettled(gets);
  answers.forEach(({ status, value, reason }, i) => {
    if (i % 50 === 20) assert.ok(corrupt(reason));
    else assert.deepEqual([status, value], ["fulfilled", { text: `value-${i % 50}-end` }]);
  });
  await Promise.all([...busy, ...filler]);
  db.drop();
});

test("a damaged record that is written or deleted anew is whole again", async () => {
  const db = damaged();
  db.put("k20", 1);
  assert.equal(await db.get("k20"), 1);
  assert.equal((await db.prefixScanRecords("")).length, 50);
  db.drop();
  const other = damaged();
  assert.equal(other.delete("k20"), true);
  assert.equal(await other.get("k20"), null);
  assert.equal((await other.prefixScanRecords("")).length, 49);
  other.drop();
});
