/// <reference types="node" />

/** A key, or a bound of a range: text, or any bytes. */
export type Key = string | Uint8Array;

/** Keys between bounds, in byte order. Not given: open. At most one of gt and gte, and one of lt and lte. */
export interface Range {
  gt?: Key | null;
  gte?: Key | null;
  lt?: Key | null;
  lte?: Key | null;
}

/** How values come back: parsed where they are JSON (else a Buffer), as text, or as a Buffer always. */
export type As = "json" | "text" | "buffer";

export interface OpenOptions {
  /** Shares the store with other readers and writes nothing. Default: false. */
  readOnly?: boolean | null;
  /** A write survives power loss when it returns. Default: false, it survives the end of the process. */
  syncEveryWrite?: boolean | null;
  /** What is unsynced is synced at least so often, in milliseconds: 1 to 60,000. Default: 100. */
  syncIntervalMs?: number | null;
  /**
   * The index is saved beside the log after so many writes, so that opening after a crash has at most those to read
   * again, and those of the last syncIntervalMs; from 1 on. Without it the index is saved at close and in pauses.
   * Losing or damaging what was saved only makes the next opening slower.
   */
  hintEveryN?: number | null;
  /** Maps the log into memory. Default: true. */
  useMmap?: boolean | null;
  /**
   * Gives up what was lost in damage that no key can be named for: older records, which may be out of date
   * for it, are read again. From then on, or, where this handle is read-only, by it alone. Default: false.
   */
  acceptDamage?: boolean | null;
}

export interface ReadOptions {
  /** Default: "json". */
  as?: As | null;
}

export interface ScanOptions {
  /** At most so many entries; 0 gives nothing. Default: no limit. */
  limit?: number | null;
  /** Descending. Default: false. */
  reverse?: boolean | null;
  /** Goes on behind this key; with reverse below it. */
  after?: Key | null;
}

export interface RecordScanOptions extends ScanOptions, ReadOptions {
  /** Leaves out records that are damaged, instead of failing. */
  corrupt?: "skip" | null;
}

type Text<O> = O & { as: "text" };
type Bytes<O> = O & { as: "buffer" };
type Json<O> = O & { as?: "json" | null };

export interface Entry<V, K = string> {
  key: K;
  value: V;
}

export interface PutItem<V = any> {
  key: Key;
  value: V;
}

export type BatchOperation<V = any> = { type: "put"; key: Key; value: V } | { type: "del"; key: Key };

export interface Stats {
  /** Live keys. */
  records: number;
  /** Length of the log, dead records included. */
  mainBytes: number;
  /** 0 until large values have a file of their own. */
  blobBytes: number;
}

/** All that is known about an open store without reading it. Numbers above 2^53 lose precision. */
export interface Details extends Stats {
  /** Number of the newest write; every put and delete gets one. */
  sequence: number;
  /** Writes up to this number survive power loss. */
  durableSeq: number;
  /** The longest that a write has waited so far for the end of its sync, in milliseconds. */
  syncLagMs: number;
  /** "failed": a sync, or a write that could not be undone, has failed. Writes are refused, reads go on. */
  state: "good" | "read-only" | "failed";
  /** Scans that keep an older state of the store in memory. */
  openScans: number;
  /** What opening the store found. */
  recovery: Recovery;
  /** Places that are not what was written, as opening found them. It looks at few values: verify at all. */
  damaged: DamagedPlace[];
  /**
   * Records in the first so many bytes of the log may be out of date, since one behind them is lost: reading
   * them is NTEE_CORRUPT. 0: none.
   */
  suspectBytes: number;
}

export interface Recovery {
  /** Whether the store had been closed; false for a new one. */
  clean: boolean;
  /** Writes that were read from the log. */
  replayed: number;
  /** Bytes of writes that a crash had left torn, cut off. */
  cutBytes: number;
  /** Those of them in which later writes were whole: they are kept in salvage files. */
  salvagedBytes: number;
}

export interface DamagedPlace {
  /** Name of a file in the store's directory. */
  file: string;
  offset: number;
  length: number;
}

/** What verify found. */
export interface Verification {
  /** The first 1,000 of them. */
  differences: Difference[];
  /** The number of all. One damaged place may give several. */
  count: number;
}

/** Bytes that are not what was written. */
export interface Difference {
  /** Name of a file in the store's directory. */
  file?: string;
  offset: number;
  /** Says what it is, and names the key where that is known. */
  message: string;
}

/** A walk that fetches pages as it goes. It ends by itself, by return(), or with the store. */
export interface ScanIterator<T> extends AsyncIterableIterator<T> {
  next(): Promise<IteratorResult<T, undefined>>;
  return(value?: any): Promise<IteratorResult<T, any>>;
  throw(error?: any): Promise<IteratorResult<T, any>>;
  [Symbol.asyncIterator](): ScanIterator<T>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type NteeErrorCode =
  | "NTEE_NOT_FOUND"
  | "NTEE_INVALID"
  | "NTEE_TOO_LARGE"
  | "NTEE_LOCKED"
  | "NTEE_IO"
  | "NTEE_FULL"
  | "NTEE_CORRUPT"
  | "NTEE_VERSION"
  | "NTEE_NOMEM"
  | "NTEE_TYPE"
  | "NTEE_OVERFLOW"
  | "NTEE_EXISTS"
  | "NTEE_CLOSED"
  | "NTEE_READONLY"
  | "NTEE_FORKED"
  | "NTEE_CANCELLED";

/** What every failure is, misuse of arguments (NTEE_INVALID, NTEE_TOO_LARGE) included. */
export class NteeError extends Error {
  constructor(code: NteeErrorCode, message: string, detail?: { item?: number; errno?: number });
  readonly name: "NteeError";
  readonly code: NteeErrorCode;
  /** Position in the list of items or keys that was passed. */
  readonly item?: number;
  /** The operating system's error number. */
  readonly errno?: number;
}

/**
 * An open store.
 * @typeParam V what its values are when they come back
 * @typeParam K what its keys are when they come back: `string | Buffer` where some are not valid UTF-8
 */
export class NteeDB<V = any, K extends string | Buffer = string> {
  private constructor();

  /** Opens the store in a directory, which is created where it is missing. */
  static open<V = any, K extends string | Buffer = string>(
    dir: string,
    options?: OpenOptions | null,
  ): NteeDB<V, K>;
  /** Deletes a store that nobody has open. A directory that is not there is left alone. */
  static destroy(dir: string): void;

  /** Writes a record. */
  put(key: Key, value: V): void;
  /** The same without holding the event loop during a sync. */
  putAsync(key: Key, value: V): Promise<void>;
  /** Writes a record where the key is missing; whether it did. */
  putIfAbsent(key: Key, value: V): boolean;
  /** Writes records, all or none; the number of items. */
  putMany(items: readonly PutItem<V>[]): Promise<number>;
  /** Writes and deletes, all or none; the number of operations. */
  batch(operations: readonly BatchOperation<V>[]): Promise<number>;
  /** Removes a key; whether it was there. */
  delete(key: Key): boolean;

  get(key: Key, options: Text<ReadOptions>): Promise<string | null>;
  get(key: Key, options: Bytes<ReadOptions>): Promise<Buffer | null>;
  get<T = V>(key: Key, options?: Json<ReadOptions> | null): Promise<T | null>;
  getSync(key: Key, options: Text<ReadOptions>): string | null;
  getSync(key: Key, options: Bytes<ReadOptions>): Buffer | null;
  getSync<T = V>(key: Key, options?: Json<ReadOptions> | null): T | null;

  getMany(keys: readonly Key[], options: Text<ReadOptions>): Promise<(string | null)[]>;
  getMany(keys: readonly Key[], options: Bytes<ReadOptions>): Promise<(Buffer | null)[]>;
  getMany<T = V>(keys: readonly Key[], options?: Json<ReadOptions> | null): Promise<(T | null)[]>;
  getManySync(keys: readonly Key[], options: Text<ReadOptions>): (string | null)[];
  getManySync(keys: readonly Key[], options: Bytes<ReadOptions>): (Buffer | null)[];
  getManySync<T = V>(keys: readonly Key[], options?: Json<ReadOptions> | null): (T | null)[];

  has(key: Key): Promise<boolean>;
  hasSync(key: Key): boolean;

  /** The keys that begin with a prefix; "": all. */
  prefixScan(prefix: Key, options?: ScanOptions | null): Promise<K[]>;
  /** The keys in a range. */
  rangeScan(range: Range, options?: ScanOptions | null): Promise<K[]>;

  prefixScanRecords(prefix: Key, options: Text<RecordScanOptions>): Promise<Entry<string, K>[]>;
  prefixScanRecords(prefix: Key, options: Bytes<RecordScanOptions>): Promise<Entry<Buffer, K>[]>;
  prefixScanRecords<T = V>(prefix: Key, options?: Json<RecordScanOptions> | null): Promise<Entry<T, K>[]>;
  rangeScanRecords(range: Range, options: Text<RecordScanOptions>): Promise<Entry<string, K>[]>;
  rangeScanRecords(range: Range, options: Bytes<RecordScanOptions>): Promise<Entry<Buffer, K>[]>;
  rangeScanRecords<T = V>(range: Range, options?: Json<RecordScanOptions> | null): Promise<Entry<T, K>[]>;

  /** Walks through records, page by page, all from one state of the store. */
  entries(
    where: Key | Range | null | undefined,
    options: Text<RecordScanOptions>,
  ): ScanIterator<Entry<string, K>>;
  entries(
    where: Key | Range | null | undefined,
    options: Bytes<RecordScanOptions>,
  ): ScanIterator<Entry<Buffer, K>>;
  entries<T = V>(
    where?: Key | Range | null,
    options?: Json<RecordScanOptions> | null,
  ): ScanIterator<Entry<T, K>>;
  /** Walks through keys. */
  keys(where?: Key | Range | null, options?: ScanOptions | null): ScanIterator<K>;

  /** The number of keys that begin with a prefix, or are in a range; not given: of all. */
  count(where?: Key | Range | null): Promise<number>;
  stats(): Promise<Stats>;
  /** What is known about the store without reading it: its state, and what opening it found. */
  details(): Promise<Details>;
  /** Reads every byte of the log, and each record that the index leads to, while reads and writes go on. */
  verify(): Promise<Verification>;
  /** Resolves when everything written so far survives power loss. */
  sync(): Promise<void>;

  /** Closes the store: at once, or, where calls are in flight, when the last one is done. */
  close(): void;
  /** Closes the store and deletes it. */
  drop(): void;
  /** Resolves when the store is closed and its lock is free. */
  readonly closed: Promise<void>;
  [Symbol.dispose](): void;
}
