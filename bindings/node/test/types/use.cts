// The same by require().
import ntee = require("ntee-db");

export async function use(): Promise<string[]> {
  const db: ntee.NteeDB<{ a: number }> = ntee.NteeDB.open("dir");
  const value: { a: number } | null = db.getSync("a");
  void value;
  const error: ntee.NteeErrorCode = new ntee.NteeError("NTEE_IO", "x").code;
  void error;
  return db.prefixScan("");
}
