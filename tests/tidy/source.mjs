// What the tidy tests read: the project's files, C source cut into functions, the table in CONTRIBUTING.md.
import { readFileSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SKIP = /^(node_modules|build|build-.*|prebuilds|\.git)$/;

// Paths, relative to the root, of all files under `dir` whose names match.
export function files(dir, pattern) {
  const found = [];
  const walk = (at) => {
    for (const entry of readdirSync(join(ROOT, at), { withFileTypes: true })) {
      if (SKIP.test(entry.name)) continue;
      const path = at === "." ? entry.name : `${at}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else if (pattern.test(entry.name)) found.push(path);
    }
  };
  walk(dir);
  return found.sort();
}

export const read = (path) => readFileSync(join(ROOT, path), "utf8");

// C source with comments and the insides of literals replaced by spaces; line breaks stay where they are.
export function bare(text) {
  const blank = (part) => part.replace(/[^\n]/g, " ");
  return text.replace(/\/\*[^]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g, (part) =>
    part[0] === "/" ? blank(part) : part[0] + blank(part.slice(1, -1)) + part[0]);
}

// Functions defined in C source: {name, from, to, body}; lines count from 1, `from` is the signature's first.
export function functions(text) {
  const lines = bare(text).split("\n").map((line) => (/^\s*#/.test(line) ? "" : line));
  const found = [];
  let depth = 0, head = [], open = null;
  lines.forEach((line, index) => {
    if (depth === 0) head = line.trim() === "" ? [] : [...head, { line, number: index + 1 }];
    for (const char of line) {
      if (char === "{" && depth++ === 0) open = signature(head);
      if (char === "}" && --depth === 0) {
        if (open) found.push({ ...open, to: index + 1, body: lines.slice(open.from - 1, index + 1).join("\n") });
        head = [];
        open = null;
      }
    }
    if (depth === 0 && /[;}]\s*$/.test(line)) head = [];
  });
  return found;
}

function signature(head) {
  const text = head.map(({ line }) => line).join(" ").replace(/\{.*$/, "");
  if (/=|^\s*(typedef|extern|enum|struct\s+\w+\s*$)/.test(text)) return null;
  const match = /([A-Za-z_]\w*)\s*\(/.exec(text.replace(/__attribute__\s*\(\(.*?\)\)/g, ""));
  return match && head.length ? { name: match[1], from: head[0].number } : null;
}

// Functions declared or defined inline in a header: {name, line, commented, inline}. A comment counts where it
// stands directly above the function, or above the unbroken paragraph of declarations that the function is in.
export function declarations(text) {
  const raw = text.split("\n"), clean = bare(text).split("\n");
  const found = [];
  let depth = 0, commented = false, inStatement = false;
  clean.forEach((line, index) => {
    const code = line.trim();
    if (depth === 0 && !inStatement) {
      if (raw[index].trim() === "") commented = false;
      else if (code === "") commented = true;
      const match = /^(?!typedef|enum|extern|struct \w+ \{|#)[\w*\s]*?\b([A-Za-z_]\w*)\s*\((?!\*)/.exec(line);
      if (match && /^\w/.test(line) && !/^_/.test(match[1])) {
        found.push({ name: match[1], line: index + 1, commented, inline: /^static inline /.test(line) });
      }
    }
    for (const char of code) depth += char === "{" ? 1 : char === "}" ? -1 : 0;
    if (code && !code.startsWith("#")) inStatement = depth === 0 && !/[;}]$/.test(code) && !/extern "/.test(raw[index]);
    if (/^extern "C/.test(code) || /^extern "/.test(raw[index].trim())) depth = 0;
    if (depth < 0) depth = 0;
  });
  return found;
}

// The table of modules in CONTRIBUTING.md: [{layer, module, names, uses, tests}].
export function modules() {
  const text = read("CONTRIBUTING.md");
  const part = /<!-- modules -->([^]*?)<!-- end -->/.exec(text);
  if (!part) throw new Error("CONTRIBUTING.md has no table between <!-- modules --> and <!-- end -->");
  const words = (cell) => cell.replace(/`/g, "").split(/[\s,]+/).filter(Boolean);
  return part[1].trim().split("\n").slice(2).map((row) => {
    const [layer, module, names, uses, tests] = row.split("|").slice(1, 6).map((cell) => cell.trim());
    return { layer: words(layer)[0], module: words(module)[0], names: words(names), uses: words(uses), tests: words(tests) };
  });
}

// The module that a source file belongs to: its own name, or the longest listed one that its name goes on from
// after an underscore (log_map.c is part of log).
export function moduleOf(path, table) {
  const layer = basename(dirname(path)), name = basename(path).replace(/\.[ch]$/, "");
  return table
    .filter((row) => row.layer === layer && (name === row.module || name.startsWith(`${row.module}_`)))
    .sort((a, b) => b.module.length - a.module.length)[0];
}

