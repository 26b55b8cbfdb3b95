// wire.js and slot.js against the bytes that the engine's wire.c is tested with.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Shapes } from "../lib/shapes.js";
import { Request, Slot } from "../lib/slot.js";
import * as wire from "../lib/wire.js";

const golden = JSON.parse(readFileSync(new URL("../../../tests/golden/wire.json", import.meta.url)));

const bytes = (hex) => Buffer.from(hex, "hex");
/** A string where the bytes are one, so that both ways of passing a key are seen. */
const textOf = (hex) => {
  const text = bytes(hex).toString();
  return bytes(hex).equals(Buffer.from(text)) ? text : bytes(hex);
};
const request = () => new Request(16);
const written = (made) => made.input.toString("hex", 0, made.inputLength);
const UNLIMITED = { limit: -1, reverse: false, skipCorrupt: false };

test("writes are framed as the engine reads them", () => {
  for (const { what, hex, items } of golden.writes) {
    for (const form of [bytes, textOf]) {
      const made = request();
      for (const { type, key, value } of items) wire.addWrite(made, type, form(key), form(value));
      assert.equal(written(made), hex, what);
    }
  }
});

test("a write of an object that we made says so", () => {
  for (const { what, hex, type, key, value } of golden.object_writes) {
    const made = request();
    const text = textOf(value);
    const start = wire.beginWrite(made, textOf(key), text.length);
    made.input.write(text, start, "latin1");
    wire.endWrite(made, type | wire.OBJECT, start, start + text.length);
    assert.equal(written(made), hex, what);
  }
});

test("keys are framed as the engine reads them", () => {
  for (const { what, hex, keys } of golden.keys) {
    for (const form of [bytes, textOf]) {
      const made = request();
      for (const key of keys) wire.addKey(made, form(key));
      assert.equal(written(made), hex, what);
    }
  }
  for (const { what, hex, key } of golden.single_keys) {
    const made = request();
    wire.writeKey(made, textOf(key));
    assert.equal(written(made), hex, what);
  }
});

test("scan requests are framed as the engine reads them", () => {
  let checked = 0;
  for (const { what, hex, flags, range_flags: range, limit, lower, upper, after } of golden.scans) {
    if (BigInt(limit) > BigInt(Number.MAX_SAFE_INTEGER)) continue; // JavaScript cannot ask for it
    const made = request();
    const bound = (given) => (given === null ? undefined : textOf(given));
    wire.writeScan(
      made,
      {
        lower: bound(lower),
        upper: bound(upper),
        prefix: (range & 1) > 0,
        lowerGt: (range & 2) > 0,
        upperLte: (range & 4) > 0,
      },
      {
        ...UNLIMITED,
        limit: Number(limit),
        reverse: (flags & 1) > 0,
        skipCorrupt: (flags & 4) > 0,
        after: bound(after),
      },
      (flags & 2) > 0,
    );
    assert.equal(written(made), hex, what);
    checked++;
  }
  assert.ok(checked >= 6);
  for (const { what, hex, number } of golden.scan_numbers) {
    const made = request();
    wire.writeScanNumber(made, Number(BigInt(number) & 0xffffffffn), Number(BigInt(number) >> 32n));
    assert.equal(written(made), hex, what);
  }
});

const pageOf = ({ hex, capacity, count, keys_len: keysLength, values_len: valuesLength, flags }) => {
  const memory = Buffer.alloc(capacity);
  bytes(hex).copy(memory);
  return { memory, count, keysLength, valuesLength, flags };
};
const keyOf = (hex) => textOf(hex);
const fail = (error) => {
  throw error;
};

test("pages of keys are read as the engine writes them", () => {
  for (const page of golden.key_pages) {
    assert.deepEqual(
      wire.readKeyPage(pageOf(page), []),
      page.entries.map(({ key }) => keyOf(key)),
      page.what,
    );
  }
});

/** Of a store that is closed: everything goes through JSON.parse. */
const noShapes = new Shapes({ ask: () => 13 });

test("pages of records are read as the engine writes them", () => {
  for (const page of golden.record_pages) {
    const { what, entries } = page;
    assert.deepEqual(
      wire.readRecordKeys(pageOf(page)),
      entries.map(({ key }) => keyOf(key)),
      what,
    );
    const buffers = entries.map(({ kind, value }) => (kind === 4 ? null : bytes(value)));
    assert.deepEqual(wire.readValues(pageOf(page), "buffer", fail, noShapes), buffers, what);
    const parsed = entries.map(({ kind, value }) =>
      kind === 0 ? bytes(value) : JSON.parse(bytes(value).toString()),
    );
    assert.deepEqual(wire.readValues(pageOf(page), "json", fail, noShapes), parsed, what);
    // One by one, not through one JSON.parse.
    assert.deepEqual(
      wire.readValues({ ...pageOf(page), flags: page.flags & ~4 }, "json", fail, noShapes),
      parsed,
      what,
    );
  }
});

test("replies are read as the engine writes them", () => {
  for (const reply of golden.replies) {
    const slot = new Slot(() => 0, 16, 16);
    bytes(reply.hex).copy(slot.reply);
    const want = (name, got) => {
      if (name in reply) assert.equal(String(got), String(reply[name]), `${reply.what}: ${name}`);
    };
    want("length", slot.length);
    want("needed", slot.needed);
    want("count", slot.count);
    want("keys_len", slot.keysLength);
    want("values_len", slot.valuesLength);
    want("scan", BigInt(slot.scanHigh) * 4294967296n + BigInt(slot.scanLow));
    want("kind", slot.kind);
    want("flags", slot.flags);
    want("os_errno", slot.errorErrno);
    want("item", slot.errorItem);
    want("message", slot.errorMessage);
  }
});

test("keys that are cut from one string are the right ones, whatever their lengths", () => {
  const keys = Array.from({ length: 3000 }, (_, i) => "k".repeat(i % 97) + i);
  const entry = keys.map((key) => key.length);
  const total = entry.reduce((a, b) => a + b);
  const memory = Buffer.alloc(total + 2 * keys.length + 8);
  memory.write(keys.join(""));
  const end = memory.length & ~7;
  entry.forEach((length, i) => memory.writeUInt16LE(length, end - 2 * (i + 1)));
  const page = { memory, count: keys.length, keysLength: total, valuesLength: 0, flags: 2 };
  assert.deepEqual(wire.readKeyPage(page, []), keys);
});
