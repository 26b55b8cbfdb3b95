// Lists the calls that record.mjs left behind: all of them, the newest first, then those of one path.
import { NteeDB } from "ntee-db";

const db = NteeDB.open(process.argv[2], { readOnly: true });
const line = ({ value: call }) => `  ${call.at}  ${call.status}  ${call.method} ${call.path}  ${call.ms} ms`;

const all = await db.prefixScanRecords("call:", { reverse: true });
console.log(`${all.length} calls, the newest first:`);
for (const record of all) console.log(line(record));

const users = await db.prefixScanRecords("path:/users#");
console.log(`${users.length} of them to /users, the oldest first:`);
for (const record of users) console.log(line(record));

db.close();
