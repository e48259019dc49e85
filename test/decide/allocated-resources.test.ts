import { describe, expect, test } from "vitest";
import { container, running } from "../kit/containers.ts";
import { burstable, podOf } from "../kit/pods.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { cgroupsOf, filesAt, Gi, Mi, outcome, reasonsOf, valuesAt } from "./ask.ts";

const POD = "/kubepods/burstable/podu";
const WANTED = [
  { cpu: "2", memory: "2Gi" },
  { cpu: "4", memory: "4Gi" },
] as const;
const desired = (status?: Json): Json => podOf([container("c", ...WANTED)], {}, status === undefined ? {} : { status });
const statusOf = (allocated?: Json, limits?: Json): Json => ({
  qosClass: "Burstable",
  containerStatuses: [
    {
      ...running("c", "id1"),
      ...(allocated && { allocatedResources: allocated }),
      ...(limits && { resources: { limits } }),
    },
  ],
});
const state = (resources: Json, more: Json = {}): Json => ({
  assignments: { allocated_pods_state: { entries: { u: { ContainerResources: { c: resources }, ...more } } } },
});

describe("cgroup values while a resize is pending", () => {
  test("follow allocatedResources and the limits in force of the pod's status", () => {
    const input = snapshot({ pods: [desired(statusOf({ cpu: "1", memory: "1Gi" }, { cpu: "2", memory: "3Gi" }))] });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 1024, cpuQuota: 200_000, memory: 3 * Gi });
    expect(valuesAt(input, `${POD}/id1`)).toMatchObject({
      cpuShares: 1024,
      cpuQuota: 200_000,
      memory: 3 * Gi,
      oomScoreAdj: 875,
    });
  });
  test("follow allocated_pods_state, which takes precedence over the status", () => {
    const allocated = state({ requests: { cpu: "500m", memory: "512Mi" }, limits: { cpu: "1", memory: "1Gi" } });
    const input = snapshot({ pods: [desired(statusOf({ cpu: "1", memory: "1Gi" }))], ...allocated });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 512, cpuQuota: 100_000, memory: Gi });
    expect(valuesAt(input, `${POD}/id1`)).toMatchObject({ cpuShares: 512, cpuQuota: 100_000, memory: Gi });
  });
  test("follow the spec once the resize is allocated", () => {
    const granted = snapshot({
      pods: [desired(statusOf({ cpu: "2", memory: "2048Mi" }, { cpu: "1", memory: "1Gi" }))],
    });
    expect(valuesAt(granted, POD)).toMatchObject({ cpuShares: 2048, cpuQuota: 400_000, memory: 4 * Gi });
    const same = snapshot({
      pods: [desired()],
      ...state({ requests: { cpu: "2000m", memory: "2Gi" }, limits: { cpu: "4", memory: "4Gi" } }),
    });
    expect(valuesAt(same, POD)).toMatchObject({ cpuShares: 2048, cpuQuota: 400_000 });
    expect(reasonsOf(cgroupsOf(same)).some((r) => r.code === "resize_pending")).toBe(false);
  });
  test("follow the spec when allocated_pods_state has no entry for the pod or the container", () => {
    const other = { assignments: { allocated_pods_state: { entries: { other: { ContainerResources: { c: {} } } } } } };
    expect(valuesAt(snapshot({ pods: [desired()], ...other }), POD).cpuShares).toBe(2048);
    const unnamed = {
      assignments: { allocated_pods_state: { entries: { u: { ContainerResources: { other: {} } } } } },
    };
    expect(valuesAt(snapshot({ pods: [desired()], ...unnamed }), POD).cpuShares).toBe(2048);
  });
  test("omit limits that are not allocated yet", () => {
    const allocated = state({ requests: { cpu: "2", memory: "2Gi" } });
    expect(valuesAt(snapshot({ pods: [desired()], ...allocated }), POD)).not.toHaveProperty("cpuQuota");
    expect(filesAt(snapshot({ pods: [desired()], ...allocated }), `${POD}/c`)).not.toHaveProperty("memory.max");
  });
  test("use allocated pod-level resources too", () => {
    const podLevel = { resources: { requests: { cpu: "3", memory: "3Gi" }, limits: { cpu: "6", memory: "6Gi" } } };
    const allocated = {
      PodLevelResources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "2", memory: "2Gi" } },
    };
    const input = snapshot({ pods: [podOf([container("c")], podLevel)], ...state({}, allocated) });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 1024, cpuQuota: 200_000, memory: 2 * Gi });
  });
  const pending = { conditions: [{ type: "PodResizePending", status: "True", reason: "Deferred" }] };
  test("keep limits in force while limits alone are pending, and use the spec's without the condition", () => {
    const [asked] = WANTED;
    const reported = { ...statusOf(asked, { cpu: "2", memory: "3Gi" }), ...pending };
    expect(valuesAt(snapshot({ pods: [desired(reported)] }), POD)).toMatchObject({
      ...{ cpuShares: 2048, cpuQuota: 200_000, memory: 3 * Gi },
    });
    const { conditions: _, ...settled } = reported;
    expect(valuesAt(snapshot({ pods: [desired(settled)] }), POD)).toMatchObject({ cpuQuota: 400_000, memory: 4 * Gi });
    const uneven = podOf([container("c", asked, { cpu: "4.013", memory: "4Gi" })], {}, { status: reported });
    const rounded = { ...statusOf(asked, { cpu: "4020m", memory: "3Gi" }), ...pending };
    expect(valuesAt(snapshot({ pods: [{ ...uneven, status: rounded }] }), POD)).toMatchObject({ cpuQuota: 401_300 });
  });
  test("omit a request or a limit that the pending resize adds", () => {
    const reported = {
      qosClass: "Burstable",
      containerStatuses: [{ ...running("c", "id1"), resources: {} }],
      ...pending,
    };
    const input = snapshot({ pods: [desired(reported)] });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 2 });
    expect(valuesAt(input, POD)).not.toHaveProperty("cpuQuota");
    expect(valuesAt(input, POD)).not.toHaveProperty("memory");
  });
  describe("of pod-level resources", () => {
    const podLevel = { resources: { requests: { cpu: "3", memory: "3Gi" }, limits: { cpu: "6", memory: "6Gi" } } };
    // as a kubelet reports it: sums over the pod, including its overhead
    const reported = {
      ...{ qosClass: "Burstable", phase: "Running", ...pending },
      allocatedResources: { cpu: "1250m", memory: "1Gi", "ephemeral-storage": "1Gi" },
      resources: { requests: { cpu: "1250m", memory: "1Gi" }, limits: { cpu: "2250m", memory: "2Gi" } },
    };
    const waiting = podOf([container("c")], { ...podLevel, overhead: { cpu: "250m" } }, { status: reported });
    test("follow the allocated resources in the status, overhead included", () => {
      expect(valuesAt(snapshot({ pods: [waiting] }), POD)).toMatchObject({
        ...{ cpuShares: 1280, cpuQuota: 225_000, memory: 2 * Gi },
      });
      expect(reasonsOf(cgroupsOf(snapshot({ pods: [waiting] })))).toContainEqual(
        expect.objectContaining({ code: "resize_pending", at: POD, field: "resources" }),
      );
    });
    test("use the spec's limits when the status reports none", () => {
      const { resources: _, ...rest } = reported;
      const pod = podOf([container("c")], podLevel, { status: { ...rest, allocatedResources: { cpu: "1" } } });
      expect(valuesAt(snapshot({ pods: [pod] }), POD)).toMatchObject({ cpuShares: 1024, cpuQuota: 600_000 });
    });
    test("follow the spec when the gate is off, whatever the status or the state file says", () => {
      const off = { featureGates: { InPlacePodLevelResourcesVerticalScaling: false } };
      expect(valuesAt(configured(off, { pods: [waiting] }), POD)).toMatchObject({ cpuShares: 3328, memory: 6 * Gi });
      const file = state({}, { PodLevelResources: { requests: { cpu: "1" } } });
      const pod = podOf([container("c")], podLevel);
      expect(valuesAt(configured(off, { pods: [pod], ...file }), POD)).toMatchObject({ cpuShares: 3072 });
    });
  });
  test("of sidecars follow the resize like those of other containers", () => {
    const pod = podOf([container("c", { cpu: "1" })], {
      initContainers: [container("s", { cpu: "2" }, undefined, { restartPolicy: "Always" })],
    });
    const allocated = {
      assignments: {
        allocated_pods_state: { entries: { u: { ContainerResources: { s: { requests: { cpu: "500m" } } } } } },
      },
    };
    expect(valuesAt(snapshot({ pods: [pod], ...allocated }), POD).cpuShares).toBe(1536);
  });
  test("come with the reason resize_pending, which names the container", () => {
    const input = snapshot({ pods: [desired(statusOf({ cpu: "1", memory: "1Gi" }))] });
    expect(reasonsOf(cgroupsOf(input))).toContainEqual(
      expect.objectContaining({ code: "resize_pending", at: POD, field: "resources", numbers: { container: "c" } }),
    );
  });
  test("treat the kernel's `no limit` number in the status as no limit", () => {
    const unlimited = { cpu: "4", memory: "9223372036854771712" };
    const input = snapshot({ pods: [desired(statusOf({ cpu: "1", memory: "1Gi" }, unlimited))] });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 1024, cpuQuota: 400_000 });
    expect(valuesAt(input, POD)).not.toHaveProperty("memory");
  });
});

describe("a pending resize and the rest of the node", () => {
  // the QoS manager's activePods are kl.GetActivePods, which returns the pods as specified; getAllocatedPods returns
  // other values
  test("the burstable tier sums the requests of the specs, not the allocated ones", () => {
    const allocated = state({ requests: { cpu: "500m", memory: "512Mi" } });
    const input = configured({}, { pods: [desired(), burstable("b", "1", "1Mi")], ...allocated });
    expect(valuesAt(input, "/kubepods/burstable").cpuShares).toBe(3072);
  });
  // allocated amounts are summed like requested ones
  const huge = String(Number.MAX_SAFE_INTEGER);
  const two = [container("a"), container("b")];
  const both = { requests: { memory: huge }, limits: { memory: huge } };
  const inStatus = ["a", "b"].map((name) => ({
    name,
    allocatedResources: { memory: huge },
    resources: { limits: { memory: huge } },
  }));
  test.each<[string, Json]>([
    [
      "allocated_pods_state",
      { assignments: { allocated_pods_state: { entries: { u: { ContainerResources: { a: both, b: both } } } } } },
    ],
    ["the status", { pods: [podOf(two, {}, { status: { qosClass: "Guaranteed", containerStatuses: inStatus } })] }],
  ])("sums in %s that overflow are bad input", (_name, parts) => {
    const pods = [podOf(two, {}, { status: { qosClass: "Guaranteed" } })];
    expect(outcome("cgroups", snapshot({ pods, ...parts }))).toBe("bad input");
  });
  test("sums in the specs that overflow are bad input", () => {
    expect(
      outcome(
        "cgroups",
        snapshot({ pods: [podOf([container("a", { memory: huge }), container("b", { memory: `${8 * Mi}` })])] }),
      ),
    ).toBe("bad input");
  });
});
