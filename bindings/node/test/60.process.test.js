// Processes and worker threads that end, in every way, with a store open.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { NteeDB } from "../lib/index.js";
import { ENTRY, ENTRY_CJS, freshDir, LONG, run, sleep } from "./support.js";

/** The values of keys 0, 1, 2 ... that are there, or the error of opening. */
function found(dir) {
  const db = NteeDB.open(dir);
  const values = [];
  for (let i = 0; db.hasSync(`k${i}`); i++) values.push(db.getSync(`k${i}`));
  db.close();
  return values;
}

const ENDS = {
  "process.exit(0)": ["process.exit(0)", 0, null],
  "process.exit(3)": ["process.exit(3)", 3, null],
  "an exception": ["throw new Error('mine')", 1, null],
  "a rejection": ["await Promise.reject(new Error('mine'))", 1, null],
  "process.abort()": ["process.abort()", null, "SIGABRT"],
  "kill -9": [
    "process.kill(process.pid, 'SIGKILL'); await new Promise((resolve) => setTimeout(resolve, 60000))",
    null,
    "SIGKILL",
  ],
  SIGTERM: [
    "process.kill(process.pid, 'SIGTERM'); await new Promise((resolve) => setTimeout(resolve, 60000))",
    null,
    "SIGTERM",
  ],
  "reaching its end": ["", 0, null],
  "process.exit in a promise": ["await Promise.resolve(); process.exit(0)", 0, null],
  "closing in an exit listener": ["process.on('exit', () => db.close())", 0, null],
  "writing in an exit listener": ["process.on('exit', () => db.put('k3', 3))", 0, null],
};

for (const [name, [end, wantCode, wantSignal]] of Object.entries(ENDS)) {
  for (const busy of [false, true]) {
    test(
      `a process that ends by ${name} right behind a put${busy ? ", with 300 calls under way," : ""} has written`,
      { timeout: 600000 },
      async () => {
        const { ended, dir } = run(`
        const db = NteeDB.open(dir);
        ${busy ? "db.put('big', 'x'.repeat(100000)); for (let i = 0; i < 300; i++) db.get('big', { as: 'buffer' });" : ""}
        db.put("k0", 0); db.put("k1", 1); db.put("k2", 2);
        ${end};
      `);
        const { code, signal } = await ended;
        assert.deepEqual([code, signal], [wantCode, wantSignal]);
        assert.deepEqual(found(dir), name.startsWith("writing") ? [0, 1, 2, 3] : [0, 1, 2]);
      },
    );
  }
}

test(
  "an open store, queued calls, walks and unsynced writes do not keep the process alive",
  { timeout: 600000 },
  async () => {
    const { code, out, signal } = await run(`
    const db = NteeDB.open(dir, { syncIntervalMs: 60000 });
    db.put("a", 1);
    for (let i = 0; i < 5000; i++) db.put("k" + i, i);
    const walk = db.entries();
    await walk.next();
    const other = db.keys();
    await other.next();
    await db.get("a");
    console.log("end");
  `).ended;
    assert.deepEqual([code, signal, out], [0, null, "end\n"]);
  },
);

test("a process that only loaded the package ends, by import and by require", async () => {
  for (const text of [
    "",
    `import { createRequire } from "node:module"; createRequire(import.meta.url)(${JSON.stringify(ENTRY_CJS)}); console.log(typeof NteeDB.open);`,
  ]) {
    const { code, err } = await run(text).ended;
    assert.deepEqual([code, err], [0, ""]);
  }
});

test("import and require give the same classes, whichever comes first, without a warning", async () => {
  const say = "console.log(cjs.NteeDB === esm.NteeDB, cjs.NteeError === esm.NteeError, Object.keys(cjs).join());";
  const required = `require(${JSON.stringify(ENTRY_CJS)})`;
  const script = `${freshDir()}.cjs`;
  writeFileSync(
    script,
    `const cjs = ${required}; import(${JSON.stringify(ENTRY)}).then((esm) => { ${say} });`,
  );
  const module = `
    import { createRequire } from "node:module";
    const esm = { NteeDB, NteeError };
    const require = createRequire(import.meta.url);
    const cjs = ${required};
    ${say}
  `;
  for (const { ended } of [run(module), run(script, { file: true })]) {
    const { code, out, err } = await ended;
    assert.deepEqual([code, out, err], [0, "true true NteeDB,NteeError\n", ""]);
  }
});

// ---- Worker threads ----

const worker = (text, workerData) =>
  new Worker(
    `
  const { workerData, parentPort } = require("node:worker_threads");
  const { NteeDB } = require(${JSON.stringify(ENTRY_CJS)});
  (async () => { ${text} })().catch((error) => parentPort.postMessage({ code: error.code ?? String(error) }));
`,
    { eval: true, workerData },
  );
const message = (thread) =>
  new Promise((resolve, reject) => {
    thread.once("message", resolve);
    thread.once("error", reject);
  });
const exit = (thread) => new Promise((resolve) => thread.once("exit", resolve));

test("a worker is refused while the main thread has the store, and the other way round", async () => {
  const dir = freshDir();
  const db = NteeDB.open(dir);
  const text =
    "const db = NteeDB.open(workerData); db.put('w', 1); parentPort.postMessage({ in: db.getSync('w') }); parentPort.once('message', () => { db.close(); parentPort.close(); });";
  const refused = worker(text, dir);
  const gone = exit(refused);
  assert.deepEqual(await message(refused), { code: "NTEE_LOCKED" });
  await Promise.all([refused.terminate(), gone]);
  db.put("m", 1);
  db.close();
  const holder = worker(text, dir);
  assert.deepEqual(await message(holder), { in: 1 });
  assert.throws(() => NteeDB.open(dir), { code: "NTEE_LOCKED" });
  holder.postMessage("close");
  await exit(holder);
  const again = NteeDB.open(dir);
  assert.deepEqual(await again.prefixScan(""), ["m", "w"]);
  again.drop();
});

const WORKER_ENDS = {
  "its end, without closing": "",
  "process.exit()": "process.exit(0);",
  "an exception": "setImmediate(() => { throw new Error('mine'); });",
  "terminate(), idle": "setInterval(() => {}, 1000);",
  "terminate(), in the middle of a loop of puts": "for (let i = 0; ; i++) db.put('k' + (i % 500), i);",
  "terminate(), with calls under way":
    "for (;;) { for (let i = 0; i < 300; i++) { db.get('big', { as: 'buffer' }); db.putAsync('k' + i, i); } await db.sync(); }",
  "terminate(), verifying": "db.put('much', 'y'.repeat(5e6)); for (;;) await Promise.all([db.verify(), db.verify()]);",
  "terminate(), walking": "for (;;) for await (const entry of db.entries()) void entry;",
};

for (const [name, text] of Object.entries(WORKER_ENDS)) {
  test(
    `a worker that ends by ${name} lets go of its store, which has what was written`,
    { timeout: 6000000 },
    async () => {
      const dir = freshDir();
      const rounds = LONG ? 200 : 12;
      for (let round = 0; round < rounds; round++) {
        const thread = worker(
          `
        const db = NteeDB.open(workerData, { syncEveryWrite: ${round % 3 === 2} });
        db.put('big', 'x'.repeat(100000));
        db.put('round', ${round});
        parentPort.postMessage('go');
        ${text}
      `,
          dir,
        );
        thread.on("error", () => {});
        const gone = exit(thread);
        assert.equal(await message(thread), "go");
        if (name.startsWith("terminate")) {
          if (round % 2) await sleep(round % 7);
          await thread.terminate();
        }
        await gone;
        const db = NteeDB.open(dir);
        assert.equal(db.getSync("round"), round);
        db.close();
      }
    },
  );
}

test("the process ends while workers have stores open", async () => {
  const { code, signal, err } = await run(`
    import { Worker } from "node:worker_threads";
    const threads = [];
    for (let i = 0; i < 4; i++) {
      const thread = new Worker(\`
        const { NteeDB } = require(${JSON.stringify(ENTRY_CJS)});
        const { parentPort, workerData } = require("node:worker_threads");
        const db = NteeDB.open(workerData);
        db.put("a", 1);
        parentPort.postMessage("go");
        setInterval(() => { for (let i = 0; i < 100; i++) db.putAsync("k" + i, i); db.sync(); }, 1);
      \`, { eval: true, workerData: dir + i, execArgv: [] });
      await new Promise((resolve) => thread.once("message", resolve));
      threads.push(thread);
    }
    process.exit(0);
  `).ended;
  assert.deepEqual([code, signal, err], [0, null, ""]);
});

test("many workers at once have a store each", { timeout: 600000 }, async () => {
  const dirs = Array.from({ length: 6 }, freshDir);
  const answers = await Promise.all(
    dirs.map(async (dir) => {
      const thread = worker(
        `
      const db = NteeDB.open(workerData);
      const all = [];
      for (let i = 0; i < 2000; i++) all.push(db.putAsync('k' + i, i), db.get('k' + i));
      await Promise.all(all);
      await db.sync();
      parentPort.postMessage(await db.count());
      db.close();
    `,
        dir,
      );
      const gone = exit(thread);
      const count = await message(thread);
      await gone;
      return count;
    }),
  );
  assert.deepEqual(
    answers,
    dirs.map(() => 2000),
  );
  for (const dir of dirs) NteeDB.destroy(dir);
});

test("more handles in a worker than the system has thread-specific keys", { timeout: 6000000 }, async () => {
  const dir = freshDir();
  const thread = worker(
    `
    for (let i = 0; i < 3000; i++) { const db = NteeDB.open(workerData); db.put('n', i); db.close(); }
    parentPort.postMessage('done');
  `,
    dir,
  );
  const gone = exit(thread);
  assert.equal(await message(thread), "done");
  await gone;
  const db = NteeDB.open(dir);
  assert.equal(db.getSync("n"), 2999);
  db.drop();
});

void ENTRY;
