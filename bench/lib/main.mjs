// The command line that the benchmarks share.

import { parseArgs } from "node:util";
import { engineNames, loadEngine } from "./engines/index.mjs";
import { measure } from "./harness.mjs";
import { printJson, printTable } from "./report.mjs";
import { rows as allRows } from "./rows.mjs";
import { makeWorkload } from "./workload.mjs";

/** Runs a benchmark of the given rows and prints it; sets the exit code where it fails. */
export async function runBench(bench, rowIds) {
  try {
    await run(bench, rowIds, readOptions(bench, rowIds));
  } catch (error) {
    console.error(`bench/${bench}: ${error.message}`);
    process.exitCode = 1;
  }
}

async function run(bench, rowIds, options) {
  const picked = rowIds.filter((id) => !options.rows || options.rows.includes(id));
  const rows = picked.map((id) => [id, allRows[id]]);
  const engines = [];
  for (const name of options.engines) engines.push(await loadEngine(name));
  const work = makeWorkload(options.n);
  const results = await measure({ rows, engines, work, rounds: options.rounds });
  const tiers = rows.some(([, row]) => row.store === "durable") ? ["fast", "durable"] : ["fast"];
  const print = options.json ? printJson : printTable;
  print({
    bench,
    work,
    rounds: options.rounds,
    results,
    titles: Object.fromEntries(engines.map((engine) => [engine.name, engine.title(tiers)])),
    notes: (id) => Object.fromEntries(engines.map((engine) => [engine.name, engine.note(id)])),
  });
}

function readOptions(bench, rowIds) {
  const { values } = parseArgs({
    options: {
      json: { type: "boolean", default: false },
      rows: { type: "string" },
      engines: { type: "string", default: engineNames.join(",") },
      n: { type: "string", default: "20000" },
      rounds: { type: "string", default: "7" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(
      `node bench/${bench}.mjs [--json] [--rows ${rowIds.join(",")}]\n` +
        `    [--engines ${engineNames.join(",")}] [--n RECORDS] [--rounds ROUNDS]`,
    );
    process.exit(0);
  }
  return {
    json: values.json,
    rows: values.rows && listOf("rows", values.rows, rowIds),
    engines: listOf("engines", values.engines, engineNames),
    n: countOf("n", values.n),
    rounds: countOf("rounds", values.rounds),
  };
}

function listOf(option, text, known) {
  const names = text.split(",");
  const stranger = names.find((name) => !known.includes(name));
  if (stranger !== undefined) throw new Error(`--${option}: no "${stranger}"; there are ${known.join(", ")}`);
  return names;
}

function countOf(option, text) {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1) throw new Error(`--${option}: "${text}" is not a count`);
  return count;
}
