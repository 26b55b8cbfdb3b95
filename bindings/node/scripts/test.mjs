// Runs the tests. Arguments are for the test runner: npm test -- --test-reporter=tap, npm test -- test/20*.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const dir = fileURLToPath(new URL("../test", import.meta.url));
const given = process.argv.slice(2);
const files = given.filter((arg) => !arg.startsWith("-"));
const all = readdirSync(dir)
  .filter((name) => name.endsWith(".test.js"))
  .sort()
  .map((name) => join(dir, name));
const args = ["--test", ...given.filter((arg) => arg.startsWith("-")), ...(files.length > 0 ? files : all)];
const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
process.exit(status ?? 1);
