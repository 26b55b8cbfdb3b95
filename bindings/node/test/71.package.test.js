// The package as it is published, and the library that it looks for.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { platformKey, locate } from "../lib/locate.js";
import { freshDir, PACKAGE, run } from "./support.js";

const require = createRequire(import.meta.url);
const koffi = dirname(require.resolve("koffi"));
const file = process.platform === "darwin" ? "libntee.dylib" : "libntee.so";
const OPEN =
  "try { NteeDB.open(dir).close(); console.log('open'); } catch (error) { console.log(JSON.stringify([error.name, error.code, error.message])); }";
const parsed = async (text, options) => JSON.parse((await run(text, options).ended).out);

test("a missing library is an error that names the platform and what was tried; importing alone is none", async () => {
  const missing = "/nowhere/libntee.so";
  const [name, code, message] = await parsed(OPEN, { env: { NTEE_LIBRARY: missing } });
  assert.deepEqual([name, code], ["NteeError", "NTEE_IO"]);
  assert.ok(message.includes(missing) && message.includes(platformKey()), message);
});

test("a package without its library names both places where it looked", async () => {
  const copy = join(freshDir(), "a", "b", "node");
  cpSync(join(PACKAGE, "lib"), join(copy, "lib"), { recursive: true });
  cpSync(join(PACKAGE, "package.json"), join(copy, "package.json"));
  mkdirSync(join(copy, "node_modules"));
  for (const name of ["koffi", "@koromix"]) {
    cpSync(join(koffi, "..", name), join(copy, "node_modules", name), { recursive: true });
  }
  const text = `const { NteeDB: Copy } = await import(${JSON.stringify(join(copy, "lib", "index.js"))});
    try { Copy.open(dir); } catch (error) { console.log(JSON.stringify([error.name, error.code, error.message])); }`;
  const [name, code, message] = await parsed(text, { env: { NTEE_LIBRARY: "" } });
  assert.deepEqual([name, code], ["NteeError", "NTEE_IO"]);
  for (const part of [
    platformKey(),
    join(copy, "prebuilds", platformKey(), file),
    join(copy, "..", "..", "prebuilds", platformKey(), file),
  ]) {
    assert.ok(message.includes(part), `${message} lacks ${part}`);
  }
});

test("what is no library, or another one, is an error and no crash", async () => {
  const dir = freshDir();
  mkdirSync(dir);
  const text = join(dir, "text.so");
  writeFileSync(text, "no library");
  const [, code, message] = await parsed(OPEN, { env: { NTEE_LIBRARY: text } });
  assert.equal(code, "NTEE_IO");
  assert.ok(message.includes(text), message);
});

test("a library of another ABI is refused", { skip: !compiler() }, async () => {
  const dir = freshDir();
  mkdirSync(dir);
  const source = join(dir, "old.c");
  const library = join(dir, file);
  writeFileSync(source, "int ntee_abi(void) { return 999; }\n");
  execFileSync("cc", ["-shared", "-fPIC", "-o", library, source]);
  const [, code, message] = await parsed(OPEN, { env: { NTEE_LIBRARY: library } });
  assert.equal(code, "NTEE_VERSION");
  assert.match(message, /999/);
});

function compiler() {
  try {
    execFileSync("cc", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

test(
  "the tarball has what it needs and no more, and installs and runs without the network or a script",
  { timeout: 6000000 },
  () => {
    const { path } = locate();
    assert.ok(path, "there is a library to pack");
    // A copy of the checkout's shape, so that nothing is written into the checkout.
    const root = freshDir();
    const copy = join(root, "bindings", "node");
    for (const name of ["lib", "types", "scripts", "package.json", "README.md"]) {
      if (existsSync(join(PACKAGE, name))) cpSync(join(PACKAGE, name), join(copy, name), { recursive: true });
    }
    mkdirSync(join(root, "prebuilds", platformKey()), { recursive: true });
    cpSync(path, join(root, "prebuilds", platformKey(), file), { dereference: true });
    writeFileSync(join(root, "LICENSE"), "license");
    const npm = (args, cwd) =>
      execFileSync("npm", args, {
        cwd,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, NTEE_LIBRARY: "", npm_config_workspace: "" },
      });
    const made = npm(["pack", "--pack-destination", root], copy).trim().split("\n").at(-1);
    assert.ok(!existsSync(join(copy, "prebuilds")), "postpack tidies up");
    const listing = execFileSync("tar", ["tzf", join(root, made)], { encoding: "utf8" })
      .trim()
      .split("\n")
      .map((name) => name.replace("package/", ""));
    assert.ok(listing.includes(`prebuilds/${platformKey()}/${file}`));
    assert.ok(
      [
        "README.md",
        "LICENSE",
        "package.json",
        "types/index.d.ts",
        "types/index.d.cts",
        "lib/index.js",
        "lib/index.cjs",
      ].every((name) => listing.includes(name)),
    );
    assert.deepEqual(
      listing.filter((name) => !/^(lib|types|prebuilds)\/|^(README\.md|LICENSE|package\.json)$/.test(name)),
      [],
    );

    const app = join(root, "app");
    mkdirSync(app);
    writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", private: true }));
    npm(
      [
        "install",
        "--offline",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--omit=dev",
        "--no-save",
        "--legacy-peer-deps",
        "--install-links=false",
        join(root, made),
        koffi,
      ],
      app,
    );
    const native = join(koffi, "..", "@koromix");
    if (!existsSync(join(app, "node_modules", "@koromix")) && existsSync(native))
      cpSync(native, join(app, "node_modules", "@koromix"), { recursive: true });
    const dep = join(app, "node_modules", "dep");
    mkdirSync(dep);
    writeFileSync(join(dep, "index.js"), "module.exports = require('ntee-db').NteeDB;");
    for (const [name, text] of [
      ["app.mjs", "import { NteeDB } from 'ntee-db';"],
      ["app.cjs", "const { NteeDB } = require('ntee-db');"],
      ["dep.cjs", "const NteeDB = require('dep');"],
      ["both.mjs", "import dep from 'dep'; import { NteeDB } from 'ntee-db'; console.assert(dep === NteeDB);"],
    ]) {
      writeFileSync(
        join(app, name),
        `${text}\nconst db = NteeDB.open("store-${name}"); db.put("a", { n: 1 }); db.get("a").then((value) => { console.log(JSON.stringify(value)); db.drop(); });\n`,
      );
      const { stdout, stderr } = spawnSync(process.execPath, [name], {
        cwd: app,
        encoding: "utf8",
        env: { ...process.env, NTEE_LIBRARY: "" },
      });
      assert.deepEqual([name, stdout, stderr], [name, '{"n":1}\n', ""]);
    }
  },
);

test("the package's version is the library's", () => {
  const header = join(PACKAGE, "..", "..", "include", "ntee.h");
  const { version, dependencies } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
  assert.equal(/NTEE_VERSION_STRING "(.*)"/.exec(readFileSync(header, "utf8"))[1], version);
  assert.deepEqual(Object.keys(dependencies), ["koffi"]);
  assert.equal(
    Number(/NTEE_ABI (\d+)/.exec(readFileSync(header, "utf8"))[1]),
    Number(/^const ABI = (\d+)/m.exec(readFileSync(join(PACKAGE, "lib", "native.js"), "utf8"))[1]),
  );
});

test("koffi is known to one file, and addresses to two", () => {
  const files = readdirSync(join(PACKAGE, "lib")).map((name) => [
    name,
    readFileSync(join(PACKAGE, "lib", name), "utf8"),
  ]);
  assert.deepEqual(
    files.filter(([, text]) => /["']koffi["']/.test(text)).map(([name]) => name),
    ["native.js"],
  );
  assert.deepEqual(
    files.filter(([, text]) => /#pointer\b/.test(text)).map(([name]) => name),
    ["handle.js"],
  );
  assert.deepEqual(
    files.filter(([, text]) => text.split("\n").length > 400).map(([name]) => name),
    [],
  );
});
