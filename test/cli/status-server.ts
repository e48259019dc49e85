import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { daemonMetrics } from "../../actuator/status/metrics.ts";
import type { NodeStatus } from "../../actuator/status/node-status.ts";
import { type StatusServer, startStatusServer } from "../../actuator/status/server.ts";

/** A daemon's answers on its address while a file's tests run, and a directory of theirs. */
export function statusServer(status: () => NodeStatus): { readonly url: string; readonly scratch: string } {
  let daemon: StatusServer;
  let scratch: string;
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), "nodewise-status-"));
    const listen = { host: "127.0.0.1", port: 0 };
    const started = await startStatusServer({ listen, status, metrics: daemonMetrics(), ownNames: [] });
    if (!started.ok) throw new Error(started.error);
    daemon = started.value;
  });
  afterAll(async () => {
    await daemon.close();
    rmSync(scratch, { recursive: true });
  });
  return {
    get url() {
      return daemon.url;
    },
    get scratch() {
      return scratch;
    },
  };
}
