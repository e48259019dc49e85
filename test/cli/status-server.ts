import { afterAll, beforeAll } from "vitest";
import { daemonMetrics } from "../../actuator/status/metrics.ts";
import type { NodeStatus } from "../../actuator/status/node-status.ts";
import { type StatusServer, startStatusServer } from "../../actuator/status/server.ts";
import { scratchFolder } from "../kit/scratch.ts";

/** Serves a daemon's status while the tests of a file run, and makes a directory for them. */
export function statusServer(status: () => NodeStatus): { readonly url: string; readonly scratch: string } {
  let daemon: StatusServer;
  const scratch = scratchFolder();
  beforeAll(async () => {
    const listen = { host: "127.0.0.1", port: 0 };
    const started = await startStatusServer({ listen, status, metrics: daemonMetrics(), ownNames: [] });
    if (!started.ok) throw new Error(started.error);
    daemon = started.value;
  });
  afterAll(async () => {
    await daemon.close();
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
