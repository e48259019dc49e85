import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ProbeHistoryEntry } from "../../../actuator/probes/engine/history-entry.ts";
import type { NodeStatus } from "../../../actuator/status/node-status.ts";
import type { ProbeRow } from "../../../actuator/status/probe-row.ts";
import { historyTable } from "../../../api/cli/probes/history.ts";
import { probesText } from "../../../api/cli/probes/probes.ts";
import { plainPaint } from "../../../api/text/style.ts";
import { podManifest } from "../../kit/manifests.ts";
import { AT, earlier, nodeStatus } from "../../kit/node-status.ts";
import { run } from "../run.ts";
import { statusServer } from "../status-server.ts";

const BAD = "\u001b[2J\u202e";
const row = (more: Partial<ProbeRow>): ProbeRow => ({
  ...{ namespace: "shop", pod: "web-0", uid: "uid-web", container: "app", type: "liveness", handler: "http" },
  ...{ periodSeconds: 10, timeoutSeconds: 1, result: "Success", since: earlier(3_700), activity: "waiting" },
  ...{ attempts: 370, failures: 0, tookMs: 2.4, output: "", lastAt: earlier(4), nextAt: null },
  ...more,
});
const ROWS = [
  row({ type: "startup", activity: "done", attempts: 3, since: earlier(3_720), lastAt: earlier(3_720) }),
  row({}),
  row({
    ...{ type: "readiness", handler: "exec", result: "Failure", since: earlier(65), failures: 7, tookMs: 1_000 },
    output: `cannot reach the database ${BAD}\n\nsecond line`,
  }),
  row({ namespace: "ml", pod: "train", uid: "uid-train", container: "main", result: null, since: null, attempts: 0 }),
];
let now: NodeStatus = nodeStatus({ probes: ROWS });
const at = (name: string): string => join(daemon.scratch, name);
const daemon = statusServer(() => now);
const ask = (...args: string[]) => run(["probes", ...args]);
async function shown(...args: string[]): Promise<string> {
  const ran = await ask(...args, "--status-url", daemon.url);
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  return ran.stdout;
}

test("nodewise probes prints a row per probe, with the output of failing ones", async () => {
  expect((await shown()).split("\n").slice(2)).toEqual([
    "POD         CONTAINER  PROBE      BY    EVERY  RESULT    FOR  FAILED  ATTEMPTS  TOOK  LAST  NOW",
    "shop/web-0  app        startup    http    10s  Success  1h2m                 3   2ms  1h2m  on hold until a new container",
    "                       liveness   http    10s  Success  1h1m               370   2ms    4s",
    "                       readiness  exec    10s  Failure  1m5s       7       370    1s    4s",
    "  cannot reach the database ␛[2J\\u202e",
    "  second line",
    "ml/train    main       liveness   http    10s                                0   2ms    4s",
    "",
    "4 probes, 2 without success",
    "",
  ]);
});

test("a result without an attempt is shown as not yet, also for a restarted container", () => {
  const terminal = { columns: 200, paint: plainPaint, write: () => {}, warn: () => {} };
  const ago = (seconds: number): string => new Date(Date.parse(AT) - seconds * 1000).toISOString();
  const result = (since: string, lastAt: string | null): string => {
    const live = row({ type: "liveness", result: "Success", since, lastAt, timeoutSeconds: 1 });
    return /not yet|Success/.exec(probesText([live], AT, terminal))?.[0] ?? "";
  };
  expect(result(ago(3), null)).toBe("not yet");
  expect(result(ago(3), ago(20))).toBe("not yet");
  expect(result(ago(3), ago(3.5))).toBe("Success");
  expect(result(ago(300), ago(2))).toBe("Success");
});

test("nodewise probes filters by namespace and failing probes, and prints data", async () => {
  const failing = JSON.parse(await shown("--failing", "-n", "shop", "-o", "json"));
  expect(failing).toEqual({ at: AT, nodeName: "n1", probes: [ROWS[2]] });
  now = nodeStatus();
  expect(await shown()).toMatch(/This daemon probes nothing: with `pods: enforce`/);
  expect(JSON.parse(await shown("-o", "json")).probes).toBeNull();
  now = nodeStatus({ probes: [] });
  expect(await shown()).toMatch(/no such probe/);
  now = nodeStatus({ probes: ROWS });
});

test.each([200, 100, 80])("the probe tables keep within %d columns", (columns) => {
  const terminal = { columns, paint: plainPaint, write: () => {}, warn: () => {} };
  const long = row({ pod: "a-very-long-name-of-a-pod-that-somebody-made-up", output: "x".repeat(500) });
  const lines = probesText([long, ...ROWS], AT, terminal).split("\n");
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
  const written = historyTable(ENTRIES, terminal).split("\n");
  expect(Math.max(...written.map((line) => line.length))).toBeLessThanOrEqual(columns);
});

const named = { pod: "shop/web-0", podUid: "uid-web", container: "app", type: "liveness" } as const;
const second = (i: number): string => `2026-11-22T12:00:0${i}.000Z`;
const ENTRIES: readonly ProbeHistoryEntry[] = [
  { at: second(0), ...named, kind: "run", outcome: "success", times: 120 },
  {
    ...{ at: second(1), ...named, kind: "result", containerId: "id-1", from: "Success", to: "Failure" },
    ...{ output: `refused ${BAD}\nmore`, quirk: "counters-carry-over" },
  },
  { at: second(2), ...named, pod: "ml/train", kind: "overdue", seconds: 1.25 },
  {
    ...{ at: second(3), kind: "probe-guard", held: ["shop/web-0/app"], holding: 1 },
    ...{ released: [{ container: "ml/train/main", why: "recovered" }], why: "liveness probes of 3 unrelated groups" },
  },
  { at: second(4), kind: "omitted", count: 12 },
  { at: second(5), ...named, kind: "first", containerId: "id-2", outcome: "failure", output: `refused ${BAD}\nmore` },
  { at: second(6), ...named, kind: "run", outcome: "failure", times: 3, next: "hang" },
  {
    ...{ at: second(7), kind: "probe-guard", held: [], holding: 3, released: [], why: "liveness probes" },
    killedBefore: ["shop/web-1/app", "shop/web-2/app"],
  },
];

test("probes history prints newest first, filters by pod, and prints data", async () => {
  mkdirSync(at("state"));
  writeFileSync(at("state/probe-history.jsonl"), ENTRIES.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const place = ["history", "--state-dir", at("state")];
  const ran = await ask(...place);
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  expect(ran.stdout.split("\n").map((line) => line.replace(/ {2,}/g, "  "))).toEqual([
    "AT  POD  CONTAINER  PROBE  WHAT",
    `${second(7)}  the guard holds 3 kills`,
    "  liveness probes",
    "  restarted before: shop/web-1/app shop/web-2/app",
    `${second(6)}  shop/web-0  app  liveness  3 attempts in a row: failure, then a body that never ends`,
    `${second(5)}  shop/web-0  app  liveness  nothing -> failure, the first attempt`,
    "  refused ␛[2J\\u202e",
    `${second(4)}  12 more in this second`,
    `${second(3)}  the guard holds 1 kill`,
    "  liveness probes of 3 unrelated groups",
    "  held: shop/web-0/app",
    "  released: ml/train/main: recovered",
    `${second(2)}  ml/train  app  liveness  waited 1.25 s for other execs`,
    `${second(1)}  shop/web-0  app  liveness  Success -> Failure`,
    "  refused ␛[2J\\u202e",
    "  the kubelet's quirk: counters-carry-over",
    `${second(0)}  shop/web-0  app  liveness  120 attempts in a row: success, then another`,
    "",
  ]);
  const { stdout } = await ask(...place, "--pod", "shop/web-0", "--limit", "4", "-o", "json");
  expect(JSON.parse(stdout)).toEqual({ stateDir: at("state"), entries: [6, 5, 3, 1].map((i) => ENTRIES[i]) });
  expect((await ask("history", "--state-dir", at("none"))).stdout).toBe(
    `nothing of probes is recorded in ${at("none")}\n`,
  );
  writeFileSync(at("file"), "");
  const broken = await ask("history", "--state-dir", at("file"));
  expect([broken.code, broken.stderr]).toEqual([4, expect.stringMatching(/probe history .*: ENOTDIR/)]);
});

const POD = (name: string, probes: object): string =>
  JSON.stringify(podManifest(name, { spec: { containers: [{ name: "c", image: "app:1", ...probes }] } }));

test("probes plan works for a directory of manifests, reports faulty ones, and works for the daemon", async () => {
  mkdirSync(at("manifests"));
  const http = { httpGet: { port: 80 }, periodSeconds: 1 };
  const exec = { exec: { command: ["true"] }, timeoutSeconds: 5 };
  writeFileSync(at("manifests/a.json"), POD("a", { livenessProbe: http, readinessProbe: http }));
  writeFileSync(at("manifests/b.json"), POD("b", { livenessProbe: exec, startupProbe: { grpc: { port: 9 } } }));
  const { code, stdout } = await ask("plan", at("manifests"), "--exec-ms", "500");
  expect(code).toBe(0);
  expect(stdout.split("\n")).toEqual([
    "HANDLER  ATTEMPTS/S",
    "exec            0.1",
    "http              2",
    "grpc            0.1",
    "all             2.2",
    "",
    "4 probes",
    expect.stringMatching(/^at worst [12] begin within 100 ms when they are spread, 4 when they are not spread$/),
    "execs at the same time: 0.05 on the average, 0.5 if each lasts until its timeout",
    "",
  ]);
  const data = await ask("plan", at("manifests/a.json"), "-o", "json");
  expect(JSON.parse(data.stdout)).toMatchObject({ probes: 2, perSecond: { http: 2, exec: 0 } });
  writeFileSync(at("manifests/c.json"), POD("c", { livenessProbe: { ...http, exec: { command: ["true"] } } }));
  const wrong = await ask("plan", at("manifests"));
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    expect.stringMatching(
      /c\.json: pod\.spec\.containers\[0\]\.livenessProbe\.\w+: may not specify more than 1 handler/,
    ),
  ]);
  const live = JSON.parse(await shown("plan", "-o", "json"));
  // the exec took 1 s of its 10 s period
  expect(live).toMatchObject({ probes: 4, execsAtOnce: { expected: 0.1, hanging: 0.1 } });
  const away = await ask("plan", "--status-url", "http://127.0.0.1:1");
  expect([away.code, away.stderr]).toEqual([4, expect.stringContaining("does not answer")]);
});
