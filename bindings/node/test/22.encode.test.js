// Flat objects are written without JSON.stringify: the bytes, and what the user's code sees, are the same.
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { runInNewContext } from "node:vm";
import { NteeDB } from "../lib/index.js";
import { Request } from "../lib/slot.js";
import { encodeValue } from "../lib/values.js";
import { OBJECT } from "../lib/wire.js";
import { freshDir, gcUntil, LONG, random, run, seed } from "./support.js";

/** Forgets what was learned, so that a test does not depend on those before it. */
let addValue;
let lives = 0;
const afresh = async () => ({ addValue } = await import(`../lib/writers.js?${lives++}`));
beforeEach(afresh);

const HEAD = 8;
const stringify = JSON.stringify;
let stringified = 0;
JSON.stringify = (...given) => {
  stringified++;
  return stringify(...given);
};
after(() => {
  JSON.stringify = stringify;
});

/** The value's bytes as they stand in the request that addValue makes. */
function written(value, { key = "k", size = 64, before = 0 } = {}) {
  const request = new Request(size);
  request.needInput(before);
  request.inputLength = before;
  addValue(request, 1, key, value, false);
  const { input, inputLength } = request;
  const keyLength = input.readUInt16LE(before + 2);
  const type = input.readUInt16LE(before);
  assert.equal(type & ~OBJECT, 1);
  if (type & OBJECT) assert.equal(input[before + HEAD + keyLength], 0x7b);
  assert.equal(keyLength, Buffer.byteLength(key));
  assert.equal(input.toString("utf8", before + HEAD, before + HEAD + keyLength), key);
  assert.ok(inputLength <= input.length);
  assert.equal(before + HEAD + keyLength + input.readUInt32LE(before + 4), inputLength);
  return input.subarray(before + HEAD + keyLength, inputLength);
}

const bytesOf = (given) => (typeof given === "string" ? Buffer.from(given) : Buffer.from(given));

/** Puts objects of these names by, so that they have a writer. */
function teach(names, make = () => Object.fromEntries(names.map((name, i) => [name, i]))) {
  for (let i = 0; i < 8; i++) written(make());
}

/** Whether a value is written without JSON.stringify. */
function direct(value) {
  const before = stringified;
  written(value);
  return stringified === before;
}

/** What an action gives or throws, and what the user's code was asked meanwhile. */
function seen(make, action) {
  const log = [];
  const value = make(log);
  try {
    return [bytesOf(action(value)).toString("latin1"), log];
  } catch (error) {
    return [`${error.name}: ${error.message}`, log];
  }
}

/** Compares the two ways with each other, on two objects made alike. */
const same = (make, what) => assert.deepEqual(seen(make, written), seen(make, encodeValue), what);

test("a flat object that comes often is written without JSON.stringify, an odd one with it", () => {
  const record = () => ({ text: "abc", n: 5, big: 1700000000000, f: 0.5, yes: true, no: false, none: null });
  teach(null, record);
  assert.ok(direct(record()));
  assert.ok(direct(Object.freeze(record())));
  assert.ok(direct(Object.assign(Object.create(null), record())));
  assert.ok(!direct({ ...record(), none: undefined }));
  assert.ok(!direct({ ...record(), none: [] }));
  assert.ok(!direct({ ...record(), more: 1 }));
  assert.ok(!direct({ n: 5, ...record() }));
  assert.ok(!direct(new Proxy(record(), {})));
  assert.ok(!direct(Object.assign(new Date(0), record())));
});

test("names that are more than plain text have no writer", async () => {
  const unfit = ["__proto__", "toJSON", "rawJSON", "é", 'q"', "b\\s", "\n", "\u007f", "n".repeat(3000)];
  const make = (name) => Object.defineProperty({ b: 1 }, name, { value: 2, enumerable: true });
  for (const name of unfit) {
    await afresh();
    teach(null, () => make(name));
    assert.ok(!direct(make(name)), name.slice(0, 20));
    assert.equal(written(make(name)).toString(), stringify(make(name)));
  }
  for (const [count, fits] of [[64, true], [65, false]]) {
    const many = () => Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, i]));
    await afresh();
    teach(null, many);
    assert.equal(direct(many()), fits);
  }
});

test("shapes that take turns stay fast; strangers without end are given up", () => {
  const make = (i) => ({ [`first${i}`]: 1, both: 2 });
  for (let i = 0; i < 20; i++) teach(null, () => make(i));
  for (let i = 0; i < 20; i++) assert.ok(direct(make(i)));
  for (let i = 100; i < 20000; i++) written(make(i));
  for (let i = 0; i < 20; i++) written(make(0)); // of strangers in a row, not every one is looked at
  for (let i = 0; i < 20; i++) assert.ok(direct(make(i)));
  for (let i = 0; i < 100; i++) teach(null, () => make(50));
  assert.ok(!direct(make(50)));
});

test("a shape whose objects are seldom flat is given up", () => {
  teach(NAMES, flat);
  for (let i = 0; i < 200; i++) written(flat({ b: {} }));
  for (let i = 0; i < 100; i++) assert.ok(!direct(flat()));
});

test("of many strangers in a row only some are looked at, and one that is known ends that", () => {
  teach(NAMES, flat);
  for (let i = 0; i < 100; i++) written({ [`stranger${i}`]: 1 });
  const found = Array.from({ length: 40 }, () => direct(flat()));
  const first = found.indexOf(true);
  assert.ok(first > 0 && first < 16, `${first}`);
  assert.ok(found.slice(first).every(Boolean));
});

test("a batch of nearly 1 GiB is still measured to the byte", () => {
  teach(NAMES, flat);
  const most = 2 ** 30;
  const size = HEAD + stringify(flat()).length; // and the key, which is taken for 3 bytes
  const request = (inputLength) => ({
    inputLength,
    input: { length: inputLength },
    needInput() {
      throw new Error("room is asked for");
    },
  });
  const add = (left) => () => addValue(request(most - left), 1, "k", flat(), false);
  assert.throws(add(size + 3), /room is asked for/);
  assert.throws(add(size + 2), { code: "NTEE_TOO_LARGE" });
  assert.throws(add(9 << 20), /room is asked for/);
});

test("numbers have the digits that they have in JSON", () => {
  const numbers = [0, -0, NaN, Infinity, -Infinity, 1e21, 1e20, -1e21, 5e-324, 1.7976931348623157e308, 0.1, -0.5];
  for (let power = 0; power <= 60; power++) numbers.push(2 ** power, 2 ** power - 1, 2 ** power + 1);
  for (let power = 0; power <= 23; power++) numbers.push(10 ** power, 10 ** power - 1, 10 ** power + 1);
  teach(["number"]);
  for (const number of numbers.flatMap((one) => [one, -one, one + 0.5])) {
    assert.equal(written({ number }).toString(), stringify({ number }));
    if (Number.isFinite(number)) assert.ok(direct({ number }));
  }
});

test("every character, at every place of short and long strings, is written as JSON has it", () => {
  teach(["text", "end"]);
  const codes = [...Array(0x300).keys(), 0x7ff, 0x800, 0x2028, 0x2029, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xffff];
  for (const length of [1, 2, 5, 47, 48, 49, 50, 51, 52, 53, 100]) {
    for (const code of codes) {
      const at = code % length;
      const text = "x".repeat(at) + String.fromCharCode(code) + "x".repeat(length - at - 1);
      const value = { text, end: 1 };
      assert.equal(written(value).toString(), stringify(value), `${length} ${code}`);
    }
    for (let at = 0; at < length; at++) {
      for (const odd of ['"', "\\", "\u001f", "\u007f", "\u0080", "\ud83d\ude00"]) {
        const value = { text: "y".repeat(at) + odd + "y".repeat(length - at), end: odd };
        assert.equal(written(value).toString(), stringify(value));
      }
    }
  }
});

test("any room is enough: a request grows, and what is in it stays", () => {
  teach(["a", "b"]);
  for (let size = 0; size < 200; size++) {
    for (const a of ["", "short", "é".repeat(30), '"'.repeat(60), "z".repeat(size), "\u0001".repeat(size)]) {
      const value = { a, b: a };
      assert.equal(written(value, { size, before: size % 50 }).toString(), stringify(value));
      assert.equal(written(value, { size, key: "ké".repeat(1 + (size % 30)) }).toString(), stringify(value));
    }
  }
  for (const unit of ["\u20ac", "\u00e9", "\ud83d\ude00", "x\u00e9"]) {
    const value = { a: unit.repeat(49), b: unit.repeat(60) };
    for (let size = 0; size < 1000; size++) {
      assert.equal(written(value, { size, before: size % 8 }).toString(), stringify(value));
    }
  }
  for (const length of [1 << 19, (1 << 20) - 100, 1 << 20, 3 << 20]) {
    for (const unit of ["x", "\u0001", "\u20ac"]) {
      const value = { a: 1, b: unit.repeat(length) };
      assert.ok(written(value).equals(Buffer.from(stringify(value))));
    }
  }
});

test("what stands before a write in the request stays as it was", () => {
  const request = new Request(16);
  const wanted = [];
  for (let i = 0; i < 300; i++) {
    const value = { a: i, b: i % 7 === 0 ? "\n".repeat(i) : "b".repeat(i) };
    const at = request.inputLength;
    addValue(request, 1, `key${i}`, value, false);
    const text = Buffer.from(stringify(value));
    const head = Buffer.alloc(HEAD);
    head.writeUInt16LE(1 | (request.input.readUInt16LE(at) & OBJECT), 0);
    head.writeUInt16LE(`key${i}`.length, 2);
    head.writeUInt32LE(text.length, 4);
    wanted.push(head, Buffer.from(`key${i}`), text);
  }
  assert.ok(request.input.subarray(0, request.inputLength).equals(Buffer.concat(wanted)));
});

// ---- What the user's code can see ----

const NAMES = ["a", "b", "c"];
const flat = (more = {}) => ({ a: 1, b: "x", c: true, ...more });
const logged = (log, target) =>
  new Proxy(
    target,
    Object.fromEntries(
      ["get", "has", "ownKeys", "getPrototypeOf", "getOwnPropertyDescriptor"].map((trap) => [
        trap,
        (...given) => {
          log.push([trap, String(given[1])]);
          return Reflect[trap](...given);
        },
      ]),
    ),
  );
/** An object with an accessor: `act` is called with the object when `name` is read. */
const reading = (name, act, target = flat()) => (log) =>
  Object.defineProperty(target === null ? flat() : { ...target }, name, {
    get() {
      log.push(["read", name]);
      return act.call(this, log);
    },
    enumerable: true,
    configurable: true,
  });

const ODD = {
  "a getter": reading("b", () => "read"),
  "a getter before an object": reading("a", () => 1, flat({ c: { d: [1] } })),
  "a getter before undefined": reading("a", () => 1, flat({ c: undefined })),
  "a getter that gives an object with toJSON": reading("a", (log) => ({ toJSON: (key) => log.push(key) })),
  "a getter behind an object with toJSON": (log) =>
    reading("c", () => log.push("c"))(log, log) &&
    Object.defineProperty(reading("c", () => log.length)(log), "a", {
      value: { toJSON: () => log.push("toJSON") },
      enumerable: true,
    }),
  "a getter that throws": reading("b", () => {
    throw new Error("mine");
  }),
  "a getter that deletes": reading("a", function () {
    delete this.b;
    return 0;
  }),
  "a getter that adds": reading("a", function () {
    this.d = 4;
    return 0;
  }),
  "a getter that changes": reading("a", function () {
    this.c = { changed: true };
    return 0;
  }),
  "a getter that hides": reading("a", function () {
    Object.defineProperty(this, "c", { enumerable: false });
    return 0;
  }),
  "a getter that brings a toJSON": reading("a", function () {
    this.toJSON = () => "too late";
    return 0;
  }),
  "a proxy": (log) => logged(log, flat()),
  "a proxy of a proxy": (log) => logged(log, logged(log, flat())),
  "a proxy of an array": (log) => logged(log, [1, 2]),
  "a revoked proxy": () => {
    const { proxy, revoke } = Proxy.revocable(flat(), {});
    revoke();
    return proxy;
  },
  "a proxy that counts": () => {
    let count = 0;
    return new Proxy(flat(), { get: (_, name) => (name === "toJSON" ? undefined : count++) });
  },
  "a prototype that is a proxy": (log) => Object.setPrototypeOf(flat(), logged(log, {})),
  "a prototype that answers everything": () =>
    Object.setPrototypeOf(flat(), new Proxy({}, { get: () => () => "everything" })),
  "toJSON, own": (log) => flat({ toJSON: (key) => log.push(key) }),
  "toJSON, own and hidden": (log) =>
    Object.defineProperty(flat(), "toJSON", { value: (key) => log.push(key), enumerable: false }),
  "toJSON, a getter": (log) =>
    Object.defineProperty(flat(), "toJSON", {
      get() {
        return void log.push("toJSON");
      },
    }),
  "toJSON that gives nothing": (log) =>
    Object.defineProperty(flat(), "toJSON", { value: (key) => void log.push(key), enumerable: false }),
  "toJSON that is no function": () => flat({ toJSON: 5 }),
  "toJSON of a class": (log) =>
    Object.assign(
      new (class {
        toJSON(key) {
          log.push(key);
          return { a: this.a };
        }
      })(),
      flat(),
    ),
  "a class": () => Object.assign(new (class Some {})(), flat()),
  "no prototype": () => Object.assign(Object.create(null), flat()),
  "another realm's": () => runInNewContext('({a: 1, b: "x", c: true})'),
  "symbols and hidden members": () => Object.defineProperty(flat({ [Symbol("s")]: 1 }), "h", { value: 1 }),
  "a function": () => flat({ b: () => 1 }),
  "a symbol": () => flat({ b: Symbol("x") }),
  "a bigint": () => flat({ b: 1n }),
  "a boxed string": () => flat({ b: new String("boxed") }),
  "a date": () => flat({ c: new Date(0) }),
  "a cycle": () => {
    const value = flat();
    value.c = value;
    return value;
  },
  "a boxed number that looks plain": () =>
    Object.assign(Object.setPrototypeOf(new Number(5), Object.prototype), flat()),
  "a boxed bigint that looks plain": () => Object.assign(Object.setPrototypeOf(Object(5n), null), flat()),
  "bytes that look plain": () => Object.assign(Object.setPrototypeOf(new ArrayBuffer(3), Object.prototype), flat()),
  "an array that looks plain": () => Object.assign(Object.setPrototypeOf([], Object.prototype), flat()),
  "a typed array that looks plain": () => Object.setPrototypeOf(new Uint8Array(3), Object.prototype),
  "raw JSON": () => (JSON.rawJSON ? JSON.rawJSON("123") : null),
  "names in another order": () => ({ c: 1, b: 2, a: 3 }),
};

for (const [what, make] of Object.entries(ODD)) {
  test(`the same bytes and the same questions: ${what}`, () => {
    for (let i = 0; i < 3; i++) {
      teach(NAMES, flat);
      assert.ok(direct(flat()));
      same(make, what);
    }
  });
}

test("a polluted Object.prototype is no part of an object", () => {
  teach(NAMES, flat);
  const polluted = (name, descriptor, makes) => {
    Object.defineProperty(Object.prototype, name, { ...descriptor, configurable: true });
    try {
      return makes.map((make) => [seen(make, written), seen(make, encodeValue)]);
    } finally {
      delete Object.prototype[name];
    }
  };
  const makes = [() => ({ a: 1, b: 2 }), () => flat(), () => Object.assign(Object.create(null), flat())];
  const cases = [
    ["c", { value: 5, enumerable: true, writable: true }],
    ["d", { value: 5, enumerable: true, writable: true }],
    ["toJSON", { value: () => "all", enumerable: false, writable: true }],
    ["b", { get: () => 7, set() {}, enumerable: true }],
  ];
  for (const [name, descriptor] of cases) {
    for (const [got, wanted] of polluted(name, descriptor, makes)) assert.deepEqual(got, wanted, name);
  }
});

test("a getter may use the store: neither write is lost in the other", async () => {
  const db = NteeDB.open(freshDir());
  teach(NAMES, flat);
  const many = Array.from({ length: 20 }, (_, i) => ({ key: `many${i}`, value: { a: i, b: "y".repeat(900), c: 0 } }));
  let got;
  const value = Object.defineProperty(flat(), "b", {
    get() {
      db.put("inner", { a: "inner".repeat(100), b: 1, c: 2 });
      db.put("large", "l".repeat(1 << 20));
      void db.putMany(many);
      got = db.getSync("inner");
      return "outer";
    },
    enumerable: true,
  });
  db.put("outer", value);
  assert.deepEqual(db.getSync("outer"), { a: 1, b: "outer", c: true });
  assert.deepEqual(got, { a: "inner".repeat(100), b: 1, c: 2 });
  assert.equal(await db.putMany([{ key: "in a batch", value }, ...many]), 21);
  assert.deepEqual(db.getSync("in a batch"), { a: 1, b: "outer", c: true });
  assert.deepEqual(await db.getMany(many.map(({ key }) => key)), many.map((item) => item.value));
  const closing = Object.defineProperty(flat(), "c", {
    get() {
      db.drop();
      return 1;
    },
    enumerable: true,
  });
  assert.throws(() => db.put("closed", closing), { code: "NTEE_CLOSED" });
});

test("an object that was written is not kept", async () => {
  let value = { kept: "k".repeat(100), b: 1 };
  teach(["kept", "b"]);
  written(value);
  const watch = new WeakRef(value);
  value = undefined;
  assert.ok(await gcUntil(() => watch.deref() === undefined));
});

test("where code cannot be made from text, all works without", async () => {
  const text = `for (let i = 0; i < 100; i++) db.put("k" + i, { i, text: "x" });
    await db.putMany([{ key: "many", value: { i: 1, text: "\\u00e9" } }]);
    console.log(JSON.stringify([db.getSync("k99"), await db.get("many"), await db.count()]));`;
  for (const execArgv of [[], ["--disallow-code-generation-from-strings"]]) {
    const { out, err } = await run(`const db = NteeDB.open(dir); ${text} db.close();`, { execArgv }).ended;
    assert.deepEqual([out, err], ['[{"i":99,"text":"x"},{"i":1,"text":"é"},101]\n', ""]);
  }
});

// ---- Generated documents ----

const ODD_NAMES = ["", "0", "7", "a b", "é", 'q"', "back\\slash", "__proto__", "toJSON", "rawJSON", "constructor", "\n"];
const TEXTS = ["", "a", "/api/v1/resource/", "trace-000123", "ü", "😀", "\ud800", '"', "\\", "\0", "\u001f", "\u007f", "\u2028"];
const NUMBERS = [0, -0, 1, -1, 1e21, 5e-324, 2 ** 53, 2 ** 53 - 1, 2 ** 53 + 2, -(2 ** 53), 2 ** 31, -(2 ** 31), NaN, 1 / 0];

function generator(next) {
  const below = (n) => Math.floor(next() * n);
  const pick = (list) => list[below(list.length)];
  const name = () => (below(12) === 0 ? pick(ODD_NAMES) : `n${below(40)}`);
  const names = () => [...new Set(Array.from({ length: 1 + below(9) }, name))];
  const pool = Array.from({ length: 24 }, names);
  const makers = Object.values(ODD);

  function string() {
    const kind = below(16);
    if (kind < 9) return pick(TEXTS.slice(0, 4)) + below(1e6);
    if (kind < 12) return pick(TEXTS) + pick(TEXTS) + below(100);
    if (kind < 14) return "long ".repeat(below(40));
    return "x".repeat(below(120)) + pick(TEXTS) + "y".repeat(below(120));
  }
  function number() {
    const kind = below(8);
    if (kind < 3) return below(1000);
    if (kind === 3) return below(2 ** 53) - 2 ** 52;
    if (kind === 4) return (next() - 0.5) * 10 ** (below(40) - 20);
    if (kind === 5) return 1.7e12 + below(1e9);
    return kind === 6 ? pick(NUMBERS) : -below(2 ** 33);
  }
  const member = () => {
    const kind = below(8);
    return kind < 4 ? string() : kind < 7 ? number() : pick([true, false, null]);
  };
  const odd = () => pick([undefined, () => 1, Symbol("x"), [1, "a"], { b: 1 }, {}, new Date(0), 1n, new Number(1)]);

  return () => {
    if (below(100) === 0) return [pick(makers), below(2 ** 30)];
    const list = below(25) === 0 ? names() : pick(pool);
    const value = below(20) === 0 ? Object.create(null) : {};
    for (const one of list)
      if (one === "__proto__") Object.defineProperty(value, one, { value: 1, enumerable: true, configurable: true, writable: true });
      else value[one] = member();
    if (below(60) === 0) value[pick(list)] = odd();
    if (below(60) === 0) delete value[pick(list)];
    if (below(60) === 0) Object.freeze(value);
    return [null, value];
  };
}

test("any document has the bytes of JSON.stringify", { timeout: 6000000 }, (t) => {
  const rounds = LONG ? 20000000 : 1000000;
  const next = random(seed(t));
  const document = generator(next);
  const request = new Request(1 << 16);
  let fast = 0;
  for (let i = 0; i < rounds; i++) {
    const [make, value] = document();
    if (make) {
      same(make, `round ${i}`);
      continue;
    }
    let wanted;
    try {
      wanted = encodeValue(value);
    } catch (error) {
      assert.throws(() => written(value), { name: error.name, message: error.message });
      continue;
    }
    const before = stringified;
    let got;
    if (i % 16 === 0) {
      got = written(value, { size: Math.floor(next() * 200), before: Math.floor(next() * 40) });
      assert.ok(got.equals(Buffer.from(wanted)), `round ${i}`);
      continue;
    }
    if (request.inputLength > 1 << 15) request.inputLength = 0;
    const start = request.inputLength + HEAD + 1;
    addValue(request, 1, "k", value, false);
    const text = request.input.utf8Slice(start, request.inputLength);
    if (text !== wanted) assert.equal(text, wanted, `round ${i}`);
    if (request.inputLength - start !== request.input.readUInt32LE(start - 5)) assert.fail(`round ${i}: length`);
    if (stringified === before) fast++;
  }
  t.diagnostic(`${fast} of ${rounds} were written without JSON.stringify`);
  assert.ok(fast > rounds / 4, `${fast} of ${rounds}`);
});
