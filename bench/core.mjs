#!/usr/bin/env node
// Single records, one batch and prefix scans, beside lmdb-js and better-sqlite3.

import { runBench } from "./lib/main.mjs";

await runBench("core", [
  "get",
  "get_sync",
  "exists",
  "put_fast",
  "put_sync_each",
  "batch_20k",
  "put_hint5",
  "prefix_keys_20k",
  "prefix_records_20k",
]);
