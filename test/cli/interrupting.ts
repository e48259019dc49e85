import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { vi } from "vitest";
import { PATIENT } from "../patient.ts";

/** Forwards requests to an API, and sends a signal when the `nth` request arrives. */
export async function interrupting(
  api: string,
  nth: number,
  signal: () => unknown,
): Promise<{ url: string; close: () => Promise<void> }> {
  let asked = 0;
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (++asked === nth) await signal();
    const headers = { "content-type": "application/json" };
    const answer = await fetch(api + request.url, { method: "POST", headers, body: Buffer.concat(parts) });
    response.writeHead(answer.status, headers);
    response.end(await answer.text());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${port}`, close };
}

/**
 * Sends SIGINT and waits until the process has handled it and sleeps again; otherwise it would read an answer that has
 * arrived meanwhile first.
 */
export async function interrupted(pid: number): Promise<void> {
  const status = (): string => readFileSync(`/proc/${pid}/status`, "utf8");
  process.kill(pid, "SIGINT");
  await vi.waitUntil(() => /^ShdPnd:\s*0+$/m.test(status()), PATIENT);
  await vi.waitUntil(() => /^State:\s*S/m.test(status()), PATIENT);
}
