#!/usr/bin/env node
// Puts benchmark results into README.md, between its two markers:
//
//   node bench/core.mjs --json > core.json
//   node docs/numbers.mjs core.json ...
//
// Each file is one JSON document {bench, rows: [{id, unit, ntee, lmdb, sqlite, ...}]}, as the benchmarks print it.
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem, type } from "node:os";

const README = new URL("../README.md", import.meta.url);
const results = process.argv.slice(2).map((path) => JSON.parse(readFileSync(path, "utf8")));
if (results.length === 0) {
  console.error("usage: node docs/numbers.mjs result.json ...");
  process.exit(2);
}

const NOT_PEERS = new Set(["id", "unit", "title", "note"]);
const number = (value) => (typeof value === "number" ? String(Number(value.toPrecision(3))) : "");

function table({ bench, rows }) {
  const engines = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) =>
    !NOT_PEERS.has(key) && rows.some((row) => typeof row[key] === "number"));
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [
    `**${bench}**`,
    "",
    line(["", "unit", ...engines]),
    line(["---", "---", ...engines.map(() => "--:")]),
    ...rows.map((row) => line([row.title ?? row.id, row.unit ?? "", ...engines.map((engine) => number(row[engine]))])),
  ].join("\n");
}

const versions = [...new Set(results.flatMap(({ versions = {} }) => Object.entries(versions).map((pair) => pair.join(" "))))];
const machine = `${cpus().length} x ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()}`;
const about = [machine, `Node.js ${process.versions.node}`, ...versions, new Date().toISOString().slice(0, 10)].join("; ");

const marked = /(<!-- numbers -->\n)[^]*?(<!-- end -->)/;
const readme = readFileSync(README, "utf8");
if (!marked.test(readme)) throw new Error("README.md has no <!-- numbers --> ... <!-- end -->");
const text = [`Measured on: ${about}.`, ...results.map(table)].join("\n\n");
writeFileSync(README, readme.replace(marked, (all, begin, end) => `${begin}${text}\n${end}`));
