// The records that every engine is given: the same objects, the same key strings, the same random order.

const ENDPOINTS = 500;
const TRACES = 1000;

/**
 * `n` records with JSON values of about 120 bytes, keyed `api:<zero-padded id>` and in key order;
 * `shuffled` are the same keys in an order that is random and the same in every run.
 */
export function makeWorkload(n) {
  const random = mulberry32(20);
  const records = Array.from({ length: n }, (_, id) => ({ key: keyOf(id), value: valueOf(id, random) }));
  const keys = records.map((record) => record.key);
  return {
    n,
    records,
    keys,
    shuffled: shuffle(keys.slice(), random),
    durable: records.slice(0, Math.min(n, 200)), // a sync takes 0.2 to 3 ms, so fewer writes
    prefix: "api:",
    statusSum: records.reduce((sum, record) => sum + record.value.status, 0),
    valueBytes: Buffer.byteLength(JSON.stringify(records[0].value)),
  };
}

/** At most `count` of the items, evenly spaced, the first and the last among them. */
export function sampleOf(items, count) {
  const step = Math.max(1, (items.length - 1) / (count - 1));
  const sample = [];
  for (let at = 0; at < items.length; at += step) sample.push(items[Math.round(at)]);
  return sample;
}

function keyOf(id) {
  return `api:${String(id).padStart(10, "0")}`;
}

function valueOf(id, random) {
  return {
    endpoint: `/api/v1/resource/${id % ENDPOINTS}`,
    traceId: `trace-${String((id * 7) % TRACES).padStart(6, "0")}`,
    status: 200 + Math.floor(random() * 300),
    ms: Math.floor(random() * 1000),
    user: `user-${Math.floor(random() * 5000)}`,
    at: 1700000000000 + id,
  };
}

function shuffle(items, random) {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const held = items[i];
    items[i] = items[j];
    items[j] = held;
  }
  return items;
}

/** A small seeded generator of numbers in [0, 1). */
function mulberry32(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
