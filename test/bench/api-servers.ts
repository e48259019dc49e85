import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApi } from "../../api/server.ts";

/**
 * A server process: `node api-servers.ts ours|bare` serves on a free loopback port, prints the port, and exits when its
 * stdin closes.
 */

/** Only reads and parses the request body. */
function bare(): void {
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { snapshot: { sequence: number } };
      const text = JSON.stringify({ sequence: body.snapshot.sequence });
      outgoing.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
      outgoing.end(text);
    });
  });
  server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
  process.stdin.resume().on("end", () => process.exit(0));
}

async function ours(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  const api = await startApi({
    port: 0,
    dataDir,
    ...(process.argv[3] === undefined ? {} : { threads: Number(process.argv[3]) }),
  });
  if (!api.ok) throw new Error(api.error.message);
  console.log(api.value.port);
  process.stdin.resume().on("end", async () => {
    await api.value.close();
    rmSync(dataDir, { recursive: true });
    process.exit(0);
  });
}

if (process.argv[2] === "bare") bare();
else await ours();
