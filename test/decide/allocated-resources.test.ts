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

describe("a resize that is not granted yet", () => {
  test("the status tells what is allocated: requests, and limits as they are in force", () => {
    const input = snapshot({ pods: [desired(statusOf({ cpu: "1", memory: "1Gi" }, { cpu: "2", memory: "3Gi" }))] });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 1024, cpuQuota: 200_000, memory: 3 * Gi });
    expect(valuesAt(input, `${POD}/id1`)).toMatchObject({
      cpuShares: 1024,
      cpuQuota: 200_000,
      memory: 3 * Gi,
      oomScoreAdj: 875,
    });
  });
  test("allocated_pods_state tells it all, and goes before the status", () => {
    const allocated = state({ requests: { cpu: "500m", memory: "512Mi" }, limits: { cpu: "1", memory: "1Gi" } });
    const input = snapshot({ pods: [desired(statusOf({ cpu: "1", memory: "1Gi" }))], ...allocated });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 512, cpuQuota: 100_000, memory: Gi });
    expect(valuesAt(input, `${POD}/id1`)).toMatchObject({ cpuShares: 512, cpuQuota: 100_000, memory: Gi });
  });
  test("once granted, the spec stands", () => {
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
  test("a state that does not know the pod or the container says nothing of it", () => {
    const other = { assignments: { allocated_pods_state: { entries: { other: { ContainerResources: { c: {} } } } } } };
    expect(valuesAt(snapshot({ pods: [desired()], ...other }), POD).cpuShares).toBe(2048);
    const unnamed = {
      assignments: { allocated_pods_state: { entries: { u: { ContainerResources: { other: {} } } } } },
    };
    expect(valuesAt(snapshot({ pods: [desired()], ...unnamed }), POD).cpuShares).toBe(2048);
  });
  test("limits that are not allocated yet are not written", () => {
    const allocated = state({ requests: { cpu: "2", memory: "2Gi" } });
    expect(valuesAt(snapshot({ pods: [desired()], ...allocated }), POD)).not.toHaveProperty("cpuQuota");
    expect(filesAt(snapshot({ pods: [desired()], ...allocated }), `${POD}/c`)).not.toHaveProperty("memory.max");
  });
  test("pod-level resources are allocated too", () => {
    const podLevel = { resources: { requests: { cpu: "3", memory: "3Gi" }, limits: { cpu: "6", memory: "6Gi" } } };
    const allocated = {
      PodLevelResources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "2", memory: "2Gi" } },
    };
    const input = snapshot({ pods: [podOf([container("c")], podLevel)], ...state({}, allocated) });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 1024, cpuQuota: 200_000, memory: 2 * Gi });
  });
  test("sidecars are resized as containers are", () => {
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
  test("the answer says that a resize is pending, and of what", () => {
    const input = snapshot({ pods: [desired(statusOf({ cpu: "1", memory: "1Gi" }))] });
    expect(reasonsOf(cgroupsOf(input))).toContainEqual(
      expect.objectContaining({ code: "resize_pending", at: POD, field: "resources", numbers: { container: "c" } }),
    );
  });
  test("a reading of the kernel's `no limit` in the status is left out", () => {
    const unlimited = { cpu: "4", memory: "9223372036854771712" };
    const input = snapshot({ pods: [desired(statusOf({ cpu: "1", memory: "1Gi" }, unlimited))] });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 1024, memory: 4 * Gi });
  });
});

describe("a resize and the rest of the node", () => {
  // the QoS manager's activePods are kl.GetActivePods: the pods as specified; getAllocatedPods is another list
  test("the burstable tier counts what is asked for, not what is allocated", () => {
    const allocated = state({ requests: { cpu: "500m", memory: "512Mi" } });
    const input = configured({}, { pods: [desired(), burstable("b", "1", "1Mi")], ...allocated });
    expect(valuesAt(input, "/kubepods/burstable").cpuShares).toBe(3072);
  });
  // allocated amounts are summed as those that are asked for
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
  ])("absurd sums in %s end in an answer or a refusal", (_name, parts) => {
    const pods = [podOf(two, {}, { status: { qosClass: "Guaranteed" } })];
    expect(() => outcome("cgroups", snapshot({ pods, ...parts }))).not.toThrow();
  });
  test("absurd sums in the specs are bad input", () => {
    expect(
      outcome(
        "cgroups",
        snapshot({ pods: [podOf([container("a", { memory: huge }), container("b", { memory: `${8 * Mi}` })])] }),
      ),
    ).toBe("bad input");
  });
});
