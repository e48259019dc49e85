import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Hono } from "hono";
import { onTestFinished } from "vitest";
import { parse } from "yaml";
import { daemonMetrics } from "../../actuator/status/metrics.ts";
import { startStatusServer } from "../../actuator/status/server.ts";
import { statusApp } from "../../api/collector/status.ts";
import { listen } from "../../api/server/listen.ts";
import { ended, printed, run, start } from "../cli/run.ts";
import { capturedSnapshot } from "../contract/captured.ts";
import { deviceRow, nodeStatus } from "../kit/node-status.ts";

export const ROOT = join(import.meta.dirname, "../..");
const DEPLOY = join(ROOT, "api/deploy");
export const textOf = (file: string): string => readFileSync(join(DEPLOY, file), "utf8");
// biome-ignore lint/suspicious/noExplicitAny: Prometheus and Grafana files, of which each test reads other fields
export type Any = any;

/** Registers a clean-up function for the end of the test. */
export type Ending = (end: () => unknown) => void;
/** The address at which one of the three programs serves its metrics. */
export interface Served {
  readonly host: string;
  readonly port: number;
}

/** The API as a process, with decisions that fill its metrics; afterwards it requires a token, which may read. */
export async function servedApi(onEnd: Ending): Promise<Served & { readonly token: string }> {
  const dataDir = mkdtempSync(join(tmpdir(), "nodewise-monitored-"));
  const child = start(["api", "--port", "0", "--data-dir", dataDir]);
  onEnd(async () => {
    const end = ended(child);
    child.kill("SIGTERM");
    await end;
    rmSync(dataDir, { recursive: true, force: true });
  });
  const [, url = "", port] = /(http:\/\/127\.0\.0\.1:(\d+))/.exec(await printed(child, /http:\/\/[\d.]+:\d+/)) ?? [];
  const pod = {
    metadata: { name: "big", namespace: "shop", uid: "uid-big" },
    spec: { containers: [{ name: "c", resources: { requests: { cpu: "64" } } }] },
  };
  const kubeletConfiguration = { evictionHard: { "memory.available": "99.9%", "nodefs.available": "1%" } };
  const asked = {
    admission: { snapshot: capturedSnapshot(), ask: { pod } },
    eviction: { snapshot: capturedSnapshot({ kubeletConfiguration }) },
    cgroups: { snapshot: {} },
  };
  for (const [kind, body] of Object.entries(asked)) {
    const sent = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const { status } = await fetch(`${url}/v1/decisions/${kind}`, sent);
    if (status !== (kind === "cgroups" ? 422 : 200)) throw new Error(`${kind}: ${status}`);
  }
  const evicted = {
    kind: "eviction",
    at: new Date().toISOString(),
    seenIn: ["event"],
    pod: { namespace: "shop", name: "big", uid: "uid-big" },
    message: "The node was low on resource: memory. ",
  };
  const posted = { method: "POST", headers: { "content-type": "application/json" } };
  const body = JSON.stringify({ outcomes: [evicted] });
  const { status } = await fetch(`${url}/v1/nodes/collected/outcomes`, { ...posted, body });
  if (status !== 201) throw new Error(`outcomes: ${status}`);
  const made = await run(["token", "create", "prometheus", "--scope", "read", "--data-dir", dataDir]);
  return { host: "127.0.0.1", port: Number(port), token: made.stdout.trim() };
}

/** Serves the metrics of a collector for three nodes. */
export async function servedCollector(onEnd: Ending): Promise<Served> {
  const counts = {
    nodes: 3,
    faultyNodes: 1,
    snapshots: 40,
    decisions: 80,
    outcomes: 5,
    lostOutcomes: 0,
    waitingOutcomes: 2,
  };
  return served(statusApp({ counts, isReady: true }), onEnd);
}

/**
 * Serves the metrics of a daemon that runs pods, at the daemons' default port, and on a loopback address that no other
 * test uses.
 */
export async function servedDaemon(onEnd: Ending): Promise<Served> {
  const metrics = daemonMetrics();
  const { counters } = metrics;
  counters.pass(12, 8);
  counters.refused("OutOfcpu");
  counters.evicted("memory.available");
  counters.probed("liveness", "success", 0.01);
  const status = () => nodeStatus({ devices: [deviceRow("vendor.example/gpu")] });
  const { pid } = process;
  const host = `127.${1 + (pid % 250)}.${1 + (Math.floor(pid / 250) % 250)}.7`;
  const started = await startStatusServer({ listen: { host, port: 10_260 }, status, metrics, ownNames: [] });
  if (!started.ok) throw new Error(started.error);
  onEnd(() => started.value.close());
  return { host, port: 10_260 };
}

async function served(app: Hono, onEnd: Ending): Promise<Served> {
  const listening = await listen(app, { host: "127.0.0.1", port: 0 });
  if (!listening.ok) throw new Error(listening.error);
  const { host, port, close } = listening.value;
  onEnd(() => close(0));
  return { host, port };
}

/** The metrics of one program, in the form that Prometheus requests. */
export async function metricsOf({ host, port, token }: Served & { readonly token?: string }): Promise<string> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`http://${host}:${port}/metrics`, { headers });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.text();
}

/** The names that a query can use for a metrics text, and those of them that have samples in it. */
export function namesIn(text: string): { readonly all: ReadonlySet<string>; readonly sampled: ReadonlySet<string> } {
  const all = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].flatMap(([, name = "", type = ""]) =>
    type === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name],
  );
  return { all: new Set(all), sampled: new Set(Array.from(text.matchAll(/^(\w+)[{ ]/gm), ([, name = ""]) => name)) };
}

const WORDS = new Set("and or unless by without on ignoring group_left group_right offset bool".split(" "));
/** The metrics that a PromQL expression uses. */
export function metricsAsked(expr: string): readonly string[] {
  const bare = expr
    .replace(/"(?:[^"\\]|\\.)*"/g, "")
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, " ")
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, " ")
    .replace(/\boffset\s+\w+/g, " ");
  const names = bare.matchAll(/(?<![\w:.])([a-zA-Z_:][\w:]*)(?!\w|\s*\()/g);
  return [...new Set(Array.from(names, ([, name = ""]) => name).filter((name) => !WORDS.has(name)))];
}

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}
export const RULES: readonly Rule[] = parse(textOf("prometheus/rules.yaml")).groups.flatMap(
  (group: Any) => group.rules,
);
export const ALERTS = RULES.filter(({ alert }) => alert !== undefined);

export interface Query {
  readonly panel: string;
  readonly expr: string;
}
export const DASHBOARD: Any = JSON.parse(textOf("grafana/nodewise.json"));
/** The dashboard's queries as Grafana sends them, with the default value of every variable. */
export const QUERIES: readonly Query[] = DASHBOARD.panels.flatMap(({ title, targets = [] }: Any) =>
  targets.map(({ expr }: Any) => ({ panel: title, expr: filledIn(expr) })),
);
function filledIn(expr: string): string {
  const values: Readonly<Record<string, string>> = { node: ".*", instance: ".*", __rate_interval: "1m", __range: "6h" };
  return expr.replace(/\$(\w+)/g, (text, name: string) => values[name] ?? text);
}

/**
 * The scrape configuration with the pods as static targets. Debian's build of Prometheus cannot discover them in a
 * cluster.
 */
export function scraping(
  targets: Readonly<Record<string, Served & { readonly labels: Readonly<Record<string, string>> }>>,
): Any {
  const configuration = parse(textOf("prometheus/prometheus.yaml"));
  for (const job of configuration.scrape_configs) {
    delete job.kubernetes_sd_configs;
    const { host, port, labels } = targets[job.job_name] as (typeof targets)[string];
    job.static_configs = [
      {
        targets: [`${host}:${port}`],
        labels: Object.fromEntries(
          Object.entries({ pod_ip: host, ...labels }).map(([name, value]) => [`__meta_kubernetes_${name}`, value]),
        ),
      },
    ];
  }
  return configuration;
}

/** Starts a Prometheus with this configuration; returns a function that calls its HTTP API. */
export async function prometheus(directory: string, configuration: string): Promise<(path: string) => Promise<Any>> {
  const file = join(directory, "prometheus.yaml");
  writeFileSync(file, configuration);
  const child = spawn("prometheus", [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(directory, "tsdb")}`,
    "--web.listen-address=127.0.0.1:0",
  ]);
  onTestFinished(async () => {
    const end = ended(child);
    child.kill("SIGTERM");
    await end;
  });
  const text = await printed(child, /msg="Listening on" address=\S+/, "stderr");
  const address = /msg="Listening on" address=(\S+)/.exec(text)?.[1];
  return async (path) => {
    const response = await fetch(`http://${address}/api/v1/${path}`);
    const { status, data, error } = (await response.json()) as Any;
    if (status !== "success") throw new Error(`${path}: ${error}`);
    return data;
  };
}
