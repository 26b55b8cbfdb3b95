// The engines by the names that the benchmarks print.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import * as lmdb from "./lmdb.mjs";
import * as ntee from "./ntee.mjs";
import * as sqlite from "./sqlite.mjs";

const kinds = {
  ntee: { module: ntee, package: "ntee-db" },
  lmdb: { module: lmdb, package: "lmdb" },
  sqlite: { module: sqlite, package: "better-sqlite3" },
  sqlite_exclusive: { module: sqlite, package: "better-sqlite3", options: { exclusive: true } },
};

export const engineNames = Object.keys(kinds);

/** Loads an engine: {name, title(tiers), note(row), open(dir, tier)}. Throws where it is not installed. */
export async function loadEngine(name) {
  const { module, package: packageName, options } = kinds[name];
  let loaded;
  try {
    loaded = await module.load(options);
  } catch (error) {
    throw new Error(
      `${packageName} does not load: ${error.message}\n` +
        `"npm install" at the project's root installs it; --engines leaves it out.`,
    );
  }
  const version = versionOf(packageName);
  return {
    name,
    open: loaded.open,
    title: (tiers) =>
      `${packageName} ${version}: ${tiers.map((tier) => module.describe(tier, options)).join("; durable: ")}`,
    note: (row) => module.notes[row],
  };
}

/** The version in the package.json above a package's entry file. */
function versionOf(packageName) {
  let dir = dirname(createRequire(import.meta.url).resolve(packageName));
  for (; dir !== dirname(dir); dir = dirname(dir)) {
    try {
      const found = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
      if (found.name === packageName) return found.version;
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  return "of unknown version";
}
