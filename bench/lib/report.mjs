// What a benchmark prints: a table for people, or one JSON document for programs.

export function printJson({ bench, work, rounds, titles, results, notes }) {
  const rows = results.map(({ id, unit, figures, rounds: all }) => ({
    id,
    unit,
    ...mapValues(figures, rounded),
    rounds: mapValues(all, (list) => list.map(rounded)),
    notes: notes(id),
  }));
  const document = { bench, records: work.n, valueBytes: work.valueBytes, rounds, engines: titles, rows };
  console.log(JSON.stringify(document, null, 2));
}

export function printTable({ bench, work, rounds, titles, results, notes }) {
  const names = Object.keys(titles);
  console.log(`${bench}: ${work.n} records of ${work.valueBytes} bytes, medians of ${rounds} rounds\n`);
  for (const name of names) console.log(`  ${name}: ${titles[name]}`);
  const others = names.filter((name) => name !== "ntee" && names.includes("ntee"));
  const head = ["row", "unit", ...names, ...others.map((name) => `ntee/${name}`)];
  const lines = results.map(({ id, unit, figures }) => [
    id,
    unit,
    ...names.map((name) => (name in figures ? String(rounded(figures[name])) : "")),
    ...others.map((name) => (name in figures ? (figures.ntee / figures[name]).toFixed(2) : "")),
  ]);
  console.log(`\n${aligned([head, ...lines])}\n`);
  for (const { id, figures } of results) {
    const ran = Object.entries(notes(id)).filter(([name]) => name in figures);
    const different = ran.filter(([, note], at, all) => note !== all[at - 1]?.[1]);
    for (const [name, note] of different) console.log(`  ${id}, ${name}: ${note}`);
  }
}

function aligned(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  return lines
    .map((line) => line.map((cell, at) => (at < 2 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))))
    .map((line) => line.join("  "))
    .join("\n");
}

/** Four significant digits. */
function rounded(figure) {
  return Number(figure.toPrecision(4));
}

function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
