import { startApi } from "../../api/server.ts";

/** A server in its own process: `node child.ts DATA_DIR` prints its URL, and serves until the process ends. */
const api = await startApi({ port: 0, dataDir: process.argv[2] ?? "" });
if (!api.ok) throw new Error(api.error.message);
console.log(api.value.url);
