// The types are right, by import and by require, and the code agrees with its own JSDoc.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import * as esm from "../lib/index.js";
import { freshDir, PACKAGE } from "./support.js";

const require = createRequire(import.meta.url);
const tsc = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
const typesRoot = join(dirname(require.resolve("@types/node/package.json")), "..");

function compile(args, cwd) {
  try {
    execFileSync(process.execPath, [tsc, ...args], { cwd, encoding: "utf8", stdio: "pipe" });
    return "";
  } catch (error) {
    return error.stdout || String(error);
  }
}

/** A project that has the package as a dependency. */
function project(files, options) {
  const dir = freshDir();
  mkdirSync(join(dir, "node_modules"), { recursive: true });
  symlinkSync(PACKAGE, join(dir, "node_modules", "ntee-db"));
  symlinkSync(typesRoot, join(dir, "node_modules", "@types"));
  symlinkSync(join(typesRoot, "..", "undici-types"), join(dir, "node_modules", "undici-types"));
  writeFileSync(join(dir, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(dir, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        target: "es2022",
        lib: ["es2022", "esnext.disposable"],
        types: ["node"],
        noEmit: true,
        strict: true,
        preserveSymlinks: true,
        ...options,
      },
      files: files
        .map((file) => join(PACKAGE, "test", "types", file))
        .map((file) => {
          const name = file.split("/").at(-1);
          symlinkSync(file, join(dir, name));
          return name;
        }),
    }),
  );
  return dir;
}

test("the types hold for import and for require", () => {
  const dir = project(["use.ts", "use.cts"], { module: "nodenext", moduleResolution: "nodenext" });
  assert.equal(compile(["-p", "."], dir), "");
});

test("the types hold for a bundler's resolution", () => {
  const dir = project(["use.ts"], { module: "esnext", moduleResolution: "bundler" });
  assert.equal(compile(["-p", "."], dir), "");
});

test("the code agrees with its own types", () => {
  assert.equal(compile(["-p", "."], PACKAGE), "");
});

test("the types have every method that there is, and no other", () => {
  const program = freshDir();
  mkdirSync(program);
  const methods = Object.getOwnPropertyNames(esm.NteeDB.prototype)
    .filter((name) => name !== "constructor")
    .sort();
  const ts = require("typescript");
  const source = ts.createSourceFile(
    "index.d.cts",
    require("node:fs").readFileSync(join(PACKAGE, "types", "index.d.cts"), "utf8"),
    ts.ScriptTarget.Latest,
  );
  const declared = new Set();
  source.forEachChild((node) => {
    if (!ts.isClassDeclaration(node) || node.name.text !== "NteeDB") return;
    for (const member of node.members) {
      const isStatic = (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Static) !== 0;
      if (!isStatic && member.name && ts.isIdentifier(member.name)) declared.add(member.name.text);
    }
  });
  assert.deepEqual([...declared].sort(), methods);
  assert.deepEqual(Object.keys(esm).sort(), ["NteeDB", "NteeError"]);
});
