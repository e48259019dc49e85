import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { newToken, webSha256 } from "../../api/http/auth/tokens.ts";
import { freePort } from "../e2e/pods/port.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { wrangler } from "../ui/worker-dev.ts";
import { node110 } from "./node110.ts";
import { Turns } from "./turns.ts";
import { cpuMsOf } from "./used.ts";

export interface WorkerFigure {
  readonly name: string;
  /** CPU time of workerd for one request: of the Worker, of the Durable Object with its database, and of HTTP. */
  readonly cpuMs: number;
}

interface Served {
  readonly url: string;
  /** An administrator's token. */
  readonly token: string;
  readonly pid: number;
  readonly close: () => Promise<void>;
}

const require = createRequire(createRequire(import.meta.url).resolve("wrangler/package.json"));
const WORKERD: string = (require("workerd") as { readonly default: string }).default;

const PLACE = { host: "127.0.0.1" } as const;

/**
 * Runs the bundle that would be deployed with one Durable Object per node, in workerd alone, with the objects on disk.
 * There is no D1 database: the caller's token is the one in the secret, and summaries for the fleet stay in the object.
 */
async function alone(holdSeconds: number): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-workerd-"));
  wrangler(["deploy", "--dry-run", "--env", "objects", "--outdir", folder]);
  mkdirSync(join(folder, "objects"));
  const { text: token } = newToken();
  const modules = readdirSync(folder).flatMap((name) => {
    if (name === "worker.js") return [];
    return /\.(?:sql|js|css)$/.test(name) ? [`(name = "./${name}", text = embed "${name}")`] : [];
  });
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "disk", disk = (path = "${join(folder, "objects")}", writable = true))],
  sockets = [(name = "http", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js"), ${modules.join(", ")}],
  compatibilityDate = "2026-06-01",
  bindings = [(name = "NODES", durableObjectNamespace = "NodeObject"), (name = "NODEWISE_HOLD_SECONDS", text = "${holdSeconds}"),
    (name = "NODEWISE_TOKEN_SHA256", text = "${await webSha256(token)}")],
  durableObjectNamespaces = [(className = "NodeObject", uniqueKey = "nodes", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
);
`;
  writeFileSync(join(folder, "config.capnp"), config);
  const port = await freePort();
  const child = spawn(WORKERD, ["serve", join(folder, "config.capnp"), "--socket-addr", `http=${PLACE.host}:${port}`], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const close = async (): Promise<void> => {
    if (child.exitCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `http://${PLACE.host}:${port}`;
  for (let left = 100; ; left--) {
    if (
      await fetch(`${url}/healthz`).then(
        (response) => response.ok,
        () => false,
      )
    )
      return { url, token, pid: child.pid as number, close };
    if (left === 0 || child.exitCode !== null) {
      await close();
      throw new Error(`workerd does not answer: ${said.slice(0, 400)}`);
    }
    await setTimeout(100);
  }
}

/** Measures the Worker with one Durable Object per node: the turns of one node, one after the other. */
export const benchWorker = async (): Promise<readonly WorkerFigure[]> => [
  ...(await benchTurns(0, "counted at once")),
  ...(await benchTurns(600, "counts wait ten minutes")),
];

async function benchTurns(holdSeconds: number, how: string): Promise<readonly WorkerFigure[]> {
  const served = await alone(holdSeconds);
  try {
    const figures: WorkerFigure[] = [];
    const add = async (name: string, times: number, work: () => Promise<unknown>) =>
      figures.push({ name: `${name}, ${how}`, cpuMs: await cpuMsOf(served.pid, times, work) });
    await add("GET /healthz", 500, async () => (await fetch(`${served.url}/healthz`)).text());
    for (const [pods, snapshot] of [
      [11, realSnapshot()],
      [110, node110()],
    ] as const) {
      const turns = new Turns(served, `bench-${pods}`, snapshot);
      await add(`${pods} pods: the whole snapshot again`, 100, turns.whole);
      await add(`${pods} pods: a turn that is refused`, 500, turns.refused);
      await add(`${pods} pods: a turn in which nothing is another`, 500, turns.quiet);
      await add(`${pods} pods: a turn with other stats`, 500, turns.measured);
      await add(`${pods} pods: a turn with another limit of a pod`, 100, turns.changed);
    }
    return figures;
  } finally {
    await served.close();
  }
}
