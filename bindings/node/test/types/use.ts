// Compiled, not run: what the types allow, and what they refuse.
import { NteeDB, NteeError } from "ntee-db";
import type { BatchOperation, DamagedPlace, Details, Difference, Entry, NteeErrorCode } from "ntee-db";
import type { Recovery, Stats, Verification } from "ntee-db";

interface User {
  name: string;
  age?: number;
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>): void => {};

export async function use(): Promise<void> {
  using db = NteeDB.open<User>("dir", {
    syncEveryWrite: true,
    useMmap: null,
    syncIntervalMs: 100,
    hintEveryN: 1000,
    readOnly: false,
    acceptDamage: true,
  });
  db.put("a", { name: "a" });
  db.put(Buffer.from("a"), { name: "a", age: 1 });
  same<boolean, ReturnType<typeof db.delete>>(true);
  const one = await db.get("a");
  same<User | null, typeof one>(true);
  const text = await db.get("a", { as: "text" });
  same<string | null, typeof text>(true);
  const bytes = db.getSync(new Uint8Array(1), { as: "buffer" });
  same<Buffer | null, typeof bytes>(true);
  const empty = await db.get("a", {});
  same<User | null, typeof empty>(true);
  const other = db.getSync<number[]>("a");
  same<number[] | null, typeof other>(true);
  const many = await db.getMany(["a", Buffer.from("b")]);
  same<(User | null)[], typeof many>(true);
  const texts = db.getManySync(["a"], { as: "text" });
  same<(string | null)[], typeof texts>(true);
  const keys = await db.prefixScan("a", { limit: 1, reverse: true, after: "b" });
  same<string[], typeof keys>(true);
  const records = await db.rangeScanRecords({ gte: "a", lt: null }, { corrupt: "skip" });
  same<Entry<User, string>[], typeof records>(true);
  const asText = await db.prefixScanRecords("", { as: "text", limit: 3 });
  same<Entry<string, string>[], typeof asText>(true);
  for await (const { key, value } of db.entries()) {
    same<string, typeof key>(true);
    same<User, typeof value>(true);
  }
  for await (const { value } of db.entries({ gt: "a" }, { as: "buffer" })) same<Buffer, typeof value>(true);
  for await (const key of db.keys("a", { reverse: true })) same<string, typeof key>(true);
  const count: number = await db.count({ lte: "z" });
  const stats: Stats = await db.stats();
  const details = await db.details();
  same<Details, typeof details>(true);
  same<"good" | "read-only" | "failed", typeof details.state>(true);
  const recovery: Recovery = details.recovery;
  const clean: boolean = recovery.clean;
  const place: DamagedPlace = details.damaged[0];
  const verified = await db.verify();
  same<Verification, typeof verified>(true);
  const difference: Difference = verified.differences[0];
  const file: string | undefined = difference.file;
  const figures: number[] = [details.records, recovery.cutBytes, place.offset, verified.count, difference.offset];
  void [clean, place.file, file, difference.message, figures];
  await db.putAsync("a", { name: String(count + stats.records) });
  const written: boolean = db.putIfAbsent("a", { name: "b" });
  const items: number = await db.putMany([{ key: "a", value: { name: "a" } }]);
  const operations: BatchOperation<User>[] = [
    { type: "put", key: "a", value: { name: "b" } },
    { type: "del", key: "c" },
  ];
  await db.batch(operations);
  const yes: boolean = (await db.has("a")) && db.hasSync("a");
  await db.sync();
  db.close();
  db.drop();
  await db.closed;
  void [written, items, yes];

  const loose = NteeDB.open("dir");
  loose.put("a", 1);
  loose.put("a", Buffer.from("x"));
  const anything = await loose.get("a");
  anything.whatever;

  const odd = NteeDB.open<unknown, string | Buffer>("dir");
  const found = await odd.prefixScan("");
  same<(string | Buffer)[], typeof found>(true);

  const walk = db.keys();
  await walk.next();
  await walk.return();
  NteeDB.destroy("dir");
  try {
    NteeDB.open("dir");
  } catch (error) {
    if (error instanceof NteeError) {
      const code: NteeErrorCode = error.code;
      const item: number | undefined = error.item ?? error.errno;
      void [code, item];
    }
  }
}

export function refused(db: NteeDB<User>): void {
  // @ts-expect-error stores come from open
  new NteeDB();
  // @ts-expect-error a key is text or bytes
  db.put(5, { name: "a" });
  // @ts-expect-error not a User
  db.put("a", { nome: "a" });
  // @ts-expect-error an unknown option
  NteeDB.open("dir", { readonly: true });
  // @ts-expect-error yes or no
  NteeDB.open("dir", { acceptDamage: "yes" });
  // @ts-expect-error not a state
  db.details().then(({ state }) => state === "broken");
  // @ts-expect-error the differences are in the answer
  db.verify().then((found) => found.length);
  // @ts-expect-error an unknown form
  db.get("a", { as: "xml" });
  // @ts-expect-error keys have no values
  db.prefixScan("", { as: "text" });
  // @ts-expect-error a prefix is needed
  db.prefixScan();
  // @ts-expect-error a range is no text
  db.rangeScan("a");
  // @ts-expect-error a deletion has no value
  db.batch([{ type: "del", key: "a", value: { name: "a" } }]);
  // @ts-expect-error getMany does not skip
  db.getMany(["a"], { corrupt: "skip" });
  // @ts-expect-error comes with a later version
  db.put("a", { name: "a" }, { index: "value" });
  // @ts-expect-error comes with a later version
  db.incr("a");
}
