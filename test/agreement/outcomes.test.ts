import { describe, expect, test } from "vitest";
import { eventOutcomes, nodeOutcomes, podOutcomes, probeFailures } from "../../api/service/agreement/outcomes.ts";
import { pod } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { mergedOutcomes } from "./merged.ts";

const T = "2026-01-31T12:00:05Z";
const LATER = "2026-01-31T12:00:09Z";
const REF = { namespace: "default", name: "web", uid: "uid-web" };
const web = (status: Json, more: Json = {}): Json => ({ ...pod("web", { metadata: more }), status });
const PENDING = web({ phase: "Pending" });
const condition = (type: string, more: Json = {}): Json => ({ type, status: "True", lastTransitionTime: T, ...more });
const event = (reason: string, message: string, more: Json = {}): Json => ({
  kind: "Event",
  involvedObject: { kind: "Pod", ...REF },
  reason,
  message,
  count: 1,
  firstTimestamp: T,
  lastTimestamp: LATER,
  source: { component: "kubelet", host: "n1" },
  ...more,
});
/** The outcomes without the pod, which is the same in all. */
const found = (outcomes: readonly object[]): Json[] =>
  outcomes.map((one) => {
    const { pod: of, object: _, ...rest } = one as Json;
    if (of !== undefined) expect(of).toEqual(REF);
    return rest;
  });

describe("outcomes from two states of a pod", () => {
  const seenIn = ["pod-status"];
  test("include its admission once, with its start time", () => {
    const running = web({ phase: "Running", startTime: T });
    const admitted = { kind: "admission", at: T, seenIn, admitted: true, reason: "", message: "" };
    expect(found(podOutcomes(PENDING, running))).toEqual([admitted]);
    expect(found(podOutcomes(null, running))).toEqual([admitted]);
    expect(podOutcomes(running, web({ phase: "Succeeded", startTime: T }))).toEqual([]);
    expect(podOutcomes(running, running)).toEqual([]);
    // another pod of the same name
    expect(podOutcomes(running, web({ phase: "Running", startTime: LATER }, { uid: "other" }))).toHaveLength(1);
  });
  test("include its refusal, at its start or at the condition's time if it ran before", () => {
    const status = { phase: "Failed", reason: "OutOfcpu", message: "Pod was rejected: too much", startTime: T };
    const refused = { kind: "admission", at: T, seenIn, admitted: false, reason: "OutOfcpu", message: "too much" };
    expect(found(podOutcomes(PENDING, web(status)))).toEqual([refused]);
    const conditions = [condition("Ready", { status: "False", lastTransitionTime: LATER })];
    const ran = web({ phase: "Running", startTime: T });
    expect(found(podOutcomes(ran, web({ ...status, conditions })))).toEqual([{ ...refused, at: LATER }]);
    expect(podOutcomes(web(status), web(status))).toEqual([]);
  });
  test("include its eviction or preemption, even if it succeeded and has no reason", () => {
    const message = "The node was low on resource: memory. Threshold quantity: 1Gi, available: 900Mi. ";
    const ran = web({ phase: "Running", startTime: T });
    const target = condition("DisruptionTarget", { reason: "TerminationByKubelet", message });
    const evicted = { kind: "eviction", at: T, seenIn, message };
    expect(found(podOutcomes(ran, web({ phase: "Succeeded", startTime: T, conditions: [target] })))).toEqual([evicted]);
    const failed = { phase: "Failed", startTime: T, reason: "Evicted", message, conditions: [target] };
    expect(found(podOutcomes(ran, web(failed)))).toEqual([evicted]);
    expect(podOutcomes(web(failed), web(failed))).toEqual([]);
    const limit = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ";
    const conditions = [condition("Ready", { status: "False" })];
    expect(found(podOutcomes(ran, web({ ...failed, message: limit, conditions })))).toEqual([
      { ...evicted, message: limit },
    ]);
    const preempted = { ...target, message: "Pod was preempted by Kubelet to accommodate a critical pod." };
    expect(found(podOutcomes(ran, web({ phase: "Succeeded", startTime: T, conditions: [preempted] })))).toEqual([
      { kind: "preemption", at: T, seenIn, message: "Preempted in order to admit critical pod" },
    ]);
  });
  test("include a pending resize, once per generation", () => {
    const ran = { phase: "Running", startTime: T };
    const pending = (generation: number, reason = "Infeasible"): Json =>
      web({
        ...ran,
        conditions: [condition("PodResizePending", { reason, message: "no", observedGeneration: generation })],
      });
    const infeasible = { kind: "resize", at: T, seenIn, reason: "Infeasible", message: "no", generation: 2 };
    expect(found(podOutcomes(web(ran), pending(2)))).toEqual([infeasible]);
    expect(podOutcomes(pending(2), pending(2))).toEqual([]);
    expect(found(podOutcomes(pending(2), pending(3)))).toEqual([{ ...infeasible, generation: 3 }]);
    expect(found(podOutcomes(pending(2), pending(2, "Deferred")))).toEqual([{ ...infeasible, reason: "Deferred" }]);
  });
  test("include prepared claims once it has a sandbox or a running container", () => {
    const spec = { resourceClaims: [{ name: "gpu", resourceClaimName: "gpu" }], containers: [{ name: "c" }] };
    const claiming = (status: Json): Json => ({ ...web({ startTime: T, ...status }), spec });
    const conditions = [condition("PodReadyToStartContainers")];
    const prepared = { kind: "claims", at: T, seenIn, prepared: true, message: "" };
    const waits = claiming({ conditions: [condition("PodReadyToStartContainers", { status: "False" })] });
    expect(found(podOutcomes(waits, claiming({ conditions })))).toEqual([prepared]);
    expect(podOutcomes(claiming({ conditions }), claiming({ conditions }))).toEqual([]);
    const runs = { containerStatuses: [{ name: "c", state: { running: { startedAt: LATER } } }] };
    expect(found(podOutcomes(waits, claiming(runs)))).toEqual([{ ...prepared, at: LATER }]);
    const extended = web({ startTime: T, conditions, extendedResourceClaimStatus: { resourceClaimName: "made" } });
    expect(found(podOutcomes(web({ startTime: T }), extended))).toEqual([prepared]);
    expect(podOutcomes(web({ startTime: T }), web({ startTime: T, conditions }))).toEqual([]);
  });
  test("contain only what decisions read, and a mirror pod's static uid", () => {
    const secret = { name: "c", command: ["hunter2"], env: [{ name: "PASSWORD", value: "hunter2" }] };
    const after = { ...web({ phase: "Running", startTime: T }), spec: { containers: [secret] } };
    const [outcome] = podOutcomes(PENDING, after);
    expect(outcome).toMatchObject({ object: { spec: { containers: [{ name: "c" }] } } });
    expect(JSON.stringify(outcome)).not.toContain("hunter2");
    const annotations = { "kubernetes.io/config.mirror": "abc123" };
    expect(podOutcomes(null, web({ phase: "Running", startTime: T }, { annotations }))).toMatchObject([
      { pod: { uid: "abc123" } },
    ]);
  });
  test.each([undefined, null, 7, "pod", {}, { metadata: { name: "a" } }, { metadata: REF, status: 3 }])(
    "are none for the object %j",
    (raw) => expect([...podOutcomes(null, raw), ...eventOutcomes(raw), ...nodeOutcomes(raw, raw)]).toEqual([]),
  );
});

describe("outcomes from an event", () => {
  const seenIn = ["event"];
  test("are found for refusals, evictions and preemptions", () => {
    const refused = { kind: "admission", at: T, seenIn, admitted: false };
    for (const reason of [
      "OutOfcpu",
      "OutOfexample.com/gpu",
      "NodeAffinity",
      "TopologyAffinityError",
      "NodeShutdown",
    ]) {
      expect(found(eventOutcomes(event(reason, "why")))).toEqual([{ ...refused, reason, message: "why" }]);
    }
    const pressure = "The node had condition: [MemoryPressure]. ";
    expect(found(eventOutcomes(event("Evicted", pressure)))).toEqual([
      { ...refused, reason: "Evicted", message: pressure },
    ]);
    const low = "The node was low on resource: memory. ";
    expect(found(eventOutcomes(event("Evicted", low)))).toEqual([{ kind: "eviction", at: T, seenIn, message: low }]);
    const message = "Preempted in order to admit critical pod";
    expect(found(eventOutcomes(event("Preempting", message)))).toEqual([
      { kind: "preemption", at: T, seenIn, message },
    ]);
  });
  test("take a resize's message out of the event's JSON", () => {
    const text =
      'Pod resize OutOfcpu: {"containers":[{"name":"c","resources":{}}],"generation":4,"error":"Node is full"}';
    const deferred = { kind: "resize", at: T, seenIn, reason: "Deferred", message: "Node is full", generation: 4 };
    expect(found(eventOutcomes(event("ResizeDeferred", text)))).toEqual([deferred]);
    const bare = { kind: "resize", at: T, seenIn, reason: "Infeasible", message: "Pod resize Infeasible" };
    expect(found(eventOutcomes(event("ResizeInfeasible", "Pod resize Infeasible")))).toEqual([bare]);
  });
  test("have the last time for unprepared claims, also when events were combined", () => {
    const message = "Failed to prepare dynamic resources: prepare dynamic resources: ResourceClaim gpu: not allocated";
    const failed = { kind: "claims", at: LATER, seenIn, prepared: false, message };
    const reason = "FailedPrepareDynamicResources";
    expect(found(eventOutcomes(event(reason, message, { count: 3 })))).toEqual([failed]);
    expect(found(eventOutcomes(event(reason, `(combined from similar events): ${message}`)))).toEqual([failed]);
    expect(eventOutcomes(event(reason, ""))).toEqual([]);
  });
  test("are one per count for a probe kill, with the start of the killed container", () => {
    const message = "Container c failed liveness probe, will be restarted";
    const containerStatuses = [{ name: "c", state: { running: { startedAt: T } } }];
    const kill = { kind: "probes", at: LATER, seenIn, container: "c", probe: "liveness", message };
    const around = { pod: web({ phase: "Running", containerStatuses }), failures: 3 };
    expect(found(eventOutcomes(event("Killing", message, { count: 2 }), around))).toEqual([
      { ...kill, failures: 3, startedAt: T },
    ]);
    // the status already contains the next container
    const started = [{ name: "c", state: { running: { startedAt: "2026-01-31T12:00:10Z" } } }];
    const next = { pod: web({ phase: "Running", containerStatuses: started }), failures: null };
    expect(found(eventOutcomes(event("Killing", message), next))).toEqual([kill]);
    expect(found(eventOutcomes(event("Killing", "Container c failed startup probe")))).toMatchObject([
      { probe: "startup" },
    ]);
    expect(eventOutcomes(event("Killing", "Stopping container c"))).toEqual([]);
  });
  test("are the same from events.k8s.io, and none from other components or objects", () => {
    const newer = {
      regarding: { kind: "Pod", ...REF },
      reason: "OutOfcpu",
      note: "why",
      eventTime: "2026-01-31T12:00:05.123456Z",
      reportingController: "kubelet",
    };
    expect(found(eventOutcomes(newer))).toMatchObject([{ at: "2026-01-31T12:00:05.123456Z", message: "why" }]);
    expect(
      eventOutcomes(event("Preempted", "by the scheduler", { source: { component: "default-scheduler" } })),
    ).toEqual([]);
    expect(eventOutcomes(event("OutOfcpu", "why", { source: { component: "other" } }))).toEqual([]);
    expect(eventOutcomes(event("Evicted", "x", { involvedObject: { kind: "Node", name: "n1", uid: "n1" } }))).toEqual(
      [],
    );
  });
});

describe("the failures of a probe from its events", () => {
  const at = (seconds: number): number => Date.parse(T) + seconds * 1000;
  const state = (count: number, lastSeconds: number, message = "Liveness probe failed: no", firstSeconds = 0) => ({
    message,
    count,
    firstMs: at(firstSeconds),
    lastMs: at(lastSeconds),
  });
  test("are counted since a time, over all of its messages", () => {
    const seen = [state(1, 0), state(2, 10), state(3, 20), state(4, 30)];
    expect(probeFailures(seen, "liveness", at(15))).toBe(2);
    expect(probeFailures(seen.toReversed(), "liveness", at(-5))).toBe(4);
    expect(probeFailures([...seen, state(2, 29, "Liveness probe failed: other", 25)], "liveness", at(15))).toBe(4);
    expect(probeFailures(seen, "startup", at(0))).toBe(0);
  });
  test("are unknown when an event began earlier and its previous states were not seen", () => {
    expect(probeFailures([state(7, 30)], "liveness", at(15))).toBeNull();
  });
});

describe("outcomes from two states of a node", () => {
  const node = (memory: string, images: readonly Json[], heartbeat = T): Json => ({
    status: {
      conditions: [
        { ...condition("MemoryPressure", { status: memory, message: "m" }), lastHeartbeatTime: heartbeat },
        condition("DiskPressure", { status: "False" }),
      ],
      images,
    },
  });
  const image = (name: string): Json => ({ names: [`${name}@sha256:1`, `${name}:1`], sizeBytes: 7 });
  test("include a changed pressure condition, and removed images", () => {
    const was = node("False", [image("a"), image("b")]);
    expect(nodeOutcomes(was, was)).toEqual([]);
    expect(nodeOutcomes(was, node("True", [image("b")], LATER))).toEqual([
      { kind: "conditions", at: T, seenIn: ["node-status"], condition: "MemoryPressure", status: "True", message: "m" },
      {
        kind: "image-gc",
        at: LATER,
        after: T,
        seenIn: ["node-status"],
        images: [{ names: ["a@sha256:1", "a:1"], sizeBytes: 7 }],
      },
    ]);
    expect(nodeOutcomes(was, node("Unknown", [image("a"), image("b")]))).toEqual([]);
  });
  test("have no removed images when the status may list only some of the images", () => {
    const many = Array.from({ length: 50 }, (_, i) => image(`i${i}`));
    expect(nodeOutcomes(node("False", many), node("False", many.slice(1)))).toEqual([]);
    expect(nodeOutcomes(node("False", [image("a")]), node("False", []))).toEqual([]);
  });
});

test("a status and an event of one refusal merge into one outcome with the earlier time and both parts", () => {
  const status = { phase: "Failed", reason: "OutOfcpu", message: "Pod was rejected: why", startTime: LATER };
  const both = [...podOutcomes(PENDING, web(status)), ...eventOutcomes(event("OutOfcpu", "why"))];
  expect(both).toHaveLength(2);
  const [merged, ...more] = mergedOutcomes(both);
  expect(more).toEqual([]);
  expect(merged).toMatchObject({
    at: T,
    seenIn: ["event", "pod-status"],
    message: "why",
    object: { metadata: { name: "web" } },
  });
  expect(mergedOutcomes(both.toReversed())).toEqual([merged]);
});
