// Makes HTTP calls to a server of its own on loopback and records each in a store.
// It exits right after the last put: nothing is flushed, awaited or closed.
import { createServer } from "node:http";
import { NteeDB } from "ntee-db";

const PATHS = ["/users", "/users/7", "/orders", "/users", "/health", "/orders/12", "/missing", "/users"];

const server = createServer((request, response) => {
  const found = request.url !== "/missing";
  response.writeHead(found ? 200 : 404, { "content-type": "application/json" });
  response.end(JSON.stringify({ path: request.url, found }));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const base = `http://127.0.0.1:${server.address().port}`;

const db = NteeDB.open(process.argv[2]);
let number = 0;
for (const path of PATHS) {
  const started = performance.now();
  const response = await fetch(base + path);
  const body = await response.json();
  const call = {
    method: "GET",
    path,
    status: response.status,
    body,
    ms: Math.round((performance.now() - started) * 10) / 10,
    at: new Date().toISOString(),
  };
  // Keys sort as bytes do, so a time and a number of fixed width make them sort by age.
  const when = `${call.at}#${String(++number).padStart(6, "0")}`;
  db.put(`path:${path}#${when}`, call);
  db.put(`call:${when}`, call); // when put returns, the record survives the end of this process
}
process.exit(0);
