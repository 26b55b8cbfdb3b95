// The code in the documents and the examples is run. A ```js or ```c block of README.md or docs/ is a whole program; where a
// ```text block follows it, that is what it prints.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILD = process.env.NT_BUILD_DIR ?? join(ROOT, "build");

// Inside the project, so that `import "ntee-db"` finds the package.
mkdirSync(join(ROOT, "build"), { recursive: true });
const dir = mkdtempSync(join(ROOT, "build/docs-"));
after(() => rmSync(dir, { recursive: true, force: true }));

const run = (command, args, cwd = dir) => execFileSync(command, args, { cwd, encoding: "utf8", stdio: "pipe" });
const documents = ["README.md", "bindings/node/README.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)]
  .filter((path) => path.endsWith(".md") && existsSync(join(ROOT, path)));

function programs(path) {
  const text = readFileSync(join(ROOT, path), "utf8");
  const blocks = [...text.matchAll(/^```(\w*)\n([^]*?)^```/gm)];
  return blocks.map(([, language, source, ], index) => ({
    path, language, source,
    line: text.slice(0, blocks[index].index).split("\n").length,
    prints: blocks[index + 1]?.[1] === "text" ? blocks[index + 1][2] : null,
  })).filter(({ language }) => language === "js" || language === "c");
}

const RUN = {
  js(file) {
    return run(process.execPath, [file], dirname(file));
  },
  c(file) {
    const program = file.replace(/\.c$/, "");
    run("cc", ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", `-I${join(ROOT, "include")}`, file, "-o", program,
      `-L${BUILD}`, "-lntee", `-Wl,-rpath,${BUILD}`]);
    return run(program, [], dirname(file));
  },
};

for (const { path, language, source, line, prints } of documents.flatMap(programs)) {
  test(`${path}:${line}, ${language}`, () => {
    const own = mkdtempSync(join(dir, "block-"));
    const file = join(own, language === "js" ? "block.mjs" : "block.c");
    writeFileSync(file, source);
    const output = RUN[language](file);
    if (prints !== null) assert.equal(output, prints);
  });
}

test("links between the documents lead somewhere", () => {
  const wrong = [];
  for (const path of [...documents, "CONTRIBUTING.md", "FORMAT.md", "CHANGELOG.md", "prebuilds/README.md"]) {
    const text = readFileSync(join(ROOT, path), "utf8");
    for (const [, target] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
      if (!existsSync(join(ROOT, dirname(path), target))) wrong.push(`${path}: ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("files that the documents name exist", () => {
  const wrong = [];
  for (const path of [...documents, "CONTRIBUTING.md"]) {
    const text = readFileSync(join(ROOT, path), "utf8");
    for (const [, target] of text.matchAll(/`((?:src|include|tests|bench|docs|examples|bindings)\/[\w./-]+?\.\w+)`/g)) {
      if (!existsSync(join(ROOT, target))) wrong.push(`${path}: ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("examples/http-history: a second process finds what the first recorded before it exited", () => {
  const store = join(dir, "history"), main = join(ROOT, "examples/http-history/main.mjs");
  const first = run(process.execPath, [main, store]);
  assert.match(first, /^8 calls, the newest first:\n/);
  assert.match(first, /^3 of them to \/users, the oldest first:\n/m);
  const times = [...first.split(/^3 of them/m)[0].matchAll(/^  (\S+Z)  (\d+)  GET (\S+)/gm)].map(([, at]) => at);
  assert.equal(times.length, 8);
  assert.deepEqual(times, [...times].sort().reverse());
  assert.match(run(process.execPath, [main, store]), /^16 calls, the newest first:\n[^]*^6 of them to \/users/m);
});
