// Runs the example: one process records, a second one lists. With a directory as its argument it keeps the
// store there, else it uses a temporary one.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const kept = process.argv[2];
const dir = kept ?? mkdtempSync(join(tmpdir(), "http-history-"));

function run(script) {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const { status, signal, error } = spawnSync(process.execPath, [file, join(dir, "store")], { stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) throw new Error(`${script} ended with ${signal ?? status}`);
}

try {
  run("record.mjs");
  run("list.mjs");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  if (!kept) rmSync(dir, { recursive: true, force: true });
}
