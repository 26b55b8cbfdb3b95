// The public header and the library as programs see them.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILD = process.env.NT_BUILD_DIR ?? join(ROOT, "build");
const LIBRARY = join(BUILD, "libntee.so");
const LINUX = process.platform === "linux";
const INCLUDE = `-I${join(ROOT, "include")}`;
const header = readFileSync(join(ROOT, "include/ntee.h"), "utf8");

const dir = mkdtempSync(join(tmpdir(), "ntee-abi-"));
after(() => rmSync(dir, { recursive: true, force: true }));

const run = (command, args, options = {}) => execFileSync(command, args, { encoding: "utf8", stdio: "pipe", ...options });
const has = (command) => { try { run(command, ["--version"]); return true; } catch { return false; } };
const STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];

for (const [compiler, language, standard] of [
  ["gcc", "c", "c11"], ["clang", "c", "c11"], ["g++", "c++", "c++17"], ["clang++", "c++", "c++17"],
]) {
  test(`the header compiles alone: ${compiler} ${standard}`, { skip: !has(compiler) && "not installed" }, () => {
    run(compiler, ["-x", language, `-std=${standard}`, ...STRICT, "-fsyntax-only", INCLUDE, "-include", "ntee.h", "/dev/null"]);
  });
}

test("structs lie as this ABI says", () => {
  run("cc", ["-std=c11", ...STRICT, "-fsyntax-only", INCLUDE, join(ROOT, "tests/abi/layout.c")]);
});

const declared = () => {
  const code = header.replace(/\/\*[^]*?\*\//g, "");
  return [...code.matchAll(/^NTEE_API [^;]*?\b(ntee_\w+)\(/gm)].map(([, name]) => name).sort();
};

test("the library exports exactly what the header declares", { skip: !LINUX }, () => {
  const symbols = run("nm", ["-D", "--defined-only", LIBRARY]).trim().split("\n").map((line) => line.split(/\s+/)[2]);
  assert.ok(declared().length >= 25);
  assert.deepEqual(symbols.sort(), declared());
});

test("the library needs libc and nothing else", { skip: !LINUX }, () => {
  const needed = [...run("readelf", ["-d", LIBRARY]).matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name);
  assert.deepEqual(needed.filter((name) => !/^(libc\.so\.6|libc\.musl-.*|ld-linux-.*|ld-musl-.*)$/.test(name)), []);
  assert.ok(needed.length > 0);
});

test("the library is hardened", { skip: !LINUX }, () => {
  const dynamic = run("readelf", ["-d", LIBRARY]), segments = run("readelf", ["-lW", LIBRARY]);
  assert.match(dynamic, /BIND_NOW|FLAGS.*NOW/);
  assert.match(segments, /GNU_RELRO/);
  assert.match(segments, /GNU_STACK.* RW /);
  assert.doesNotMatch(dynamic, /TEXTREL|RPATH|RUNPATH/);
});

test("the library has no constructors and no destructors of its own", { skip: !LINUX }, () => {
  const size = (name) => Number(new RegExp(`\\(${name}\\)\\s+(\\d+)`).exec(run("readelf", ["-d", LIBRARY]))?.[1] ?? 0);
  // The compiler's start files put one entry into each.
  assert.ok(size("INIT_ARRAYSZ") <= 8 && size("FINI_ARRAYSZ") <= 8);
});

// ---- As installed ----

const prefix = join(dir, "prefix");
const env = () => ({
  ...process.env,
  PKG_CONFIG_PATH: run("find", [prefix, "-name", "pkgconfig"]).trim(),
  LD_LIBRARY_PATH: run("find", [prefix, "-name", "libntee.so"]).trim().replace(/\/libntee\.so$/, ""),
});
const pkg = (...args) => run("pkg-config", [...args, "ntee"], { env: env() }).trim().split(/\s+/);

function compile(name, source, flags) {
  const file = join(dir, `${name}.c`), program = join(dir, name);
  writeFileSync(file, source);
  run("cc", ["-std=c11", ...STRICT, file, "-o", program, ...flags]);
  return program;
}

test("cmake --install gives a header, both libraries and a pkg-config file that agree", { skip: !LINUX }, () => {
  run("cmake", ["--install", BUILD, "--prefix", prefix]);
  const version = /NTEE_VERSION_STRING "(.*)"/.exec(header)[1];
  assert.deepEqual(pkg("--modversion"), [version]);
  const source = `#include <ntee.h>
    #include <string.h>
    int main(void) {
        return strcmp(ntee_version(), NTEE_VERSION_STRING) != 0 || ntee_abi() != NTEE_ABI;
    }\n`;
  run(compile("shared", source, pkg("--cflags", "--libs")), [], { env: env() });
  const archive = run("find", [prefix, "-name", "libntee.a"]).trim();
  run(compile("static", source, [...pkg("--cflags"), archive, "-pthread"]), []);
});

test("the header's shortest program compiles and does what it says", { skip: !LINUX }, () => {
  const example = /The shortest program:\n([^]*?)\*\//.exec(header)[1].replace(/^ \* ?/gm, "");
  const source = `#include <ntee.h>\n#include <stdio.h>\nint main(void) {\n${example}\nreturn 0;\n}\n`;
  const program = compile("shortest", source, pkg("--cflags", "--libs"));
  assert.equal(run(program, [], { cwd: dir, env: env() }), "hello\n");
  assert.equal(run(program, [], { cwd: dir, env: env() }), "hello\n");
});
