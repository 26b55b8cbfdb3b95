// Sizes, comments and characters of the source.
import { test } from "node:test";
import assert from "node:assert/strict";
import { basename } from "node:path";
import { declarations, files, functions, moduleOf, modules, read } from "./source.mjs";

const C_FILES = ["include", "src", "tests", "examples", "bench"].flatMap((dir) => files(dir, /\.[ch]$/));
const JS_FILES = files(".", /\.(m?js|cjs|d\.ts)$/);
const LIMITS = { fileLines: 600, functionLines: 70, columns: 110, testColumns: 120 };

const lines = (path) => read(path).replace(/\n$/, "").split("\n");

test("the checker sees functions, their lengths and their comments", () => {
  const sample = [
    "/* a comment with f(x) { } */",
    "static int one(int a) { return a; }",
    "struct s { int x; };",
    "int",
    "two(int a,",
    "    char b) {",
    '    const char *text = "}{ not code";',
    "    if (a) { b = '}'; }",
    "    return text[b];",
    "}",
    "static const int TABLE[] = {1, 2};",
  ].join("\n");
  assert.deepEqual(functions(sample).map(({ name, from, to }) => [name, from, to]), [["one", 2, 2], ["two", 4, 10]]);
  const header = ["/* a does. */", "int a(void);", "int b(int (*call)(int),", "      int c);", "", "int d(void);",
    "typedef struct s { int (*f)(int); } s;", "static inline int e(int x) {", "    return x;", "}"].join("\n");
  assert.deepEqual(declarations(header).map(({ name, commented }) => [name, commented]),
    [["a", true], ["b", true], ["d", false], ["e", false]]);
});

test(`files are shorter than ${LIMITS.fileLines} lines`, () => {
  assert.ok(C_FILES.length > 0 && JS_FILES.length > 0);
  const wrong = [...C_FILES, ...JS_FILES].map((path) => [path, lines(path).length]);
  assert.deepEqual(wrong.filter(([, count]) => count >= LIMITS.fileLines), []);
});

test(`functions have at most ${LIMITS.functionLines} lines`, () => {
  const wrong = C_FILES.flatMap((path) => functions(read(path))
    .filter(({ from, to }) => to - from + 1 > LIMITS.functionLines)
    .map(({ name, from, to }) => `${path}:${from} ${name}: ${to - from + 1} lines`));
  assert.deepEqual(wrong, []);
});

test(`C lines have at most ${LIMITS.columns} columns (tests ${LIMITS.testColumns}), no tabs, no spaces at the end`, () => {
  const wrong = C_FILES.flatMap((path) => {
    const columns = /^(src|include)\//.test(path) ? LIMITS.columns : LIMITS.testColumns;
    return lines(path).map((line, index) => [line, `${path}:${index + 1}`])
      .filter(([line]) => line.length > columns || /\t|[ ]$/.test(line))
      .map(([, place]) => place);
  });
  assert.deepEqual(wrong, []);
});

test("C source is ASCII", () => {
  const wrong = C_FILES.flatMap((path) => lines(path)
    .map((line, index) => [line, `${path}:${index + 1}`])
    .filter(([line]) => /[^\x20-\x7e]/.test(line))
    .map(([, place]) => place));
  assert.deepEqual(wrong, []);
});

test("no leftover markers", () => {
  const marker = new RegExp(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"].map((word) => `\\b${word}\\b`).join("|"));
  const texts = [...C_FILES, ...JS_FILES, ...files(".", /\.(md|sh|txt|json)$|^run$/)];
  assert.deepEqual(texts.filter((path) => marker.test(read(path))), []);
});

// Inline functions of a few lines may go without: they are their own description.
const SHORT_INLINE = 6;

test("every function in a header has a comment", () => {
  const headers = [...files("include", /\.h$/), ...files("src", /\.h$/)];
  const wrong = headers.flatMap((path) => {
    const text = read(path);
    const short = new Set(functions(text).filter(({ from, to }) => to - from < SHORT_INLINE).map(({ name }) => name));
    return declarations(text)
      .filter(({ name, commented, inline }) => !commented && !(inline && short.has(name)))
      .map(({ name, line }) => `${path}:${line} ${name}`);
  });
  assert.deepEqual(wrong, []);
});

test("every header begins with a comment that says what it is", () => {
  const headers = files("src", /\.h$/);
  assert.deepEqual(headers.filter((path) => !new RegExp(`^/\\*\\s*(\\*\\s*)?${basename(path, ".h")}\\b`).test(read(path))), []);
});

test("no macro returns or jumps", () => {
  const wrong = files("src", /\.[ch]$/).filter((path) =>
    /^[ \t]*#[ \t]*define(?:[^\n]*\\\n)*[^\n]*\b(return|goto)\b/m.test(read(path)));
  assert.deepEqual(wrong, []);
});

test("every source file has a unit test, or its module names what covers it", () => {
  const table = modules(), tests = new Set(files("tests", /^test_.*\.c$/).map((path) => basename(path, ".c")));
  const wrong = files("src", /\.c$/).filter((path) => {
    const row = moduleOf(path, table);
    const candidates = [`test_${basename(path, ".c")}`, `test_${row?.module}`, ...(row?.tests ?? [])];
    return !candidates.some((name) => tests.has(name));
  });
  assert.deepEqual(wrong, []);
});
