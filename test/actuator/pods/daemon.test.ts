import { mkdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { Journal } from "../../../actuator/apply/journal.ts";
import { redactingClient } from "../../../actuator/client/client.ts";
import { localClient } from "../../../actuator/client/local-client.ts";
import { actuatorConfig } from "../../../actuator/core/config.ts";
import { FactsStore } from "../../../actuator/core/facts-file.ts";
import type { DecisionClient } from "../../../actuator/core/interfaces.ts";
import { InterruptibleSleep, Notices } from "../../../actuator/core/notices.ts";
import { openMetrics } from "../../../actuator/daemon/open-metrics.ts";
import { PodsDaemon } from "../../../actuator/pods/daemon.ts";
import type { PodsShared } from "../../../actuator/pods/open-pods.ts";
import { noCounters } from "../../../actuator/status/counters.ts";
import { ok, type Result } from "../../../api/base/result.ts";
import { freePort } from "../../e2e/pods/port.ts";
import { podsRead } from "../../kit/manifests.ts";
import { PATIENT } from "../../patient.ts";
import { serveCri } from "../../sim/cri-server.ts";
import { FakeRuntime } from "../../sim/fake-runtime.ts";
import { machineAt } from "../../sim/machine.ts";
import { BOOT, simulated } from "../cgroups/hierarchy-kit.ts";
import { scratch } from "../manifests/scratch.ts";

const must = <T>(result: Result<T, unknown>): T => {
  if (result.ok) return result.value;
  throw new Error(String(result.error));
};

/** The daemon with cgroups in memory and its own status address; its runtime is behind a real socket, or missing. */
async function daemon(more: Partial<PodsShared> = {}) {
  const dir = scratch({});
  const port = await freePort();
  const socket = join(dir, "runtime.sock");
  const config = must(
    actuatorConfig({
      mode: "enforce",
      pods: "enforce",
      nodeName: "n1",
      manifests: dir,
      stateDir: join(dir, "state"),
      podsDirectory: join(dir, "pods"),
      runtimeEndpoint: `unix://${socket}`,
      statusListen: `127.0.0.1:${port}`,
      // a test that relies on the next periodic sync times out
      syncSeconds: 3600,
    }),
  );
  const messages: string[] = [];
  const onProblem = ({ message }: { readonly message: string }): void => void messages.push(message);
  const notices = new Notices(onProblem);
  const stopping = new AbortController();
  const pace = new InterruptibleSleep(stopping.signal);
  const opened = await PodsDaemon.open(
    {
      client: localClient(new FactsStore(config.stateDir, (message) => onProblem({ message }))),
      readPods: async () => podsRead(),
      readConfiguration: async () => ok({ failCgroupV1: false }),
      observeMachine: () => machineAt(new Date().toISOString(), BOOT.bootId, 1),
      hierarchy: simulated(1).hierarchy,
      journal: must(Journal.open(join(config.stateDir, "journal.jsonl"), BOOT.bootId)),
      ...more,
    },
    { config, onPass() {}, onProblem },
    { pace, notices, metrics: await openMetrics(config) },
  );
  const running = must(opened).runUntil(stopping.signal);
  onTestFinished(async () => {
    stopping.abort();
    await running;
  });
  const metrics = async (): Promise<readonly string[]> => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
    return (await answer.text()).split("\n");
  };
  /** The answer of the daemon's status address; undefined: no server listens there. */
  const readiness = async (): Promise<string | undefined> => {
    try {
      return await (await fetch(`http://127.0.0.1:${port}/readyz`)).text();
    } catch {
      return undefined;
    }
  };
  const status = () => must(opened).status();
  const turns = (count: number) => vi.waitUntil(() => (status().pass?.sequence ?? 0) >= count, PATIENT);
  return { socket, pace, notices, messages, metrics, readiness, status, turns };
}

const NO_PODS = podsRead();
test("the status server answers only after the first pass, since every pod would seem not ready before", async () => {
  const read = Promise.withResolvers<typeof NO_PODS>();
  const { readiness, turns } = await daemon({ readPods: () => read.promise });
  expect(await readiness()).toBeUndefined();
  read.resolve(NO_PODS);
  await turns(1);
  const first = await vi.waitUntil(readiness, PATIENT);
  expect(JSON.parse(first)).toEqual({ ready: false, reasons: ["the container runtime does not answer"] });
});

test("readiness is answered even when the first pass hangs", async () => {
  const read = Promise.withResolvers<typeof NO_PODS>();
  const { readiness } = await daemon({ readPods: () => read.promise });
  const first = await vi.waitUntil(readiness, PATIENT);
  expect(JSON.parse(first)).toMatchObject({ reasons: ["the first pass has not ended yet", expect.any(String)] });
  read.resolve(NO_PODS);
});

test("failed runtime calls are counted by call and code, and logged once while they keep failing", async () => {
  const { pace, messages, metrics, readiness, status, turns } = await daemon();
  await turns(1);
  expect(status()).toMatchObject({ runtime: null, pass: { sequence: 1 } });
  pace.wake();
  await turns(2);
  await vi.waitUntil(readiness, PATIENT);
  const counted = await metrics();
  for (const call of ["ListPodSandbox", "ListContainers"])
    expect(counted).toContain(`nodewise_runtime_call_failures_total{call="${call}",code="UNAVAILABLE"} 2`);
  expect(counted).toContain("nodewise_runtime_up 0");
  expect(counted).toContain("nodewise_pass_duration_seconds_count 2");
  expect(messages.filter((message) => message.startsWith("ListPodSandbox: "))).toHaveLength(1);
});

test("the runtime's version is shown only while the runtime answers", async () => {
  const { socket, pace, metrics, status, turns } = await daemon();
  await turns(1);
  const server = await serveCri(new FakeRuntime(), socket);
  pace.wake();
  await turns(2);
  expect(status().runtime).toEqual({ name: "containerd", version: "1.7.0" });
  expect(await metrics()).toContain(
    'nodewise_node_info{node="n1",mode="enforce",runtime="containerd",version="1.7.0"} 1',
  );
  server.close();
  pace.wake();
  await turns(3);
  expect(status().runtime).toBeNull();
});

test("the daemon is not ready while its journal cannot be written, and ready again afterwards", async () => {
  const dir = scratch({});
  const file = join(dir, "journal.jsonl");
  const journal = must(Journal.open(file, BOOT.bootId));
  const { socket, pace, messages, readiness, status, turns } = await daemon({ journal });
  const server = await serveCri(new FakeRuntime(), socket);
  onTestFinished(() => server.close());
  pace.wake();
  await vi.waitUntil(async () => (await readiness())?.includes('"ready":true'), PATIENT);
  rmSync(file);
  mkdirSync(file);
  await vi.waitUntil(async () => (await readiness())?.includes('"ready":false'), PATIENT);
  expect(JSON.parse((await readiness()) ?? "").reasons).toEqual([
    expect.stringMatching(/^its own files cannot be written: .*journal\.jsonl: EISDIR: /),
  ]);
  expect(status().problems).toContainEqual(expect.stringMatching(/^state: .*journal\.jsonl: EISDIR: .*not ready/));
  pace.wake();
  await turns(status().pass?.sequence ?? 0);
  rmdirSync(file);
  await vi.waitUntil(async () => (await readiness())?.includes('"ready":true'), PATIENT);
  expect(messages.filter((message) => message.includes("EISDIR"))).toHaveLength(1);
});

test("an API fault stands until the API recovers; a configuration notice stands and is logged once", async () => {
  let isWrong = true;
  const own = localClient(new FactsStore(scratch({}), () => {}));
  const client: DecisionClient = {
    ...own,
    get fault() {
      return isWrong ? ({ from: "api", message: "answered 500: deciding here" } as const) : null;
    },
  };
  const configurationNotices = () => [{ from: "configuration", message: 'unknown field "x"' } as const];
  const { pace, messages, status, turns } = await daemon({
    client: redactingClient(client, noCounters),
    configurationNotices,
  });
  await turns(1);
  pace.wake();
  await turns(2);
  expect(status().problems).toEqual(
    expect.arrayContaining(["api: answered 500: deciding here", 'configuration: unknown field "x"']),
  );
  isWrong = false;
  expect(status().problems.filter((one) => one.startsWith("api: "))).toEqual([]);
  expect(messages.filter((message) => message === 'unknown field "x"')).toHaveLength(1);
});

test("a fault in reloaded settings stands across turns until the settings are accepted", async () => {
  const { pace, notices, status, turns } = await daemon();
  const ofSettings = () => status().problems.filter((one) => one.startsWith("settings: "));
  await turns(1);
  notices.ofSettings = [{ from: "settings", message: "a.yaml:5:17: intervalSecond: no such setting" }];
  pace.wake();
  await turns(2);
  expect(ofSettings()).toEqual(["settings: a.yaml:5:17: intervalSecond: no such setting"]);
  notices.ofSettings = [];
  expect(ofSettings()).toEqual([]);
});

test("before its runtime answers, a pass reports that it has compared nothing", async () => {
  const { status, turns } = await daemon();
  await turns(1);
  expect(status().pass).toMatchObject({ decidedBy: null, compared: false });
});
