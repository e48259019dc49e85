import { describe, expect, test } from "vitest";
import { decodedPod } from "../../../../actuator/lifecycle/decoded-pod.ts";
import type { RunnablePod } from "../../../../actuator/lifecycle/pod.ts";
import { resourcesIn, sameResources, split, withResources } from "../../../../actuator/pods/resize/forms.ts";
import { resizeText } from "../../../../actuator/pods/resize/resize-events.ts";
import { nodeOf, sortedResizes } from "../../../../actuator/pods/resize/resizer.ts";
import { restartsOf } from "../../../../api/decide/resize/actuation.ts";
import { whyInfeasible } from "../../../../api/decide/resize/refusals.ts";
import { whyInvalid } from "../../../../api/decide/resize/validation.ts";
import type { Pod } from "../../../../api/model/pod.ts";
import { v1_36 } from "../../../../api/profiles/v1_36.ts";
import { podOf } from "../../../kit/pods.ts";

type Fields = Readonly<Record<string, unknown>>;
const object = (resources: Fields, more: Fields = {}, container: Fields = {}): Fields =>
  podOf([{ name: "app", image: "i", resources, ...container }], more);
const decoded = (fields: Fields): Pod => {
  const pod = decodedPod(fields);
  if (pod === null) throw new Error("no pod");
  return pod;
};
interface Configured {
  readonly cpuManagerPolicy?: string;
  readonly memoryManagerPolicy?: string;
  readonly memorySwap?: Fields;
  readonly featureGates?: Fields;
}
const SWAPS = { memorySwap: { swapBehavior: "LimitedSwap" } };
const why = (
  then: Fields,
  now: Fields,
  configuration: Configured = {},
  { isCritical = false, restarts = false, cgroup = 2 as 1 | 2 } = {},
): string | null => {
  const more = { priority: isCritical ? 2_000_000_000 : 0 };
  const policy = restarts ? { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] } : {};
  const [desired, allocated] = [then, now].map((resources) => decoded(object(resources, more, policy))) as [Pod, Pod];
  const node = nodeOf({ kubeletconfig: configuration }, v1_36, { cpu: "4", memory: "8Gi" }, cgroup);
  return (whyInvalid(desired, allocated, node) ?? whyInfeasible(desired, allocated, node))?.message ?? null;
};

describe("splitting a new spec into a resize and what takes effect at once", () => {
  test("keeps the resources, and takes all else", () => {
    const now = object({ requests: { cpu: "1" } });
    const then = object({ requests: { cpu: "2" } }, { priority: 5 }, { image: "other" });
    expect(split(then, now)).toEqual({
      isResize: true,
      atOnce: object({ requests: { cpu: "1" } }, { priority: 5 }, { image: "other" }),
    });
  });
  test("sees no resize in the same amount written differently", () => {
    const then = object({ requests: { cpu: "1000m", memory: "1024Mi" } });
    expect(split(then, object({ requests: { cpu: 1, memory: "1Gi" } }))).toEqual({ isResize: false, atOnce: then });
  });
  test("includes the resources of init containers and of the pod itself", () => {
    const made = (cpu: string): Fields =>
      object(
        {},
        { resources: { limits: { cpu } }, initContainers: [{ name: "init", resources: { limits: { cpu } } }] },
      );
    expect(split(made("2"), made("1"))).toEqual({ isResize: true, atOnce: made("1") });
    expect(split(made("2"), object({})).atOnce).not.toHaveProperty("spec.resources");
  });
  test("takes the resources of a new container as they are", () => {
    const both = {
      ...object({}),
      spec: { containers: [{ name: "app" }, { name: "b", resources: { limits: { cpu: "1" } } }] },
    };
    expect(split(both, object({}))).toEqual({ isResize: false, atOnce: both });
  });
  test("withResources restores the former resources, and sameResources compares them", () => {
    const now = object({ requests: { cpu: "1" } }, { resources: { limits: { cpu: "3" } } });
    const then = object({ requests: { cpu: "2" } }, { resources: { limits: { cpu: "4" } } });
    expect(withResources(then, resourcesIn(now))).toEqual(now);
    expect(sameResources({ limits: { cpu: "1" } }, { limits: { cpu: "1" }, requests: {} })).toBe(true);
    expect(sameResources({ limits: { cpu: "1" } }, {})).toBe(false);
  });
});

describe("infeasible resizes", () => {
  const guaranteed = (cpu: string, memory: string): Fields => ({ requests: { cpu, memory }, limits: { cpu, memory } });
  const burstable = (memory: string, limit = "2Gi"): Fields => ({ requests: { memory }, limits: { memory: limit } });

  test.each<[string, string | null, Fields, Fields, Configured, { isCritical?: boolean; restarts?: boolean }]>([
    ["room", null, guaranteed("2", "1Gi"), guaranteed("1", "1Gi"), {}, {}],
    [
      "both too large",
      "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000; memory, requested: 9663676416, allocatable: 8589934592",
      guaranteed("5", "9Gi"),
      guaranteed("1", "1Gi"),
      {},
      {},
    ],
    [
      "memory of a static policy",
      'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
      guaranteed("1", "2Gi"),
      guaranteed("1", "1Gi"),
      { memoryManagerPolicy: "Static" },
      {},
    ],
    [
      "CPUs beside a static memory policy",
      null,
      guaranteed("2", "1Gi"),
      guaranteed("1", "1Gi"),
      { memoryManagerPolicy: "Static" },
      {},
    ],
    [
      "memory beside a static CPU policy",
      null,
      guaranteed("1", "2Gi"),
      guaranteed("1", "1Gi"),
      { cpuManagerPolicy: "static" },
      {},
    ],
    [
      "Burstable beside static policies",
      null,
      burstable("2Gi"),
      burstable("1Gi"),
      { cpuManagerPolicy: "static", memoryManagerPolicy: "Static" },
      {},
    ],
    [
      "a request taken",
      "resource requests cannot be removed",
      { requests: { memory: "1" } },
      { requests: { memory: "1", cpu: "1" } },
      {},
      {},
    ],
    [
      "another resource",
      "only cpu and memory resources are mutable",
      { requests: { cpu: "1", "ephemeral-storage": "2Gi" } },
      { requests: { cpu: "1", "ephemeral-storage": "1Gi" } },
      {},
      {},
    ],
    [
      "swap",
      "In-place resize of containers with swap is not supported.",
      burstable("2Gi"),
      burstable("1Gi"),
      SWAPS,
      {},
    ],
    ["swap, started anew", null, burstable("2Gi"), burstable("1Gi"), SWAPS, { restarts: true }],
    ["swap, critical", null, burstable("2Gi"), burstable("1Gi"), SWAPS, { isCritical: true }],
    ["swap, the limit alone", null, burstable("1Gi", "3Gi"), burstable("1Gi"), SWAPS, {}],
  ])("%s: %s", (_name, expected, then, now, node, more) => {
    expect(why(then, now, node, more)).toBe(expected);
  });

  test("feature gates and cgroup v1 lift their part of the rules", () => {
    const policies = { cpuManagerPolicy: "static", memoryManagerPolicy: "Static" };
    const gates = { InPlacePodVerticalScalingExclusiveCPUs: true, InPlacePodVerticalScalingExclusiveMemory: true };
    const [then, now] = [guaranteed("2", "2Gi"), guaranteed("1", "1Gi")];
    expect(why(then, now, policies)).toMatch(/CPU Manager policy/);
    expect(why(then, now, { ...policies, featureGates: gates })).toBeNull();
    expect(why(burstable("2Gi"), burstable("1Gi"), SWAPS, { cgroup: 1 })).toBeNull();
  });
});

test("restartsOf lists running containers whose resizePolicy requires a restart for the changed resource", () => {
  const policy = { resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }] };
  const restarts = (limits: Fields, container: Fields, isRunning = true) =>
    restartsOf(
      decoded(object({ limits: { cpu: "1", memory: "1Gi" } }, {}, container)),
      decoded(object({ limits }, {}, container)),
      { config: nodeOf({}, v1_36, {}, 2).config, isRunning: () => isRunning },
    );
  expect(restarts({ cpu: "2", memory: "1Gi" }, policy)).toEqual([{ container: "app", resources: ["cpu"] }]);
  expect(restarts({ cpu: "1", memory: "2Gi" }, policy)).toEqual([]);
  expect(restarts({ cpu: "2", memory: "1Gi" }, {})).toEqual([]);
  expect(restarts({ cpu: "2", memory: "1Gi" }, policy, false)).toEqual([]);
});

test("resizeText writes limits first, names in order and amounts in their shortest form", () => {
  const pod = decoded(
    object(
      { requests: { memory: "1024Mi", cpu: "0.5" }, limits: { memory: "2048Mi", cpu: "1000m" } },
      { initContainers: [{ name: "init", restartPolicy: "Always" }] },
    ),
  );
  expect(resizeText("error", pod, 3, "a < b & c")).toBe(
    'Pod resize error: {"initContainers":[{"name":"init","resources":{}}],"containers":[{"name":"app","resources":{"limits":{"cpu":"1","memory":"2Gi"},"requests":{"cpu":"500m","memory":"1Gi"}}}],"generation":3,"error":"a \\u003c b \\u0026 c"}',
  );
});

test("sortedResizes puts shrinking first, then by priority, then Guaranteed, then by time of waiting", () => {
  const wanted = (name: string, cpu: string, priority: number, sinceMs: number | null, memory = {}) => {
    const of = (amount: string) => ({ cpu: amount, ...memory });
    const form = (amount: string) =>
      object({ requests: of(amount), ...("memory" in memory && { limits: of(amount) }) }, { priority });
    const pod = { uid: name, object: form(cpu), spec: { priority } } as unknown as RunnablePod;
    const resize = sinceMs === null ? null : { reason: "Deferred" as const, message: "", sinceMs };
    const record = { pod: form("2"), resize } as never;
    return { pod, known: { uid: name, pod, record, runtimePod: null } };
  };
  const all = [
    wanted("late", "3", 0, 20),
    wanted("new", "3", 0, null),
    wanted("early", "3", 0, 10),
    wanted("guaranteed", "3", 0, 30, { memory: "1Gi" }),
    wanted("high", "3", 9, 40),
    wanted("less", "1", 0, 50),
  ];
  const turn = sortedResizes(all);
  expect(turn.map(({ known }) => known.uid)).toEqual(["less", "high", "guaranteed", "early", "late", "new"]);
});
