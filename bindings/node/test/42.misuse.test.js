// Hostile values in every argument of every method: the right result or an error that says so, never a
// crash, and the store as it was. In a process of its own, where a crash would show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { run } from "./support.js";

const PROGRAM = fileURLToPath(new URL("programs/misuse.mjs", import.meta.url));

test("60 hostile values in every argument of every method", { timeout: 600000 }, async (t) => {
  const { out, code, signal, err } = await run(PROGRAM, { file: true }).ended;
  assert.equal(err, "");
  assert.deepEqual([code, signal], [0, null]);
  const { cells, bad, badCount } = JSON.parse(out);
  t.diagnostic(`${cells} cells`);
  assert.deepEqual(bad, [], `${badCount} of ${cells}`);
  assert.ok(cells > 5000);
});
