// Calls every method with hostile values in every argument and prints what went wrong: the program of 42.misuse.
import { inspect } from "node:util";
import { runInNewContext } from "node:vm";
import { NteeDB, NteeError } from "../../lib/index.js";

const dir = process.argv[2];
const revoked = Proxy.revocable({}, {});
revoked.revoke();
const revokedArray = Proxy.revocable([], {});
revokedArray.revoke();
const detached = new Uint8Array(8);
structuredClone(detached.buffer, { transfer: [detached.buffer] });
const cyclic = {};
cyclic.self = cyclic;
const thrower = () => {
  throw new RangeError("mine");
};
const throwing = new Proxy(
  {},
  {
    get: thrower,
    has: thrower,
    ownKeys: thrower,
    getPrototypeOf: thrower,
    getOwnPropertyDescriptor: thrower,
  },
);
class Liar extends Uint8Array {
  get length() {
    return 1e9;
  }
  get byteLength() {
    return 1e9;
  }
}

const hostile = () => ({
  undefined: undefined,
  null: null,
  true: true,
  false: false,
  zero: 0,
  minusZero: -0,
  five: 5,
  half: 1.5,
  NaN: NaN,
  inf: Infinity,
  minusInf: -Infinity,
  unsafe: 2 ** 53 + 2,
  negative: -1,
  max32: 4294967296,
  tiny: 5e-324,
  address: 140000000000000,
  big0: 0n,
  big5: 5n,
  bigEdge: 1n << 63n,
  bigAddress: 140000000000000n,
  empty: "",
  nul: "\0",
  nuls: "a\0b",
  lone: "\ud800",
  loneEnd: "x\udfff",
  proto: "__proto__",
  constructor: "constructor",
  long: "k".repeat(70000),
  huge: "x".repeat(1 << 24),
  object: {},
  array: [],
  nested: [[[]]],
  holes: new Array(3),
  keyed: { key: "a" },
  item: { key: "a", value: 1 },
  put: { type: "put", key: "a", value: 1 },
  named: { as: "text" },
  limit: { limit: 1 },
  symbol: Symbol("s"),
  fn: () => 1,
  classy: class {},
  boxed: new String("a"),
  boxedNumber: new Number(1),
  date: new Date(),
  map: new Map([["a", 1]]),
  set: new Set(["a"]),
  promise: Promise.resolve(1),
  regexp: /x/,
  error: new Error("x"),
  buffer: Buffer.from("a"),
  emptyBuffer: Buffer.alloc(0),
  longBuffer: Buffer.alloc(70000, 1),
  detached,
  detachedBuffer: detached.buffer,
  shared: new SharedArrayBuffer(8),
  float: new Float64Array(2),
  view: new DataView(new ArrayBuffer(4)),
  arrayBuffer: new ArrayBuffer(4),
  liar: new Liar(4),
  foreign: runInNewContext("new Uint8Array([97])"),
  foreignObject: runInNewContext("({})"),
  foreignArray: runInNewContext("['a']"),
  cyclic,
  revoked: revoked.proxy,
  revokedArray: revokedArray.proxy,
  throwing,
  proxyBuffer: new Proxy(Buffer.from("a"), {}),
  proxyArray: new Proxy(["a"], {}),
  getter: {
    get key() {
      throw new RangeError("mine");
    },
  },
  toJSON: {
    toJSON() {
      throw new RangeError("mine");
    },
  },
  toJSONUndefined: { toJSON() {} },
  toString: {
    toString() {
      throw new RangeError("mine");
    },
  },
  toPrimitive: {
    [Symbol.toPrimitive]() {
      throw new RangeError("mine");
    },
  },
  thenable: { then: thrower },
  inherited: Object.create({ as: "text", limit: 0 }),
  bare: Object.assign(Object.create(null), { as: "text" }),
  protoKey: JSON.parse('{"__proto__": 1}'),
  weakRef: new WeakRef({}),
  global: globalThis,
  generator: (function* () {})(),
  arguments: (function () {
    return arguments;
  })("a"),
});

const methods = {
  put: ["key", { v: 1 }, undefined, undefined],
  putAsync: ["key", { v: 1 }, undefined, undefined],
  putIfAbsent: ["absent", 1, undefined, undefined],
  putMany: [[{ key: "many", value: 1 }]],
  batch: [[{ type: "put", key: "many", value: 1 }]],
  get: ["key", {}],
  getSync: ["key", {}],
  getMany: [["key"], {}],
  getManySync: [["key"], {}],
  has: ["key"],
  hasSync: ["key"],
  delete: ["none"],
  prefixScan: ["k", {}],
  rangeScan: [{}, {}],
  prefixScanRecords: ["k", {}],
  rangeScanRecords: [{}, {}],
  entries: ["k", {}],
  keys: ["k", {}],
  count: ["k"],
  stats: [],
  details: [],
  verify: [],
  sync: [],
};
const typed = (error) =>
  error instanceof NteeError && ["NTEE_INVALID", "NTEE_TOO_LARGE"].includes(error.code);
const mine = (error) => error instanceof RangeError && error.message === "mine";
// What JSON.stringify throws for a value is thrown.
const stringify = (error) => error instanceof TypeError;
const isPromise = (value) => typeof value?.then === "function";

let cells = 0;
const bad = [];
let db = NteeDB.open(dir);
db.put("key", { v: 0 });

async function cell(method, given, what) {
  cells++;
  let answer;
  const asynchronous = ![
    "put",
    "putIfAbsent",
    "getSync",
    "getManySync",
    "hasSync",
    "delete",
    "entries",
    "keys",
  ].includes(method);
  try {
    answer = db[method](...given);
  } catch (error) {
    if (asynchronous) bad.push(what + ": threw " + inspect(error));
    else check(error, method, what);
    return;
  }
  if (asynchronous && !isPromise(answer)) return bad.push(what + ": gave no promise");
  try {
    if (answer?.[Symbol.asyncIterator]) for await (const item of answer) void item;
    else await answer;
  } catch (error) {
    check(error, method, what);
  }
}
function check(error, method, what) {
  if (typed(error) || mine(error)) return;
  if (
    stringify(error) &&
    /^put/.test(method) &&
    /JSON|circular|BigInt|proxy|typed array|revoked|incompatible receiver/i.test(error.message)
  )
    return;
  bad.push(what + ": " + inspect(error));
}

const values = hostile();
const names = Object.keys(values);
for (const [method, good] of Object.entries(methods)) {
  for (let place = 0; place < Math.max(good.length, 1); place++) {
    for (const name of names) {
      const given = [...good];
      given[place] = hostile()[name];
      await cell(method, given, method + " argument " + place + " " + name);
    }
  }
  // Hostile values inside lists, items, ranges and options.
  for (const name of names) {
    const inside = {
      putMany: () => [
        [[values[name]]],
        [[{ key: values[name], value: 1 }]],
        [[{ key: "many", value: values[name] }]],
      ],
      batch: () => [
        [[values[name]]],
        [[{ type: values[name], key: "many", value: 1 }]],
        [[{ type: "del", key: values[name] }]],
      ],
      getMany: () => [[[values[name]]]],
      getManySync: () => [[[values[name]]]],
      rangeScan: () => [
        [{ gt: values[name] }],
        [{ gte: values[name] }],
        [{ lt: values[name] }],
        [{ lte: values[name] }],
      ],
      rangeScanRecords: () => [[{ gte: values[name] }]],
      count: () => [[{ gte: values[name], lt: values[name] }]],
      prefixScan: () => ["limit", "reverse", "after"].map((option) => ["k", { [option]: values[name] }]),
      prefixScanRecords: () =>
        ["limit", "reverse", "after", "as", "corrupt"].map((option) => ["k", { [option]: values[name] }]),
      entries: () => ["limit", "after", "as", "corrupt"].map((option) => ["k", { [option]: values[name] }]),
      keys: () => ["limit", "after"].map((option) => [{}, { [option]: values[name] }]),
      get: () => [["key", { as: values[name] }]],
      getSync: () => [["key", { as: values[name] }]],
    }[method];
    for (const given of inside?.() ?? []) await cell(method, given, method + " inside " + name);
  }
}
for (const name of names) {
  for (const option of [
    "readOnly",
    "useMmap",
    "syncEveryWrite",
    "syncIntervalMs",
    "hintEveryN",
    "acceptDamage",
    "indexes",
    "autoCompact",
  ]) {
    cells++;
    try {
      NteeDB.open(dir, { [option]: values[name] }).close();
      bad.push("opened twice");
    } catch (error) {
      if (!typed(error) && error.code !== "NTEE_LOCKED")
        bad.push("open " + option + " " + name + ": " + inspect(error));
    }
  }
  for (const call of [
    () => NteeDB.open(values[name]),
    () => NteeDB.open(dir, values[name]),
    () => NteeDB.destroy(values[name]),
    () => new NteeDB(values[name], values[name]),
  ]) {
    // A path that is no misuse, and one that is so long that nothing can be there to destroy.
    if (typeof values[name] === "string" && values[name].length >= 70000) continue;
    if (
      typeof values[name] === "string" &&
      values[name] !== "" &&
      !values[name].includes("\0") &&
      values[name].length < 100 &&
      values[name].isWellFormed()
    )
      continue;
    cells++;
    try {
      call();
      bad.push("open/destroy " + name + " went through");
    } catch (error) {
      if (!typed(error) && !mine(error) && error.code !== "NTEE_LOCKED" && error.code !== "NTEE_IO")
        bad.push("open/destroy " + name + ": " + inspect(error));
    }
  }
}

// Code of the user's that runs in the middle of a call and closes the store.
for (const method of [
  "put",
  "putIfAbsent",
  "putAsync",
  "putMany",
  "batch",
  "get",
  "getMany",
  "prefixScan",
  "entries",
]) {
  const closer = {
    toJSON() {
      db.close();
      return 1;
    },
  };
  const closing = (name) => ({
    get [name]() {
      db.close();
      return undefined;
    },
  });
  const given = {
    put: ["x", closer],
    putIfAbsent: ["x", closer],
    putAsync: ["x", closer],
    putMany: [[{ key: "x", value: closer }]],
    batch: [[{ type: "put", key: "x", value: closer }]],
    get: ["key", closing("as")],
    getMany: [
      new Proxy(["key"], {
        get(t, p) {
          if (p === "0") db.close();
          return t[p];
        },
      }),
    ],
    prefixScan: ["k", closing("limit")],
    entries: ["k", closing("limit")],
  }[method];
  cells++;
  try {
    const answer = await db[method](...given);
    if (method === "entries") await answer.next();
    bad.push(method + " went through while the store was closed");
  } catch (error) {
    if (error.code !== "NTEE_CLOSED") bad.push(method + " closing: " + inspect(error));
  }
  await db.closed;
  db = NteeDB.open(dir);
}

// Code of the user's that uses the store in the middle of a call.
const nested = {
  toJSON() {
    db.put("inner", "i".repeat(500));
    db.getSync("inner");
    return { outer: "o".repeat(300) };
  },
};
db.put("outer", nested);
db.putIfAbsent("outer2", nested);
await db.putMany([
  { key: "outer3", value: nested },
  { key: "outer4", value: nested },
]);
for (const key of ["outer", "outer2", "outer3", "outer4"]) {
  if (db.getSync(key)?.outer !== "o".repeat(300)) bad.push("nested " + key);
}
const keys = await db.prefixScan("");
for (const key of keys) db.getSync(key);
db.close();
await db.closed;
console.log(JSON.stringify({ cells, bad: bad.slice(0, 30), badCount: bad.length }));
