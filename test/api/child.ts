import { startApi } from "../../api/server.ts";

/** A server in a process of its own: `node child.ts DATA_DIR` prints its URL, and serves until it is ended. */
const api = await startApi({ port: 0, dataDir: process.argv[2] ?? "" });
if (!api.ok) throw new Error(api.error.message);
console.log(api.value.url);
