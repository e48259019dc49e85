import { connect } from "node:net";
import { onTestFinished } from "vitest";
import { createApp } from "../../api/app.ts";
import type { ApiDeps } from "../../api/dependencies.ts";
import { epochMs } from "../../api/model/units.ts";
import type { Log } from "../../api/observe/log.ts";
import { plainMetrics } from "../../api/observe/plain-metrics.ts";
import { nodeAssets, nodeBodies } from "../../api/server/assets.ts";
import { sha256 } from "../../api/server/digest.ts";
import type { RunningApi, ServeOptions } from "../../api/server.ts";
import { evaluator } from "../../api/service/evaluate.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { value } from "../contract/store-rows.ts";
import { startedApi } from "../kit/api.ts";
import { emptyHistory } from "../kit/empty-history.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { scratchFolder } from "../kit/scratch.ts";

export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}
/** A logger that keeps its lines. */
export function keptLog(): Log & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLine["level"]) => (fields: LogLine["fields"], message: string) =>
    void lines.push({ level, fields, message });
  return { lines, info: at("info"), warn: at("warn"), error: at("error") };
}

/** A data directory that is removed after the test. */
export function dataDirectory(): string {
  return scratchFolder(RAM_DISK);
}

export interface Serving {
  readonly api: RunningApi;
  readonly dataDir: string;
  readonly log: ReturnType<typeof keptLog>;
  /** A second connection to the same history. */
  readonly store: Store;
}
/** A server on a free loopback port, until the running test ends. */
export async function serving(options: Partial<ServeOptions> & { readonly dataDir?: string } = {}): Promise<Serving> {
  const dataDir = options.dataDir ?? dataDirectory();
  const log = keptLog();
  // rows of tests are old: the first sweep would take time and remove them
  const api = await startedApi({ dataDir, log, retention: { maxAgeMs: 1e15 }, ...options });
  const store = value(openNode({ file: historyFile(dataDir) }));
  onTestFinished(async () => {
    await api.close();
    await store.close();
  });
  return { api, dataDir, log, store };
}

/** The app with the test's own dependencies; dependencies that are not given are real, with the history in memory. */
export function appOver(ports: Partial<ApiDeps> = {}) {
  const store = ports.store ?? emptyHistory();
  const log = keptLog();
  const app = createApp({
    store,
    now: () => epochMs(Date.now()),
    log,
    metrics: plainMetrics(),
    bodies: nodeBodies,
    evaluate: evaluator(sha256),
    sha256,
    auth: { required: false, hosts: null },
    limits: { bodyBytes: 8 * 1024 * 1024, concurrency: 64 },
    recordDecisions: true,
    assets: nodeAssets(),
    ...ports,
  });
  return { app, log, store };
}

export const decisionRequest = (body: unknown, kind = "cgroups"): Request =>
  new Request(`http://localhost/v1/decisions/${kind}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/** Sends bytes unchanged, and returns everything that the server sends until it closes the connection. */
export function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString();
    });
    socket.on("close", () => resolve(received)).on("error", reject);
  });
}
