import { describe, expect, test } from "vitest";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { decodeAsk } from "../../api/model/asks.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { PodResize, ResizeDecision } from "../../api/model/resize.ts";
import { container, running } from "../kit/containers.ts";
import { podOf } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";

const SIZE = { cpu: "4", memory: "8Gi", pods: "110" };
const pod = (name: string, requests: Json, limits: Json = {}, more: Json = {}, ofContainer: Json = {}): Json => ({
  ...podOf([{ ...container("app", requests, limits), ...ofContainer }], more),
  metadata: { name, namespace: "shop", uid: name },
  status: { phase: "Running", containerStatuses: [running("app", `id-${name}`)] },
});
const on = (pods: readonly Json[], kubelet = "v1.36.3", more: Json = {}): Json => ({
  node: {
    metadata: { name: "n" },
    status: { capacity: SIZE, allocatable: SIZE, nodeInfo: { kubeletVersion: kubelet } },
  },
  cgroup: { version: 2, driver: "cgroupfs" },
  pods,
  ...more,
});
function decide(snapshot: Json, ask: Json): ResizeDecision {
  const [decoded, asked] = [decodeSnapshot(snapshot), decodeAsk("resize", ask)];
  if (!decoded.ok || !asked.ok) throw new Error(JSON.stringify(decoded.ok ? asked : decoded));
  const answer = decideKind("resize", { snapshot: decoded.value, facts: {}, ask: asked.value, explain: "off" });
  if (!answer.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  return answer.value.decision as ResizeDecision;
}
const one = (snapshot: Json, ask: Json): PodResize => decide(snapshot, ask).resizes.at(-1) as PodResize;
const WEB = { pod: "shop/web" };
const web = pod("web", { cpu: "1", memory: "512Mi" }, { cpu: "2", memory: "1Gi" });

describe("what is thought of", () => {
  test("a limit keeps its ratio to its request, by what is asked for and by an autoscaler's recommendation", () => {
    const changes = [
      { container: "app", list: "requests", resource: "cpu", from: "1", to: "1500m" },
      { container: "app", list: "limits", resource: "cpu", from: "2", to: "3" },
    ];
    expect(one(on([web]), { ...WEB, to: { cpu: "1500m" } })).toMatchObject({ status: "InProgress", changes });
    const recommendation = { containerRecommendations: [{ containerName: "app", target: { cpu: "1500m" } }] };
    expect(one(on([web]), { ...WEB, recommendation })).toMatchObject({ status: "InProgress", changes });
  });
  test("a state with which no kubelet starts is told, in its words", () => {
    const cpu_manager_state = { policyName: "static", defaultCpuSet: "0,2", entries: {} };
    const machine = { cpus: [0, 1, 2, 3].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })) };
    const kubeletConfiguration = { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } };
    const snapshot = on([web], "v1.36.3", { machine, kubeletConfiguration, assignments: { cpu_manager_state } });
    const { status, message } = one(snapshot, { ...WEB, to: { cpu: "1500m" } });
    expect(status).toBe("Deferred");
    expect(message).toMatch(
      /^the kubelet does not start: current set of available CPUs "0-3" doesn't match with CPUs in state "0,2"/,
    );
  });
  test("a patch of the subresource changes what it names", () => {
    const spec = { containers: [{ name: "app", resources: { limits: { memory: "2Gi" } } }] };
    expect(one(on([web]), { ...WEB, spec }).changes).toEqual([
      { container: "app", list: "limits", resource: "memory", from: "1Gi", to: "2Gi" },
    ]);
  });
  test("one that waits: the room that there is, and who would have to leave, of the lowest priority first", () => {
    const others = [
      pod("low", { cpu: "1" }, {}, { priority: -1 }),
      pod("large", { cpu: "1500m" }),
      pod("high", { cpu: "200m" }, {}, { priority: 10 }),
    ];
    const waits = one(on([web, ...others]), { ...WEB, to: { cpu: "2" } });
    expect(waits).toMatchObject({
      status: "Deferred",
      message: "Node didn't have enough resource: cpu, requested: 2000, used: 2700, capacity: 4000",
      largest: [
        { resource: "cpu", quantity: 1300 },
        { resource: "memory", quantity: 8 * 1024 ** 3 },
      ],
      actuation: null,
    });
    expect(waits.leave?.map(({ name }) => name)).toEqual(["low"]);
    const never = one(on([web, pod("high", { cpu: "3" }, {}, { priority: 10 })]), { ...WEB, to: { cpu: "2" } });
    expect(never).toMatchObject({ status: "Deferred", leave: null });
    // one of higher priority stays, though less would be lost with it
    const important = pod("web", { cpu: "1" }, {}, { priority: 20 });
    const smaller = pod("smaller", { cpu: "800m" }, {}, { priority: 10 });
    const spared = one(on([important, ...others.slice(0, 2), smaller]), { ...WEB, to: { cpu: "1500m" } });
    expect(spared.leave?.map(({ name }) => name)).toEqual(["low"]);
    const hopeless = one(on([web, pod("other", { cpu: "3" })], "v1.35.4"), { ...WEB, to: { cpu: "5" } });
    expect(hopeless).toMatchObject({ status: "Infeasible", leave: null });
  });
  test("one patch over several pods: each that is taken counts for the next", () => {
    const all = ["a", "b", "c"].map((name) => pod(name, { cpu: "1" }));
    const { resizes, inProgress, deferred } = decide(on(all), {
      pods: ["shop/c", "shop/a"],
      spec: { containers: [{ name: "app", resources: { requests: { cpu: "1700m" } } }] },
    });
    expect(resizes.map(({ pod: { name }, status }) => [name, status])).toEqual([
      ["c", "InProgress"],
      ["a", "Deferred"],
    ]);
    expect({ inProgress, deferred }).toEqual({ inProgress: 1, deferred: 1 });
  });
  test("what the API server does not take never comes to the kubelet", () => {
    const guaranteed = pod("web", { cpu: "1", memory: "1Gi" }, { cpu: "1", memory: "1Gi" });
    const spec = { containers: [{ name: "app", resources: { limits: { cpu: "2" } } }] };
    expect(one(on([guaranteed]), { ...WEB, spec })).toMatchObject({
      ...{ status: "Rejected", check: "qos_class", message: "Pod QOS Class may not change as a result of resizing" },
    });
  });
  test("what the node can never carry: older kubelets say so, newer ones leave it to the API server", () => {
    const to = { cpu: "5" };
    expect(one(on([web], "v1.35.4"), { ...WEB, to })).toMatchObject({
      status: "Infeasible",
      message: "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000",
    });
    expect(one(on([web]), { ...WEB, to })).toMatchObject({
      status: "Rejected",
      message: "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000",
    });
  });
  test.each([
    [
      { ...WEB, to: { cpu: "2" }, container: "no" },
      "needs_input: ask.container: shop/web: the pod has no container `no`, only app",
    ],
    [{ pod: "shop/no", to: { cpu: "2" } }, "no_such_pod: the node has no pod `shop/no` that runs"],
  ])("%j: %s", (ask, message) => {
    expect(() => decide(on([web]), ask)).toThrow(message);
  });
  test.each([
    [{ to: { cpu: "2" } }, "ask.pod"],
    [{ ...WEB, to: { "ephemeral-storage": "1Gi" } }, "ask.to.ephemeral-storage"],
    [{ ...WEB, to: { cpu: "2" }, spec: {} }, "ask.spec"],
    [{ ...WEB, container: "app" }, "ask.container"],
    [{ pod: "web", to: { cpu: "2" } }, "ask.pod"],
  ])("%j is told at %s", (ask, path) => {
    const decoded = decodeAsk("resize", ask);
    expect(decoded.ok ? [] : decoded.error.map((issue) => issue.path)).toEqual([path]);
  });
});

describe("what waits in the specs", () => {
  const waiting = (name: string, cpu: string, since: string | null, priority = 0, reason = "Deferred"): Json => {
    const made = pod(name, { cpu }, {}, { priority });
    const condition = { type: "PodResizePending", status: "True", reason, lastTransitionTime: since };
    return since === null ? made : { ...made, status: { ...(made["status"] as Json), conditions: [condition] } };
  };
  const allocated = (names: readonly string[]): Json => ({
    assignments: {
      allocated_pods_state: {
        entries: Object.fromEntries(
          names.map((name) => [name, { ContainerResources: { app: { requests: { cpu: "500m" } } } }]),
        ),
      },
    },
  });
  test("in the kubelet's order; what it called infeasible it tries when it restarts", () => {
    const pods = [
      waiting("new", "600m", null),
      waiting("old", "600m", "2026-01-01T00:00:00Z"),
      waiting("late", "600m", "2026-01-02T00:00:00Z"),
      waiting("high", "600m", "2026-01-03T00:00:00Z", 9),
      waiting("less", "400m", null),
      waiting("told", "600m", "2026-01-01T00:00:00Z", 99, "Infeasible"),
      pod("same", { cpu: "500m" }),
    ];
    const names = pods.map((p) => (p["metadata"] as { name: string }).name);
    const { resizes } = decide(on(pods, "v1.36.3", allocated(names)), {});
    expect(resizes.map(({ pod: { name }, isRetried }) => [name, isRetried])).toEqual([
      ["less", true],
      ["high", true],
      ["old", true],
      ["late", true],
      ["new", true],
      ["told", false],
    ]);
  });
});

describe("what brings it into force", () => {
  test("where and what is written, in the kubelet's order", () => {
    const { actuation } = one(on([web]), { ...WEB, to: { cpu: "1500m" } });
    const at = "/kubepods/burstable/podweb";
    expect(actuation?.writes.map(({ path, files }) => [path, ...files.map((f) => `${f.path}=${f.value}`)])).toEqual([
      [at, "cpu.max=300000 100000"],
      [at, "cpu.weight=59"],
      [`${at}/id-web`, "cpu.weight=138", "cpu.max=300000 100000", "memory.swap.max=0", "memory.max=1073741824"],
    ]);
  });
  test("a container that has to start again is told with the resources that make it", () => {
    const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
    const restarted = pod("web", { memory: "1Gi" }, { memory: "2Gi" }, {}, { resizePolicy });
    const { actuation } = one(on([restarted]), { ...WEB, to: { memory: "2Gi" } });
    expect(actuation).toMatchObject({ restarts: [{ container: "app", resources: ["memory"] }], error: null });
  });
  test("memory that is in use is not taken away, in the kubelet's words", () => {
    const stats = {
      pods: [
        {
          podRef: { name: "web", namespace: "shop", uid: "web" },
          memory: { usageBytes: 900_000_000 },
          containers: [{ name: "app", memory: { usageBytes: 800_000_000 } }],
        },
      ],
    };
    const { status, actuation } = one(on([web], "v1.36.3", { stats }), { ...WEB, to: { memory: "256Mi" } });
    expect(status).toBe("InProgress");
    expect(actuation).toMatchObject({
      writes: [],
      error:
        'cannot decrease memory limits: [attempting to set pod memory limit (536870912) below current usage (900000000), attempting to set container "app" memory limit (536870912) below current usage (900000000)]',
    });
  });
});
