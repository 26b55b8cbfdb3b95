// Who may use whom, from the #include lines and from the symbols of the objects. The table is in CONTRIBUTING.md.
import { test } from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT, bare, files, functions, moduleOf, modules, read } from "./source.mjs";

const table = modules();
const LAYERS = [...new Set(table.map((row) => row.layer))];
const sources = files("src", /\.[ch]$/);

// Why `from` may not use `to`, or null.
function refusal(from, to) {
  if (from === to) return null;
  const here = LAYERS.indexOf(from.layer), there = LAYERS.indexOf(to.layer);
  if (there > here) return `${from.layer} is below ${to.layer}`;
  if (there === here && !from.uses.includes(to.module)) return `${from.module} and ${to.module} are strangers`;
  return null;
}

test("the table lists the layers in their order, and each module once", () => {
  assert.deepEqual(LAYERS, ["base", "format", "store", "keydir", "engine", "api"]);
  const names = table.map((row) => `${row.layer}/${row.module}`);
  assert.deepEqual(names, [...new Set(names)]);
});

test("the rules refuse what they should", () => {
  const row = (layer, module, uses = []) => ({ layer, module, uses });
  assert.match(refusal(row("base", "os"), row("api", "api")), /below/);
  assert.match(refusal(row("store", "log"), row("store", "tree")), /strangers/);
  assert.equal(refusal(row("store", "tree", ["arena"]), row("store", "arena")), null);
  assert.equal(refusal(row("api", "api"), row("base", "os")), null);
});

test("every source file belongs to a module of the table, and every module has a file", () => {
  const homeless = sources.filter((path) => !moduleOf(path, table));
  const found = new Set(sources.map((path) => moduleOf(path, table)));
  const empty = table.filter((row) => !found.has(row)).map((row) => `${row.layer}/${row.module}`);
  assert.deepEqual({ homeless, empty }, { homeless: [], empty: [] });
});

test("includes follow the table", () => {
  const wrong = [];
  for (const path of sources) {
    const from = moduleOf(path, table);
    if (!from) continue;
    for (const [, target] of read(path).matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
      if (target === "ntee.h") continue;
      const to = existsSync(join(ROOT, "src", target)) ? moduleOf(`src/${target}`, table) : null;
      const why = to ? refusal(from, to) : "no such file: paths begin at src/";
      if (why) wrong.push(`${path} includes ${target}: ${why}`);
    }
  }
  assert.deepEqual(wrong, []);
});

// ---- System headers ----

const ANYWHERE = new Set(["errno.h", "float.h", "limits.h", "stdarg.h", "stdatomic.h", "stddef.h", "stdint.h", "stdio.h",
  "stdlib.h", "string.h", "emmintrin.h", "arm_neon.h"]);
const SPECIAL = { "src/base/hash.h": ["xxhash.h"] };

test("system headers are included by os_posix.c only", () => {
  const wrong = [];
  for (const path of sources) {
    if (path === "src/base/os_posix.c") continue;
    for (const [, header] of read(path).matchAll(/^\s*#\s*include\s+<([^>]+)>/gm)) {
      const threads = /^(pthread|time)\.h$/.test(header) && path.startsWith("src/api/");
      if (!ANYWHERE.has(header) && !threads && !SPECIAL[path]?.includes(header)) wrong.push(`${path}: <${header}>`);
    }
  }
  assert.deepEqual(wrong, []);
});

// ---- Symbols ----

const OBJECTS = join(process.env.NT_BUILD_DIR ?? join(ROOT, "build"), "CMakeFiles/ntee_objects.dir/src");

function objects() {
  assert.ok(existsSync(OBJECTS), `no objects in ${OBJECTS}: run ./build.sh native first`);
  const found = [];
  for (const layer of readdirSync(OBJECTS)) {
    for (const file of readdirSync(join(OBJECTS, layer))) {
      const path = `src/${layer}/${file.replace(/\.o$/, "")}`;
      if (!/\.c\.o$/.test(file) || !sources.includes(path)) continue;
      const text = execFileSync("nm", ["-g", join(OBJECTS, layer, file)], { encoding: "utf8" });
      const symbols = [...text.matchAll(/^[0-9a-f ]* ([A-Za-z]) (\S+)$/gm)].map(([, kind, name]) => ({ kind, name }));
      found.push({
        path,
        defined: symbols.filter(({ kind }) => kind !== "U").map(({ name }) => name),
        used: symbols.filter(({ kind }) => kind === "U").map(({ name }) => name),
      });
    }
  }
  return found;
}

test("the symbols that objects use follow the table", () => {
  const all = objects(), home = new Map(), wrong = [];
  for (const { path, defined } of all) for (const name of defined) home.set(name, moduleOf(path, table));
  for (const { path, used } of all) {
    const from = moduleOf(path, table);
    for (const name of used.filter((name) => home.get(name) && from)) {
      const why = refusal(from, home.get(name));
      if (why) wrong.push(`${path} uses ${name}: ${why}`);
    }
  }
  assert.ok(all.length > 0);
  assert.deepEqual(wrong, []);
});

test("symbols are named after their module; public ones are declared in ntee.h", () => {
  const header = bare(read("include/ntee.h")), wrong = [];
  for (const { path, defined } of objects()) {
    const row = moduleOf(path, table);
    for (const name of defined) {
      if (name.startsWith("ntee_") && new RegExp(`\\b${name}\\(`).test(header)) continue;
      const fits = row?.names.some((own) => (own.endsWith("_") ? name.startsWith(own) : name === own));
      if (!fits) wrong.push(`${path}: ${name}`);
    }
  }
  assert.deepEqual(wrong, []);
});

// The engine takes memory from the seam, prints nothing and never exits.
const LIBC = /^(mem(cpy|move|set|cmp|chr|rchr)|str(len|nlen|r?chr|n?cmp|c?spn)|v?snprintf|__\w+_chk|__stack_chk_fail|__errno_location|_GLOBAL_OFFSET_TABLE_|__tls_get_addr|__tsan_\w+|__asan_\w+|__ubsan_\w+)$/;

test("only os_posix.c calls the operating system; only api uses threads", () => {
  const wrong = [];
  for (const { path, used } of objects()) {
    if (path === "src/base/os_posix.c") continue;
    for (const name of used) {
      if (/^nt(ee)?_/.test(name) || LIBC.test(name)) continue;
      if (path.startsWith("src/api/") && /^(pthread_|clock_gettime$)/.test(name)) continue;
      wrong.push(`${path}: ${name}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("no function calls itself, directly or in a circle", () => {
  const calls = new Map(), owner = new Map();
  const all = sources.flatMap((path) => functions(read(path)).map((fn) => ({ ...fn, path })));
  for (const { name, path } of all) owner.set(`${path}:${name}`, true);
  const globals = new Map(all.map(({ name, path }) => [name, `${path}:${name}`]));
  for (const { name, path, body } of all) {
    const inside = body.slice(body.indexOf("{"));
    const targets = [...inside.matchAll(/(?<![.>])\b([A-Za-z_]\w*)\s*\(/g)].map(([, callee]) =>
      owner.has(`${path}:${callee}`) ? `${path}:${callee}` : globals.get(callee));
    calls.set(`${path}:${name}`, new Set(targets.filter(Boolean)));
  }
  const state = new Map(), circles = [];
  const visit = (node, trail) => {
    if (state.get(node) === "done") return;
    if (state.get(node) === "open") return void circles.push([...trail.slice(trail.indexOf(node)), node].join(" -> "));
    state.set(node, "open");
    for (const next of calls.get(node) ?? []) visit(next, [...trail, node]);
    state.set(node, "done");
  };
  for (const node of calls.keys()) visit(node, []);
  assert.deepEqual(circles, []);
});

