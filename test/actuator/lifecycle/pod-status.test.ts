import { describe, expect, test } from "vitest";
import type { RuntimeContainer, RuntimePod } from "../../../actuator/containerd/cri.ts";
import { finishedPhase, podStatus, type StatusOptions } from "../../../actuator/lifecycle/pod-status.ts";
import type { PodEnd, PodRecord } from "../../../actuator/lifecycle/record.ts";
import type { PodStatus } from "../../../actuator/lifecycle/status/status.ts";
import { pod as podSchema } from "../../../api/model/pod.ts";
import { seenContainer, seenPod, seenSandbox } from "../../kit/seen-pods.ts";
import { recordOf, runnableOf, type SmallPod, smallPod } from "./small-pods.ts";

const NOW = Date.parse("2026-11-22T10:00:00.900Z");
const options: StatusOptions = { nowMs: NOW, hostIPs: ["192.168.0.1"], qosClass: "Burstable", previous: null };
const statusOf = (
  object: SmallPod,
  seen: RuntimePod | null,
  record: Partial<PodRecord> = {},
  more: Partial<StatusOptions> = {},
) => podStatus(runnableOf(object), recordOf(object, record), seen, { ...options, ...more });
const condition = (status: PodStatus, type: string) => status.conditions.find((c) => c.type === type);
const exited = (name: string, exitCode: number, more = {}) =>
  seenContainer(name, { state: "exited", exitCode, reason: exitCode === 0 ? "Completed" : "Error", ...more });
const ended = (cause: PodEnd["cause"], reason: string, message: string): PodEnd => ({
  cause,
  reason,
  message,
  sinceMs: 0,
  graceSeconds: null,
  decisionId: null,
});
const stopped = (...containers: readonly RuntimeContainer[]): RuntimePod => ({
  ...seenPod(...containers),
  sandboxes: [seenSandbox("s0", { isReady: false })],
});

test("resource claim statuses written by others are kept in a pod's status", () => {
  const claims = {
    resourceClaimStatuses: [{ name: "gpu", resourceClaimName: "p-gpu-x1" }],
    extendedResourceClaimStatus: { resourceClaimName: "p-extended-x2", requestMappings: [] },
    nodeAllocatableResourceClaimStatuses: [{ resourceClaimName: "p-gpu-x1", containers: ["a"] }],
  };
  const object = { ...smallPod(["a"]), status: { ...claims, phase: "Pending", hostIP: "192.0.2.9" } };
  expect(statusOf(object, seenPod(seenContainer("a")))).toMatchObject({
    ...claims,
    phase: "Running",
    hostIP: "192.168.0.1",
  });
});

describe("the status of a running pod", () => {
  const object = {
    ...smallPod(["a"], ["s*"]),
    metadata: { name: "p", namespace: "ns", uid: "u", generation: 3 },
  };
  const resources = { requests: { cpu: "100m" } };
  const allocated = { ...object, spec: { ...object.spec, containers: [{ name: "a", image: "i", resources }] } };
  const status = statusOf(
    allocated,
    seenPod(seenContainer("a", { attempt: 2 }), exited("a", 1, { attempt: 1, message: "no" }), seenContainer("s")),
  );

  test("has all fields of the kubelet's", () => {
    expect(status).toMatchObject({
      observedGeneration: 3,
      phase: "Running",
      hostIP: "192.168.0.1",
      podIP: "10.0.0.2",
      startTime: "1970-01-01T00:00:01Z",
      qosClass: "Burstable",
    });
    expect(status.containerStatuses).toEqual([
      {
        name: "a",
        state: { running: { startedAt: "1970-01-01T00:00:02Z" } },
        lastState: {
          terminated: {
            exitCode: 1,
            reason: "Error",
            message: "no",
            startedAt: "1970-01-01T00:00:02Z",
            finishedAt: "1970-01-01T00:00:03Z",
            containerID: "containerd://a-1",
          },
        },
        ready: true,
        restartCount: 2,
        image: "i",
        imageID: "sha256:i",
        containerID: "containerd://a-2",
        started: true,
        allocatedResources: { cpu: "100m" },
        resources: { requests: { cpu: "100m" } },
      },
    ]);
    expect(status.conditions.map((c) => [c.type, c.status, c.observedGeneration])).toEqual([
      ["PodReadyToStartContainers", "True", 3],
      ["Initialized", "True", 3],
      ["Ready", "True", 3],
      ["ContainersReady", "True", 3],
      ["PodScheduled", "True", 3],
    ]);
  });
  test("is accepted in a snapshot", () => {
    const decoded = podSchema.parse({ ...allocated, status });
    expect(decoded.status?.containerStatuses?.[0]).toMatchObject({ containerID: "containerd://a-2" });
    expect(decoded.status?.phase).toBe("Running");
    expect(podSchema.safeParse({ ...allocated, status: statusOf(allocated, null) }).success).toBe(true);
  });
  test("states the resources in force where they differ from the allocated ones", () => {
    const inForce = { a: { requests: { cpu: "50m" } } };
    const [a] = statusOf(allocated, seenPod(seenContainer("a")), {}, { inForce }).containerStatuses;
    expect(a).toMatchObject({ allocatedResources: { cpu: "100m" }, resources: { requests: { cpu: "50m" } } });
  });
  test("is not ready while a postStart hook runs", () => {
    const starting = statusOf(smallPod(["a"]), seenPod(seenContainer("a")), {}, { starting: new Set(["a"]) });
    expect(starting.containerStatuses[0]).toMatchObject({ started: false, ready: false });
    expect(condition(starting, "Ready")).toMatchObject({
      status: "False",
      message: "containers with unready status: [a]",
    });
  });
  test("keeps a condition's transition time until the condition changes", () => {
    const first = statusOf(smallPod(["a"]), seenPod(seenContainer("a")));
    expect(condition(first, "Ready")?.lastTransitionTime).toBe("2026-11-22T10:00:00Z");
    const later = { nowMs: NOW + 60_000, previous: first };
    const same = statusOf(smallPod(["a"]), seenPod(seenContainer("a")), {}, later);
    expect(condition(same, "Ready")?.lastTransitionTime).toBe("2026-11-22T10:00:00Z");
    const changed = statusOf(smallPod(["a"]), seenPod(exited("a", 1)), {}, later);
    expect(condition(changed, "Ready")?.lastTransitionTime).toBe("2026-11-22T10:01:00Z");
    expect(condition(changed, "PodScheduled")?.lastTransitionTime).toBe("2026-11-22T10:00:00Z");
  });
});

describe("a sidecar that has not started", () => {
  const phase = (sandboxId: string) => {
    const seen = seenPod(exited("a", 1, { sandboxId }), seenContainer("s"));
    return statusOf(smallPod(["a"], ["s*"]), seen, {}, { starting: new Set(["s"]) }).phase;
  };
  test("makes the pod Pending only if the pod's own containers were not in this sandbox before", () => {
    expect(phase("another")).toBe("Pending");
    expect(phase("s0")).toBe("Running");
  });
});

describe("the status of a waiting container", () => {
  test("has the reason", () => {
    const reasons = (status: PodStatus) =>
      [...(status.initContainerStatuses ?? []), ...status.containerStatuses].map((c) => c.state.waiting);
    expect(reasons(statusOf(smallPod(["a"]), null))).toEqual([{ reason: "ContainerCreating" }]);
    expect(reasons(statusOf(smallPod(["a"], ["i"]), null))).toEqual([
      { reason: "PodInitializing" },
      { reason: "PodInitializing" },
    ]);
    const errors = { a: { reason: "ErrImagePull", message: "no such image" } };
    expect(reasons(statusOf(smallPod(["a"]), seenPod(), {}, { errors }))).toEqual([errors.a]);
    expect(reasons(statusOf(smallPod(["a"]), seenPod(seenContainer("a")), {}, { errors }))).toEqual([undefined]);
  });
  test("in back-off has the delay and the last exit", () => {
    const heldBack = [{ name: "a", untilMs: 0, delayMs: 40_000 }];
    const [a] = statusOf(smallPod(["a"]), seenPod(exited("a", 7)), {}, { heldBack }).containerStatuses;
    expect(a?.state).toEqual({
      waiting: { reason: "CrashLoopBackOff", message: "back-off 40s restarting failed container=a pod=p_ns(u)" },
    });
    expect(a?.lastState.terminated?.exitCode).toBe(7);
  });
  test("of a refused pod is replaced by the refusal, with the promise to retry", () => {
    const refusal = { reason: "OutOfcpu", message: "Node didn't have enough resource: cpu", sinceMs: 0, tries: 3 };
    const status = statusOf(smallPod(["a"]), null, { state: "pending", refusal, admittedAtMs: null });
    expect(status).toMatchObject({ phase: "Pending", reason: "OutOfcpu" });
    expect(status.message).toBe(
      "Pod was rejected: Node didn't have enough resource: cpu (after 3 tries; it is tried again as soon as it could fit, where a kubelet would have failed it for good)",
    );
    expect(status.startTime).toBeUndefined();
    const admitted = statusOf(smallPod(["a"]), seenPod(), {}, { previous: status });
    expect([admitted.phase, admitted.reason, admitted.message]).toEqual(["Pending", undefined, undefined]);
  });
});

describe("the status of an ended pod", () => {
  const end = ended("preempted", "Preempting", "Preempted in order to admit critical pod");

  test("is Failed only once no container runs", () => {
    const running = statusOf(smallPod(["a"]), seenPod(seenContainer("a")));
    const ends = statusOf(
      smallPod(["a"]),
      seenPod(seenContainer("a")),
      { state: "terminating", end },
      { previous: running },
    );
    expect([ends.phase, ends.reason]).toEqual(["Running", undefined]);
    expect(condition(ends, "DisruptionTarget")).toBeUndefined();
    // Ready follows the containers: the end is applied to an already computed status
    expect(condition(ends, "Ready")?.status).toBe("True");
    expect(statusOf(smallPod(["a"]), seenPod(seenContainer("a")), { state: "terminating", end }).phase).toBe("Running");
    const gone = statusOf(
      smallPod(["a"]),
      stopped(exited("a", 143)),
      { state: "terminating", end },
      { previous: ends },
    );
    expect([gone.phase, gone.reason, gone.message]).toEqual(["Failed", "Preempting", end.message]);
    expect(condition(gone, "DisruptionTarget")).toMatchObject({
      status: "True",
      reason: "TerminationByKubelet",
      message: "Pod was preempted by Kubelet to accommodate a critical pod.",
    });
    expect(condition(gone, "Ready")).toMatchObject({ status: "False", reason: "PodFailed" });
  });
  test("is Succeeded when its containers exit 0, as in the kubelet: only a condition shows the end", () => {
    const record = { state: "terminating", end } as const;
    const gone = statusOf(smallPod(["a"]), stopped(exited("a", 0)), record);
    expect([gone.phase, gone.reason, gone.message]).toEqual(["Succeeded", undefined, undefined]);
    expect(condition(gone, "DisruptionTarget")?.reason).toBe("TerminationByKubelet");
    expect(condition(gone, "Ready")).toMatchObject({ status: "False", reason: "PodCompleted" });
    const one = statusOf(smallPod(["a", "b"]), stopped(exited("a", 0), exited("b", 1)), record);
    expect([one.phase, one.reason]).toEqual(["Failed", "Preempting"]);
    const late = { state: "terminating", end: ended("deadline", "DeadlineExceeded", "m") } as const;
    expect(statusOf(smallPod(["a"]), stopped(exited("a", 0)), late)).toMatchObject({ phase: "Failed", message: "m" });
  });
  test("is Failed for a static pod, since it would have been restarted", () => {
    const pod = smallPod(["a"]);
    const annotations = { ...pod.metadata["annotations"], "kubernetes.io/config.source": "file" };
    const fixed = { ...pod, metadata: { ...pod.metadata, annotations } };
    const gone = statusOf(fixed, stopped(exited("a", 0)), { state: "terminating", end });
    expect([gone.phase, gone.reason]).toEqual(["Failed", "Preempting"]);
  });
  test("has the DisruptionTarget condition for an eviction, not for a deadline", () => {
    const at = (e: PodEnd) =>
      condition(statusOf(smallPod(["a"]), null, { state: "terminated", end: e }), "DisruptionTarget");
    expect(at(ended("deadline", "DeadlineExceeded", "m"))).toBeUndefined();
    expect(at(ended("evicted", "Evicted", "The node was low on resource: memory."))?.message).toBe(
      "The node was low on resource: memory.",
    );
  });
  test("that was deleted depends on its containers' exit codes", () => {
    const deleted = { state: "terminated", end: ended("deleted", "", "") } as const;
    expect(statusOf(smallPod(["a"]), stopped(exited("a", 0)), deleted).phase).toBe("Succeeded");
    expect(statusOf(smallPod(["a"]), stopped(exited("a", 137)), deleted).phase).toBe("Failed");
    const lost = statusOf(smallPod(["a"]), null, deleted);
    expect(lost.containerStatuses[0]?.state.terminated).toEqual({
      exitCode: 137,
      reason: "ContainerStatusUnknown",
      message: "The container could not be located when the pod was terminated",
    });
  });
  test("never becomes Running again", () => {
    const gone = statusOf(smallPod(["a"]), stopped(exited("a", 143)), { state: "terminated", end });
    expect(statusOf(smallPod(["a"]), seenPod(seenContainer("a")), {}, { previous: gone })).toMatchObject({
      phase: "Failed",
      reason: "Preempting",
    });
  });
});

describe("a pod that ends by itself", () => {
  const job = (policy: "OnFailure" | "Never") => runnableOf(smallPod(["a", "b"], [], { restartPolicy: policy }));
  test("is Succeeded or Failed by its restartPolicy", () => {
    expect(finishedPhase(job("Never"), seenPod(exited("a", 0), exited("b", 0)), null)).toBe("Succeeded");
    expect(finishedPhase(job("Never"), seenPod(exited("a", 0), exited("b", 1)), null)).toBe("Failed");
    expect(finishedPhase(job("OnFailure"), seenPod(exited("a", 0), exited("b", 1)), null)).toBeNull();
    expect(finishedPhase(job("Never"), seenPod(exited("a", 0), seenContainer("b")), null)).toBeNull();
    expect(finishedPhase(job("Never"), null, null)).toBeNull();
  });
  test("keeps its phase when the runtime has forgotten it", () => {
    const object = smallPod(["a"], [], { restartPolicy: "Never" });
    const reported = statusOf(object, seenPod(exited("a", 0)));
    expect(finishedPhase(runnableOf(object), null, reported)).toBe("Succeeded");
  });
});

describe("the termination message in a status", () => {
  test("is cut to the container's share of 12 KiB, in whole characters", () => {
    const message = "ü".repeat(10_000);
    const [a] = statusOf(smallPod(["a", "b", "c"]), seenPod(exited("a", 1, { message }))).containerStatuses;
    expect(a?.state.terminated?.message).toBe("ü".repeat(2048));
    const odd = statusOf(smallPod(["a"]), seenPod(exited("a", 1, { message: `x${message}` }))).containerStatuses[0];
    expect(odd?.state.terminated?.message).toBe(`x${"ü".repeat(6143)}`);
  });
});

describe("the IPs in a status", () => {
  const ips = (own: readonly string[], hostIPs: readonly string[], hostNetwork = false) => {
    const seen = { ...seenPod(), sandboxes: [seenSandbox("s0", { ips: own })] };
    return statusOf(smallPod(["a"], [], { hostNetwork }), seen, {}, { hostIPs }).podIPs?.map((i) => i.ip);
  };
  test("are one of each family, the node's family first", () => {
    expect(ips(["fd00::2", "10.0.0.2", "10.0.0.3"], ["192.168.0.1"])).toEqual(["10.0.0.2", "fd00::2"]);
    expect(ips(["10.0.0.2", "fd00::2"], ["fd00::1"])).toEqual(["fd00::2", "10.0.0.2"]);
    expect(ips(["10.0.0.2"], [])).toEqual(["10.0.0.2"]);
    expect(ips([], ["192.168.0.1", "fd00::1"], true)).toEqual(["192.168.0.1", "fd00::1"]);
  });
});
