#!/usr/bin/env node
// Many records in one call, beside lmdb-js and better-sqlite3.

import { runBench } from "./lib/main.mjs";

await runBench("batch", ["putmany_20k"]);
