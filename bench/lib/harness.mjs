// Runs rows in rounds. Within a round the engines take turns row by row, a different one first each time,
// so that the noise of a machine falls on all of them. Every round has fresh stores; the first few rounds, in
// which the compiler still changes its mind, are thrown away; a row's figure is the median of the others. Rows
// that only read run several times in a turn, of which the median counts.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];
const WARM_UP = 4; // rounds
const NS_PER = { us: 1e3, ms: 1e6 };

/** Resolves to one {id, unit, figures: {engine: median}, rounds: {engine: [figure]}} for each row. */
export async function measure({ rows, engines, work, rounds }) {
  const results = rows.map(([id, row]) => ({
    id,
    unit: row.unit,
    rounds: Object.fromEntries(enginesOf(row, engines).map((engine) => [engine.name, []])),
  }));
  const root = makeDataDir();
  const removeRoot = () => rmSync(root, { recursive: true, force: true });
  const stop = (signal) => {
    removeRoot();
    // Not an orderly exit: that would wait for a worker of lmdb, which waits for us.
    process.kill(process.pid, signal);
  };
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    for (let round = -WARM_UP; round < rounds; round++) {
      const filled = await openFilled(rows, engines, work, root);
      for (const [at, [id, row]] of rows.entries()) {
        for (const engine of rotated(enginesOf(row, engines), round + WARM_UP + at)) {
          const figure = await runRow({ id, row, engine, work, root, filled: filled.get(engine) });
          if (round >= 0) results[at].rounds[engine.name].push(figure);
        }
      }
      for (const { store, dir } of filled.values()) await closeStore(store, dir);
    }
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
    removeRoot();
  }
  for (const result of results) {
    result.figures = Object.fromEntries(
      Object.entries(result.rounds).map(([name, figures]) => [name, median(figures)]),
    );
  }
  return results;
}

/** A row that is `alone` has no peers: ntee is compared with itself. */
const enginesOf = (row, engines) =>
  row.alone ? engines.filter(({ name }) => name === "ntee") : engines;

async function runRow({ id, row, engine, work, root, filled }) {
  const place = row.store === "filled" ? filled : openStore(engine, row.store, root);
  const { store, dir } = place;
  try {
    const prepared = row.prepare?.(store, work);
    const passes = [];
    for (let pass = 0; pass < (row.passes ?? 1); pass++) {
      // A full collection would throw compiled code away with the garbage.
      collectGarbage({ type: "minor" });
      const start = process.hrtime.bigint();
      const pending = row.run(store, work, prepared);
      const result = typeof pending?.then === "function" ? await pending : pending;
      const elapsed = Number(process.hrtime.bigint() - start);
      await row.check(result, work, store);
      passes.push(elapsed / NS_PER[row.unit] / row.operations(work));
    }
    return median(passes);
  } catch (error) {
    throw new Error(`${engine.name}, row ${id}: ${error.message}`, { cause: error });
  } finally {
    if (place !== filled) await closeStore(store, dir);
  }
}

async function openFilled(rows, engines, work, root) {
  const filled = new Map();
  if (!rows.some(([, row]) => row.store === "filled")) return filled;
  for (const engine of engines) {
    const place = openStore(engine, "fast", root);
    await place.store.fill(work.records);
    filled.set(engine, place);
  }
  return filled;
}

function openStore(engine, tier, root) {
  const dir = mkdtempSync(join(root, `${engine.name}-`));
  return { dir, store: engine.open(dir, tier) };
}

async function closeStore(store, dir) {
  await store.close();
  rmSync(dir, { recursive: true, force: true });
}

/** A new directory in TMPDIR, or else in the project's build directory: the figures are that disk's. */
function makeDataDir() {
  const parent = process.env.TMPDIR || fileURLToPath(new URL("../../build/bench-data", import.meta.url));
  mkdirSync(parent, { recursive: true });
  return mkdtempSync(join(parent, "ntee-bench-"));
}

function rotated(items, by) {
  const first = items.length ? by % items.length : 0;
  return [...items.slice(first), ...items.slice(0, first)];
}

export function median(figures) {
  const sorted = figures.slice().sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
