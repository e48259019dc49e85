import { describe, expect, test } from "vitest";
import { writeClaims } from "../../api/decide/dra/checkpoint.ts";
import { ClaimInfoCache } from "../../api/decide/dra/claim-info.ts";
import { type Comparison, decodeOutcomes, type Outcome, outcomeKey } from "../../api/model/outcome.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { claim, claiming, DRIVER, result } from "../kit/claims.ts";
import { container } from "../kit/containers.ts";
import { node } from "../kit/nodes.ts";
import { guaranteed, pod, podOf, requesting } from "../kit/pods.ts";
import { runtimeImage } from "../kit/runtime.ts";
import type { Json } from "../kit/snapshots.ts";
import { comparedOn } from "./compared.ts";

const T = Date.parse("2026-01-31T12:00:00Z");
const at = (seconds: number): string => new Date(T + seconds * 1000).toISOString();
const RUNNING = { phase: "Running", containerStatuses: [{ name: "c", state: { running: {} } }] };
const MiB = 2 ** 20;

const snapshot = (more: Json = {}, status: Json = {}, configuration: Json = {}): Json => ({
  observedAt: at(0),
  node: node({
    allocatable: { cpu: "4", memory: "8Gi", pods: "10" },
    conditions: [{ type: "MemoryPressure", status: "False" }],
    ...status,
  }),
  kubeletConfiguration: { maxPods: 10, ...configuration },
  cgroup: { version: 2 },
  pods: [],
  ...more,
});
const refOf = (object: Json): Json => {
  const { name, uid } = object["metadata"] as Json;
  return { namespace: "default", name, uid };
};
const of = (kind: string, object: Json, more: Json = {}): Json => ({
  kind,
  at: at(5),
  seenIn: ["event"],
  pod: refOf(object),
  object,
  message: "",
  ...more,
});
function compared(on: Json, outcomes: readonly Json[], facts = {}): readonly Comparison[] {
  const decoded = decodeOutcomes({ outcomes });
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  return comparedOn(on, decoded.value, facts);
}
const reportOf = (on: Json, outcome: Json, facts = {}) => {
  const [one] = compared(on, [outcome], facts);
  return [one?.verdict, one?.why?.code ?? one?.difference ?? null];
};
const AGREES = ["agrees", null];
const notComparable = (code: string) => ["not-comparable", code];

describe("comparing admissions with the kubelet's", () => {
  const refused = (reason: string, message: string): Json => ({ admitted: false, reason, message });
  const admitted = { admitted: true, reason: "" };
  test("a resource that only the kubelet found short differs, with the amounts of both", () => {
    const message = "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000";
    const on = snapshot({ pods: [{ ...requesting("web", { cpu: "1" }), status: RUNNING }] });
    const [one] = compared(on, [of("admission", requesting("a", { cpu: "2" }), refused("OutOfcpu", message))]);
    expect(one).toMatchObject({
      verdict: "differs",
      difference: { field: "used", kubelet: 3000, nodewise: 1000 },
      kubelet: { requested: 2000, used: 3000, capacity: 4000, admitted: false },
      nodewise: { requested: 2000, used: 1000, capacity: 4000, admitted: true },
    });
  });
  test("a pod for the resource managers is not comparable without their state files, others are", () => {
    const on = snapshot({}, {}, { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } });
    expect(reportOf(on, of("admission", requesting("a", { cpu: "1" }), admitted))).toEqual(AGREES);
    expect(reportOf(on, of("admission", guaranteed("g", "1", "1Gi"), admitted))).toEqual(notComparable("state_files"));
  });
  test("a pod with a device that the node has needs state files, one with an unknown resource does not", () => {
    const asking = requesting("a", { "example.com/gpu": "1" });
    expect(reportOf(snapshot(), of("admission", asking, admitted))).toEqual(AGREES);
    const on = snapshot({}, { allocatable: { cpu: "4", memory: "8Gi", pods: "10", "example.com/gpu": "2" } });
    expect(reportOf(on, of("admission", asking, admitted))).toEqual(notComparable("state_files"));
  });
  test("a NodeShutdown refusal is not comparable unless the snapshot knows of the shutdown", () => {
    const shutdown = refused("NodeShutdown", "Pod was rejected as the node is shutting down.");
    expect(reportOf(snapshot(), of("admission", pod("a"), shutdown))).toEqual(notComparable("input_not_known"));
    expect(reportOf(snapshot({ kubelet: { shuttingDown: true } }), of("admission", pod("a"), shutdown))).toEqual(
      AGREES,
    );
  });
  test("a snapshot that already shows the outcome is not comparable", () => {
    const on = snapshot({
      pods: [
        { ...pod("a"), status: RUNNING },
        { ...pod("b"), status: { phase: "Failed" } },
      ],
    });
    expect(reportOf(on, of("admission", pod("a"), admitted))).toEqual(notComparable("already_in_snapshot"));
    expect(reportOf(on, of("admission", pod("b"), refused("OutOfcpu", "x")))).toEqual(
      notComparable("already_in_snapshot"),
    );
    const evicted = { message: "The node was low on resource: memory. " };
    expect(reportOf(on, of("eviction", pod("b"), evicted))).toEqual(notComparable("already_in_snapshot"));
  });
  const turned = (status: "True" | "False", seconds: number): Json => ({
    ...{ kind: "conditions", at: at(seconds), seenIn: ["node-status"] },
    ...{ condition: "MemoryPressure", status, message: "" },
  });
  const refusal = of("admission", pod("a"), refused("Evicted", "The node had condition: [MemoryPressure]. "));
  const underPressure = (evictionPressureTransitionPeriod: string): Json =>
    snapshot({}, { conditions: [{ type: "MemoryPressure", status: "True" }] }, { evictionPressureTransitionPeriod });
  const letIn = of("admission", pod("a"), admitted);
  test.each([
    ["refused before the pressure was told", snapshot(), [refusal, turned("True", 15)]],
    ["let in before its end was told", underPressure("5m"), [letIn, turned("False", 15)]],
    ["let in after an end that no status had the time to tell", underPressure("5s"), [letIn]],
  ])("pressure is unknown for a pod that was %s, which makes it not comparable", (_, on, outcomes) => {
    expect(compared(on, outcomes)[0]).toMatchObject({ verdict: "not-comparable", why: { code: "pressure_not_told" } });
  });
  test("pressure may be reported a minute later when nodeStatusUpdateFrequency is a minute", () => {
    const seldom = (period: string) => snapshot({}, {}, { nodeStatusUpdateFrequency: period });
    const told40 = [refusal, turned("True", 40)];
    expect(compared(seldom("1m"), told40)[0]).toMatchObject({ why: { code: "pressure_not_told" } });
    // a kubelet replaces 0 by the default
    for (const period of ["10s", "0s"])
      expect(compared(seldom(period), told40)[0]).toMatchObject({ verdict: "differs" });
  });
  test("a pod admitted despite pressure, and conditions reported long after, are compared", () => {
    const burstable = of("admission", requesting("a", { cpu: "1" }), admitted);
    expect(compared(underPressure("5m"), [burstable, turned("False", 15)])[0]).toMatchObject({ verdict: "agrees" });
    expect(compared(underPressure("5m"), [refusal, turned("False", 30)])[0]).toMatchObject({ verdict: "agrees" });
    expect(compared(snapshot(), [refusal, turned("True", 30)])[0]).toMatchObject({ verdict: "differs" });
  });
  test("pressure since the snapshot explains a refusal, and a kubelet that would not start differs", () => {
    expect(compared(snapshot(), [refusal, turned("True", 2)])[0]).toMatchObject({ verdict: "agrees" });
    expect(compared(snapshot(), [refusal])[0]).toMatchObject({ verdict: "differs", difference: { field: "admitted" } });
    const machine = { cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }] };
    const on = snapshot({ machine }, {}, { cpuManagerPolicy: "static" });
    expect(reportOf(on, of("admission", pod("a"), admitted))).toEqual([
      "differs",
      { field: "starts", kubelet: true, nodewise: false },
    ]);
  });
});

describe("comparing resizes with the kubelet's", () => {
  const now = guaranteed("a", "1", "1Gi");
  const on = (configuration: Json = {}, more: Json = {}): Json =>
    snapshot(
      {
        pods: [
          { ...now, status: RUNNING },
          { ...requesting("other", { cpu: "2" }), status: RUNNING },
        ],
        ...more,
      },
      {},
      configuration,
    );
  const resize = (cpu: string, reason: string, message: string): Json =>
    of("resize", guaranteed("a", cpu, "1Gi"), { reason, message });
  test("an infeasible resize agrees when the message is the kubelet's", () => {
    const message = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
    expect(reportOf(on({ cpuManagerPolicy: "static" }), resize("2", "Infeasible", message))).toEqual(AGREES);
    expect(reportOf(on(), resize("2", "Infeasible", message))).toEqual([
      "differs",
      { field: "reason", kubelet: "Infeasible", nodewise: "" },
    ]);
  });
  test("a deferred resize is compared by its amounts", () => {
    const message = (used: number) =>
      `Node didn't have enough resource: cpu, requested: 3000, used: ${used}, capacity: 4000`;
    expect(reportOf(on(), resize("3", "Deferred", message(2000)))).toEqual(AGREES);
    expect(reportOf(on(), resize("3", "Deferred", message(2500)))).toEqual([
      "differs",
      { field: "used", kubelet: 2500, nodewise: 2000 },
    ]);
  });
  test("a memory resize with swap is infeasible on cgroup v2", () => {
    const swaps = { memorySwap: { swapBehavior: "LimitedSwap" } };
    const asking = (memory: string): Json => requesting("a", { memory });
    const state = snapshot({ pods: [{ ...asking("1Gi"), status: RUNNING }] }, {}, swaps);
    const message = "In-place resize of containers with swap is not supported.";
    const outcome = of("resize", asking("2Gi"), { reason: "Infeasible", message });
    expect(reportOf({ ...state, cgroup: { version: 2 } }, outcome)).toEqual(AGREES);
    expect(reportOf({ ...state, cgroup: { version: 1 } }, outcome)[0]).toBe("differs");
  });
  test("a resize starts from the allocated resources, not from the new requests", () => {
    const resources = { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "1", memory: "1Gi" } };
    const entries = { a: { ContainerResources: { c: resources } } };
    const assignments = { allocated_pods_state: { entries } };
    const message = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000";
    expect(reportOf(on({}, { assignments }), resize("3", "Deferred", message))).toEqual(AGREES);
  });
  test("a resize is not comparable for an unknown pod, or for a check of older kubelets", () => {
    const deferred = resize("3", "Deferred", "x");
    expect(reportOf(snapshot(), deferred)).toEqual(notComparable("pod_not_known"));
    expect(reportOf(on(), { ...deferred, object: null })).toEqual(notComparable("pod_not_known"));
    const capacity = resize(
      "8",
      "Infeasible",
      "Node didn't have enough capacity: cpu, requested: 8000, capacity: 4000",
    );
    expect(reportOf(on(), capacity)).toEqual(notComparable("not_decided_here"));
  });
});

describe("comparing probe kills with the kubelet's", () => {
  const probed = (probe: Json | undefined): Json =>
    podOf([container("c", undefined, undefined, probe && { livenessProbe: { tcpSocket: { port: 1 }, ...probe } })]);
  const kill = (object: Json, more: Json = {}): Json =>
    of("probes", object, {
      at: at(60),
      container: "c",
      probe: "liveness",
      message: "Container c failed liveness probe, will be restarted",
      failures: 3,
      startedAt: at(0),
      ...more,
    });
  const usual = probed({ periodSeconds: 10, failureThreshold: 3 });
  test("a kill agrees with the kubelet's message and enough failures", () => {
    expect(reportOf(snapshot(), kill(usual))).toEqual(AGREES);
    expect(reportOf(snapshot(), kill(usual, { failures: 9 }))).toEqual(AGREES);
    expect(reportOf(snapshot(), kill(usual, { message: "Container c failed liveness probe" }))).toEqual([
      "differs",
      {
        field: "message",
        kubelet: "Container c failed liveness probe",
        nodewise: "Container c failed liveness probe, will be restarted",
      },
    ]);
  });
  test("too few failures are not comparable, and a kill sooner than possible differs", () => {
    for (const failures of [2, null]) {
      expect(reportOf(snapshot(), kill(usual, { failures }))).toEqual(notComparable("probe_results"));
    }
    const slow = probed({ periodSeconds: 20, failureThreshold: 5, initialDelaySeconds: 30 });
    expect(reportOf(snapshot(), kill(slow, { failures: 5 }))).toMatchObject([
      "differs",
      { field: "seconds", kubelet: 60 },
    ]);
  });
  test("a kill without such a probe in the spec differs", () => {
    expect(reportOf(snapshot(), kill(probed(undefined)))).toMatchObject([
      "differs",
      { field: "probe", nodewise: null },
    ]);
  });
});

describe("comparing evictions with the kubelet's", () => {
  const stats = (available: number, usage: Readonly<Record<string, Json>>): Json => ({
    node: { memory: { time: at(0), availableBytes: available * MiB, workingSetBytes: 4096 * MiB } },
    pods: Object.entries(usage).map(([name, more]) => ({
      podRef: { name, namespace: "default", uid: `uid-${name}` },
      ...more,
    })),
  });
  const running = (name: string, spec: Json = {}): Json => ({ ...pod(name, { spec }), status: RUNNING });
  const using = (bytes: number): Json => ({ memory: { time: at(0), workingSetBytes: bytes } });
  const low = { message: "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. " };
  const hard = { evictionHard: { "memory.available": "1Gi" } };
  test("one of two equal pods agrees, and the other is not comparable as the order is chance", () => {
    const on = snapshot(
      { pods: [running("a"), running("b")], stats: stats(500, { a: using(9), b: using(9) }) },
      {},
      hard,
    );
    const both = ["a", "b"].map((name) => reportOf(on, of("eviction", pod(name), low)));
    expect(both.toSorted()).toEqual([AGREES, notComparable("order_is_chance")]);
  });
  test("a soft threshold needs earlier passes, and a hard one stats of the outcome's time", () => {
    const parts = { pods: [running("a")], stats: stats(500, { a: using(9) }) };
    const soft = {
      evictionSoft: { "memory.available": "1Gi" },
      evictionSoftGracePeriod: { "memory.available": "10s" },
      evictionHard: {},
    };
    expect(reportOf(snapshot(parts, {}, soft), of("eviction", pod("a"), low))).toEqual(
      notComparable("observation_times"),
    );
    const old = { ...parts, observedAt: at(19) };
    expect(reportOf(snapshot(old, {}, hard), of("eviction", pod("a"), { ...low, at: at(25) }))).toEqual(
      notComparable("snapshot_too_old"),
    );
  });
  test("an eviction for a local storage limit agrees when the usage was above it already", () => {
    const limited = { volumes: [{ name: "scratch", emptyDir: { sizeLimit: "10Mi" } }] };
    const message = 'Usage of EmptyDir volume "scratch" exceeds the limit "10Mi". ';
    const full = (used: number) => ({ a: { volume: [{ name: "scratch", usedBytes: used * MiB }] } });
    const on = (used: number) => snapshot({ pods: [running("a", limited)], stats: stats(5000, full(used)) }, {}, hard);
    expect(reportOf(on(11), of("eviction", pod("a"), { message }))).toEqual(AGREES);
    expect(reportOf(on(9), of("eviction", pod("a"), { message }))).toEqual(notComparable("signal_moved"));
    const other = message.replace("10Mi", "20Mi");
    expect(reportOf(on(11), of("eviction", pod("a"), { message: other }))).toMatchObject([
      "differs",
      { field: "message" },
    ]);
  });
});

describe("comparing claims with the kubelet's", () => {
  const asking = claiming("p", ["gpu"]);
  const reserved = claim("gpu", [result("0")], ["p"]);
  const others = claim("gpu", [result("0")], ["q"]);
  const PREFIX = "Failed to prepare dynamic resources: prepare dynamic resources: ";
  const NOT_ALLOWED = "pod p (uid-p) is not allowed to use ResourceClaim gpu (claim-gpu)";
  const failed = (words: string, claims: readonly Json[] | undefined = [reserved]): Json =>
    of("claims", asking, { prepared: false, message: PREFIX + words, claims });
  const prepared = (claims: readonly Json[]): Json => of("claims", asking, { prepared: true, claims });

  test("refused claims are compared on what the kubelet read, not on the older snapshot", () => {
    const on = snapshot({ pods: [asking], dra: { resourceClaims: [reserved] } });
    expect(reportOf(on, failed(NOT_ALLOWED, [others]))).toEqual(AGREES);
    expect(reportOf(on, failed(NOT_ALLOWED, [reserved]))).toEqual([
      "differs",
      { field: "prepared", kubelet: false, nodewise: true },
    ]);
    const missing = 'fetch ResourceClaim gpu: resourceclaims.resource.k8s.io "gpu" not found';
    expect(reportOf(on, failed(missing, []))).toEqual(AGREES);
    expect(reportOf(on, failed(missing, [others]))).toMatchObject(["differs", { field: "message" }]);
    const unknown = { ...failed(NOT_ALLOWED), claims: undefined };
    expect(reportOf(on, unknown)).toEqual(notComparable("claims_not_known"));
  });
  test("prepared claims are checked without regard to drivers", () => {
    expect(reportOf(snapshot(), prepared([reserved]))).toEqual(AGREES);
    expect(reportOf(snapshot(), prepared([others]))).toMatchObject(["differs", { field: "prepared", kubelet: true }]);
    const answers = [{ claim: "claim-gpu", error: "no" }];
    expect(reportOf(snapshot({ dra: { drivers: [{ name: DRIVER, answers }] } }), prepared([reserved]))).toEqual(AGREES);
  });
  test("a failing driver agrees up to its call, and its own message is kept beside", () => {
    const own = `${PREFIX}NodePrepareResources failed for ResourceClaim gpu`;
    const outcome = failed("NodePrepareResources failed for ResourceClaim gpu: no such device: 7");
    expect(compared(snapshot(), [outcome])[0]).toMatchObject({
      verdict: "agrees",
      kubelet: { reason: "FailedPrepareDynamicResources", message: own },
      measured: [{ field: "driver", kubelet: "no such device: 7", nodewise: null }],
    });
    const differs = ["differs", { field: "message", nodewise: PREFIX + NOT_ALLOWED }];
    expect(reportOf(snapshot(), { ...outcome, claims: [others] })).toMatchObject(differs);
    const words = "NodePrepareResources failed for ResourceClaim another: no";
    expect(reportOf(snapshot(), failed(words))).toMatchObject(["differs", { field: "prepared" }]);
    for (const words of ["NodePrepareResources: rpc error", "NodePrepareResources skipped 1 ResourceClaims"])
      expect(reportOf(snapshot(), failed(words))).toEqual(AGREES);
    const [skips, gate] = [{ skipNodeOperations: ["*"] }, { featureGates: { DRAOptionalNodeOperations: true } }];
    const skipping = failed("NodePrepareResources: rpc error", [claim("gpu", [result("0", skips)], ["p"])]);
    const status = { nodeInfo: { kubeletVersion: "v1.37.2" } };
    expect(reportOf(snapshot({}, status, gate), skipping)).toMatchObject(["differs", { field: "prepared" }]);
  });
  test("an unregistered driver and claims of older pods are not comparable without the node's state", () => {
    const absent = failed(`DRA driver ${DRIVER} is not registered`);
    expect(reportOf(snapshot(), absent)).toEqual(notComparable("input_not_known"));
    expect(reportOf(snapshot({ dra: { drivers: [] } }), absent)).toEqual(AGREES);
    expect(reportOf(snapshot({ dra: { drivers: [{ name: DRIVER }] } }), absent)).toMatchObject(["differs", {}]);
    const old =
      "old ResourceClaim with same name gpu and different UID old still exists (previous pod force-deleted?!)";
    expect(reportOf(snapshot(), failed(old))).toEqual(notComparable("state_files"));
    const info = { namespace: "default", name: "gpu", uid: "old", podUids: new Set(["uid-q"]), drivers: new Map() };
    const cache = new ClaimInfoCache(NEWEST.behaviour.claims, [{ ...info, prepared: true, unpreparing: false }]);
    const known = { assignments: { dra_manager_state: writeClaims(cache) } };
    expect(reportOf(snapshot(known), failed(old))).toEqual(AGREES);
    expect(reportOf(snapshot(known), prepared([reserved]))).toMatchObject(["differs", { field: "prepared" }]);
    expect(reportOf(snapshot(), failed("fetch ResourceClaim gpu: context deadline exceeded"))).toEqual(
      notComparable("not_decided_here"),
    );
  });
  test("claims outcomes have a key without the driver's own text", () => {
    const keyOf = (words: string) => {
      const decoded = decodeOutcomes({ outcomes: [failed(words)] });
      return decoded.ok ? JSON.stringify(outcomeKey(decoded.value[0] as Outcome)) : JSON.stringify(decoded.error);
    };
    const ofDriver = (text: string) => keyOf(`NodePrepareResources failed for ResourceClaim gpu: ${text}`);
    expect(ofDriver("try 1")).toBe(ofDriver("try 2"));
    expect(new Set([ofDriver("x"), keyOf("NodePrepareResources: x"), keyOf(NOT_ALLOWED)]).size).toBe(3);
  });
});

describe("comparing image GC with the kubelet's", () => {
  const images = ["a", "b", "c"].map((id) => runtimeImage(id, { repoTags: [`${id}:1`] }));
  const disk = (availableMiB: number): Json => ({
    node: { runtime: { imageFs: { time: at(0), capacityBytes: 1000 * MiB, availableBytes: availableMiB * MiB } } },
    pods: [],
  });
  const on = (availableMiB: number): Json =>
    snapshot(
      { stats: disk(availableMiB), runtime: { images, containers: [] } },
      {},
      { imageMinimumGCAge: "10s", imageGCHighThresholdPercent: 85, imageGCLowThresholdPercent: 80 },
    );
  const records = [
    ["a", T - 900_000, T - 800_000],
    ["b", T - 900_000, T - 500_000],
    ["c", T - 900_000, T - 100_000],
  ];
  const facts = { "image-gc": { atMs: T - 60_000, beganAtMs: T - 900_000, failed: false, records, removed: [] } };
  const went = (...ids: string[]): Json => ({
    kind: "image-gc",
    at: at(30),
    after: at(0),
    seenIn: ["image-list"],
    images: ids.map((id) => ({ id, names: [`${id}:1`] })),
  });
  test("the same set of removed images agrees by id or name, and another set differs", () => {
    expect(reportOf(on(100), went("a"), facts)).toEqual(AGREES);
    const byName = { ...went("a"), images: [{ names: ["a@sha256:9", "a:1"] }] };
    expect(reportOf(on(100), byName, facts)).toEqual(AGREES);
    expect(reportOf(on(100), went("b"), facts)).toEqual([
      "differs",
      { field: "removed", kubelet: ["b:1"], nodewise: ["a:1"] },
    ]);
    expect(reportOf(on(100), went("a", "b"), facts)).toMatchObject(["differs", { kubelet: ["a:1", "b:1"] }]);
  });
  test("removed images are not comparable without ages, without a list, or with enough free space", () => {
    expect(reportOf(on(100), went("a"))).toEqual(notComparable("image_ages"));
    const later = { "image-gc": { ...facts["image-gc"], atMs: T + 1 } };
    expect(reportOf(on(100), went("a"), later)).toEqual(notComparable("image_ages"));
    expect(reportOf(snapshot({ stats: disk(100) }), went("a"), facts)).toEqual(notComparable("input_not_known"));
    expect(reportOf(on(500), went("a"), facts)).toEqual(notComparable("cause_not_known"));
  });
});
