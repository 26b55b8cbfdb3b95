// A writer that is killed with SIGKILL: what it reported is there, a batch is there whole or not at all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NteeDB } from "../lib/index.js";
import { freshDir, LONG, random, run, seed, sleep } from "./support.js";

const WRITER = `
  import { writeSync } from "node:fs";
  const tier = { syncEveryWrite: process.argv.at(-1) === "sync" };
  const db = NteeDB.open(dir, tier);
  let n = db.getSync("last") ?? -1;
  const say = (line) => writeSync(1, line + "\\n");
  say("open");
  for (;;) {
    n++;
    const r = n % 5;
    if (r === 0) { await db.putMany(Array.from({ length: 8 }, (_, i) => ({ key: "batch" + i, value: n }))); }
    else if (r === 1) { await db.putAsync("async" + (n % 100), n); }
    else if (r === 2) { db.delete("gone" + (n % 100)); db.put("gone" + ((n + 50) % 100), n); }
    else db.put("k" + (n % 1000), { n, pad: "x".repeat(n % 300) });
    db.put("last", n);
    say(String(n));
  }
`;

test("kill -9 at any moment loses nothing that was acknowledged", { timeout: 6000000 }, async (t) => {
  const next = random(seed(t));
  const rounds = LONG ? 1000 : 100;
  const dir = freshDir();
  let writes = 0;
  for (let round = 0; round < rounds; round++) {
    const { child, ended } = run(WRITER, { dir, args: [round % 4 === 3 ? "sync" : "fast"] });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    if (round % 10 !== 9) await sleep(next() * 30);
    child.kill("SIGKILL");
    const { out, err } = await ended;
    assert.equal(err, "");
    const lines = out.split("\n").slice(0, -1);
    const acked = lines.length > 1 ? Number(lines.at(-1)) : -1;
    const db = NteeDB.open(dir);
    const last = db.getSync("last") ?? -1;
    assert.ok((last >= acked && last <= acked + 1) || acked === -1, `acknowledged ${acked}, found ${last}`);
    const batch = new Set(db.getManySync(Array.from({ length: 8 }, (_, i) => `batch${i}`)));
    assert.equal(batch.size, 1, "a batch is there in part");
    for (let n = Math.max(0, last - 90); n <= last; n++) {
      const r = n % 5;
      if (r === 0) assert.ok([...batch][0] >= n);
      else if (r === 1) assert.ok(db.getSync(`async${n % 100}`) >= n);
      else if (r === 2 && n > last - 45) {
        assert.ok(db.getSync(`gone${(n + 50) % 100}`) >= n);
        assert.equal(db.getSync(`gone${n % 100}`), null, "a deleted key is back");
      } else if (r === 2) continue;
      else assert.deepEqual(db.getSync(`k${n % 1000}`), { n, pad: "x".repeat(n % 300) });
    }
    writes = last + 1;
    db.close();
  }
  t.diagnostic(`${rounds} kills, ${writes} writes`);
});
