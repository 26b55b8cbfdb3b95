// Opening, closing, destroying; paths and options; the lock.
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { test } from "node:test";
import { NteeDB, NteeError } from "../lib/index.js";
import { codeOf, freshDir, logOf, run } from "./support.js";

test("a store is made with its missing parents, and only its owner may look in", () => {
  const dir = join(freshDir(), "a", "b");
  NteeDB.open(dir).close();
  assert.ok(existsSync(dir));
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  for (const name of readdirSync(dir)) assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
});

test("what was written is there after closing and opening, in both tiers, mapped or not", () => {
  for (const options of [
    {},
    { syncEveryWrite: true },
    { useMmap: false },
    { syncEveryWrite: true, useMmap: false },
    { syncIntervalMs: 1 },
    { syncIntervalMs: 60000 },
    { hintEveryN: 1 },
    { hintEveryN: Number.MAX_SAFE_INTEGER },
    { hintEveryN: null },
    null,
    undefined,
    { readOnly: null, syncEveryWrite: null, useMmap: null, syncIntervalMs: null },
  ]) {
    const dir = freshDir();
    const db = NteeDB.open(dir, options);
    db.put("a", { n: 1 });
    db.close();
    const again = NteeDB.open(dir, options);
    assert.deepEqual(again.getSync("a"), { n: 1 });
    again.close();
  }
});

test("close is idempotent, resolves `closed`, and the store can be opened again at once", async () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  const { closed } = db;
  assert.equal(db.close(), undefined);
  db.close();
  NteeDB.open(dir).close();
  assert.equal(await closed, undefined);
  assert.equal(await db.closed, undefined);
});

test("Symbol.dispose closes", () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  db[Symbol.dispose]();
  assert.throws(() => db.getSync("a"), { code: "NTEE_CLOSED" });
  NteeDB.open(dir).close();
});

test("every method of a closed store throws NTEE_CLOSED at once", () => {
  const db = NteeDB.open(freshDir());
  db.close();
  const calls = {
    put: ["a", 1],
    putAsync: ["a", 1],
    putIfAbsent: ["a", 1],
    putMany: [[]],
    batch: [[]],
    get: ["a"],
    getSync: ["a"],
    getMany: [[]],
    getManySync: [[]],
    has: ["a"],
    hasSync: ["a"],
    delete: ["a"],
    prefixScan: [""],
    rangeScan: [{}],
    prefixScanRecords: [""],
    rangeScanRecords: [{}],
    entries: [],
    keys: [],
    count: [],
    stats: [],
    details: [],
    verify: [],
    sync: [],
  };
  const methods = Object.getOwnPropertyNames(NteeDB.prototype).filter(
    (name) => !["constructor", "close", "drop", "closed"].includes(name),
  );
  assert.deepEqual(methods.sort(), Object.keys(calls).sort());
  for (const [name, given] of Object.entries(calls)) {
    assert.throws(
      () => db[name](...given),
      (error) => error instanceof NteeError && error.code === "NTEE_CLOSED",
      name,
    );
  }
});

test("drop closes and deletes, also after close, and leaves files that are not the store's", () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  db.put("a", 1);
  db.drop();
  assert.ok(!existsSync(dir));
  db.drop();

  const other = NteeDB.open(dir);
  other.put("a", 1);
  writeFileSync(join(dir, "mine.txt"), "mine");
  other.close();
  other.drop();
  assert.deepEqual(readdirSync(dir), ["mine.txt"]);
});

test("drop after close does not delete a store that somebody has opened meanwhile", () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  db.put("a", 1);
  db.close();
  const again = NteeDB.open(dir);
  assert.throws(() => db.drop(), { code: "NTEE_LOCKED" });
  assert.equal(again.getSync("a"), 1);
  again.drop();
});

test("destroy deletes a store, leaves a missing directory alone and refuses an open store", () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  db.put("a", 1);
  assert.throws(() => NteeDB.destroy(dir), { code: "NTEE_LOCKED" });
  db.close();
  assert.equal(NteeDB.destroy(dir), undefined);
  assert.ok(!existsSync(dir));
  NteeDB.destroy(dir);
});

test("a second open is refused, by whatever path, and says who has the store", () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  const link = freshDir();
  symlinkSync(dir, link);
  for (const path of [
    dir,
    `${dir}/`,
    `${dirname(dir)}/./${dir.split("/").at(-1)}`,
    `${dir}/../${dir.split("/").at(-1)}`,
    relative(process.cwd(), dir),
    link,
  ]) {
    assert.throws(
      () => NteeDB.open(path),
      (error) => error.code === "NTEE_LOCKED" && error.message.includes(`${process.pid}`),
      path,
    );
    assert.throws(() => NteeDB.open(path, { readOnly: true }), { code: "NTEE_LOCKED" }, path);
  }
  db.put("a", 1);
  db.close();
  const again = NteeDB.open(dir);
  assert.equal(again.getSync("a"), 1);
  again.close();
});

test("another process is refused, and let in after close", async () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  const program =
    "try { const db = NteeDB.open(dir); console.log('in', db.getSync('a')); db.close(); } catch (e) { console.log(e.code); }";
  db.put("a", 1);
  assert.equal((await run(program, { dir }).ended).out, "NTEE_LOCKED\n");
  db.close();
  assert.equal((await run(program, { dir }).ended).out, "in 1\n");
});

test("a child process that the holder started does not hold the lock", async () => {
  const { ended, dir } = run(`
    import { spawn } from "node:child_process";
    import { readdirSync, readlinkSync } from "node:fs";
    const db = NteeDB.open(dir);
    const child = spawn("sleep", ["30"], { detached: true, stdio: "ignore" });
    child.unref();
    await new Promise((resolve) => child.once("spawn", resolve));
    db.close();
    NteeDB.open(dir).close();
    const open = process.platform === "linux"
      ? readdirSync("/proc/" + child.pid + "/fd").map((fd) => readlinkSync("/proc/" + child.pid + "/fd/" + fd)) : [];
    console.log(open.some((path) => path.startsWith(dir)));
    process.kill(child.pid);
  `);
  const { out, code } = await ended;
  assert.equal(out, "false\n");
  assert.equal(code, 0);
  NteeDB.open(dir).close();
});

test("readers share a store, exclude a writer and cannot write", async () => {
  const dir = freshDir();
  assert.throws(() => NteeDB.open(dir, { readOnly: true }), { code: "NTEE_NOT_FOUND" });
  const db = NteeDB.open(dir);
  db.put("a", 1);
  db.close();
  const one = NteeDB.open(dir, { readOnly: true });
  const two = NteeDB.open(dir, { readOnly: true });
  assert.equal(one.getSync("a"), 1);
  assert.deepEqual(await two.prefixScan(""), ["a"]);
  assert.throws(() => NteeDB.open(dir), { code: "NTEE_LOCKED" });
  for (const write of [() => one.put("b", 1), () => one.delete("a"), () => one.putIfAbsent("b", 1)]) {
    assert.throws(write, { code: "NTEE_READONLY" });
  }
  assert.equal(await codeOf(one.putAsync("b", 1)), "NTEE_READONLY");
  assert.equal(await codeOf(one.putMany([{ key: "b", value: 1 }])), "NTEE_READONLY");
  assert.equal(await codeOf(one.batch([{ type: "del", key: "a" }])), "NTEE_READONLY");
  await one.sync();
  one.close();
  two.close();
  NteeDB.open(dir).close();
});

test("paths with any characters are distinct directories", () => {
  const base = freshDir();
  const names = ["Benoît", "Benoi\u0302t", "日本 😀", "a b#%[x]'\"", "n".repeat(255), "dot.", "-x", "\n"];
  names.forEach((name, i) => {
    const db = NteeDB.open(join(base, name));
    db.put("n", i);
    db.close();
  });
  names.forEach((name, i) => {
    const db = NteeDB.open(`${base}/${name}/`);
    assert.equal(db.getSync("n"), i);
    db.close();
  });
  assert.equal(readdirSync(base).length, names.length);
});

test("a path that is none is refused and makes nothing", () => {
  const base = freshDir();
  mkdirSync(base);
  const wrong = [
    "",
    `${base}/a\0b`,
    `${base}/a\ud800`,
    null,
    undefined,
    5,
    5n,
    true,
    {},
    [],
    Symbol("x"),
    Buffer.from("x"),
  ];
  for (const path of wrong) {
    assert.throws(() => NteeDB.open(path), { name: "NteeError", code: "NTEE_INVALID" });
    assert.throws(() => NteeDB.destroy(path), { name: "NteeError", code: "NTEE_INVALID" });
  }
  assert.throws(() => NteeDB.open(`${base}/${"x".repeat(256)}`), NteeError);
  assert.throws(() => NteeDB.open(`${base}/${"x/".repeat(2500)}`), NteeError);
  assert.deepEqual(
    readdirSync(base).filter((name) => name !== "x"),
    [],
  );
});

test("what is not a directory, or cannot be made one, is an error that names it", () => {
  const base = freshDir();
  mkdirSync(base);
  writeFileSync(join(base, "file"), "x");
  symlinkSync(join(base, "nowhere"), join(base, "dangling"));
  for (const path of [join(base, "file"), join(base, "file", "below"), "/proc/ntee-test"]) {
    assert.throws(
      () => NteeDB.open(path),
      (error) => error.code === "NTEE_IO" && error.errno > 0,
      path,
    );
  }
  assert.equal(readdirSync(base).length, 2);
});

test("options are checked, and a misspelt one says how it is spelt", () => {
  const dir = freshDir();
  const wrong = [
    { readonly: true },
    { unknown: 1 },
    { readOnly: 1 },
    { useMmap: "yes" },
    { acceptDamage: 1 },
    { acceptDamage: "true" },
    { syncEveryWrite: "true" },
    { syncIntervalMs: 0 },
    { hintEveryN: 0 },
    { hintEveryN: 1.5 },
    { hintEveryN: 2 ** 53 },
    { hintEveryN: 5n },
    { hintEveryN: "5" },
    { syncIntervalMs: 60001 },
    { syncIntervalMs: 1.5 },
    { syncIntervalMs: NaN },
    { syncIntervalMs: "100" },
    { syncIntervalMs: 100n },
    5,
    "x",
    [],
    true,
    Symbol("x"),
    new Map(),
    () => {},
  ];
  for (const options of wrong) {
    assert.throws(() => NteeDB.open(dir, options), { name: "NteeError", code: "NTEE_INVALID" });
  }
  assert.throws(() => NteeDB.open(dir, { readonly: true }), /"readOnly"/);
  for (const name of ["blobThreshold", "indexes", "autoCompact"]) {
    assert.throws(() => NteeDB.open(dir, { [name]: 1 }), {
      code: "NTEE_INVALID",
      message: /not supported yet/,
    });
  }
  assert.ok(!existsSync(dir));
});

test("stores come from open alone", () => {
  assert.throws(() => new NteeDB(), { code: "NTEE_INVALID" });
  assert.throws(() => new NteeDB(Symbol("x"), {}), { code: "NTEE_INVALID" });
});

/** Makes noise of the log's header, or of its copy. */
const noise = (bytes, at) => bytes.fill(0x5a, at, at + 64);
const COPY = 4096;

test("a log whose header is noise, and its copy too, is NTEE_CORRUPT, leaves no descriptor behind, and opens when it is whole again", () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  db.put("a", 1);
  db.close();
  const good = readFileSync(logOf(dir));
  const bad = Buffer.from(good);
  noise(bad, 0);
  noise(bad, COPY);
  writeFileSync(logOf(dir), bad);
  const descriptors = () => (process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0);
  const before = descriptors();
  for (const options of [{}, { acceptDamage: true }]) {
    for (let i = 0; i < 250; i++) assert.throws(() => NteeDB.open(dir, options), { code: "NTEE_CORRUPT" });
  }
  assert.equal(descriptors(), before);
  writeFileSync(logOf(dir), good);
  const again = NteeDB.open(dir);
  assert.equal(again.getSync("a"), 1);
  again.close();
});

test("where one of the two headers is noise, the other counts", async () => {
  for (const at of [0, COPY]) {
    const dir = freshDir();
    const db = NteeDB.open(dir);
    db.put("a", 1);
    db.close();
    const log = readFileSync(logOf(dir));
    noise(log, at);
    writeFileSync(logOf(dir), log);
    const again = NteeDB.open(dir);
    assert.equal(again.getSync("a"), 1);
    const { damaged, suspectBytes } = await again.details();
    assert.deepEqual(damaged, [{ file: basename(logOf(dir)), offset: at, length: 128 }]);
    assert.equal(suspectBytes, 0);
    const { differences, count } = await again.verify();
    assert.deepEqual([count, differences[0].offset], [1, at]);
    again.drop();
  }
});
