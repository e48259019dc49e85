import { describe, expect, test } from "vitest";
import type { RuntimePod } from "../../../actuator/containerd/cri.ts";
import { restartGracePeriod } from "../../../actuator/lifecycle/container-termination.ts";
import type { RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import { podActions } from "../../../actuator/lifecycle/pod-actions.ts";
import { podStatus } from "../../../actuator/lifecycle/pod-status.ts";
import { CRASH_LOOP_BACK_OFF } from "../../../api/decide/probes/back-off.ts";
import type { ProbeType, StoredResult } from "../../../api/model/probe-spec.ts";
import { EXEC, probe } from "../../kit/runnable-pods.ts";
import { hashOf, seenContainer, seenPod } from "../../kit/seen-pods.ts";
import { recordOf, runnableOf, type SmallPod, smallPod } from "./small-pods.ts";

const PROBE = probe({ handler: EXEC, periodSeconds: 10 });
const NONE = { startup: null, liveness: null, readiness: null };

/** The pod with probes of these types on one of its containers. */
function probing(object: SmallPod, name: string, ...types: readonly ProbeType[]): RunnablePod {
  const pod = runnableOf(object);
  const probes = { ...NONE, ...Object.fromEntries(types.map((type) => [type, PROBE])) };
  const withProbes = (list: RunnablePod["spec"]["containers"]) =>
    list.map((container) => (container.name === name ? { ...container, probes } : container));
  const { containers, initContainers } = pod.spec;
  const spec = { ...pod.spec, containers: withProbes(containers), initContainers: withProbes(initContainers) };
  return { ...pod, spec };
}
const results =
  (stored: Readonly<Record<string, StoredResult>>) =>
  (id: string, type: ProbeType): StoredResult | undefined =>
    stored[`${id} ${type}`];
const actionsOf = (pod: RunnablePod, seen: RuntimePod, stored: Readonly<Record<string, StoredResult>>) =>
  podActions(pod, seen, {
    nowMs: 100_000,
    backOff: {},
    limits: CRASH_LOOP_BACK_OFF,
    hashOf,
    resultOf: results(stored),
  });

describe("a container with a failed probe", () => {
  test.each([
    ["liveness", "Always", ", will be restarted", 1],
    ["liveness", "OnFailure", ", will be restarted", 1],
    ["liveness", "Never", "", 0],
    ["startup", "Always", ", will be restarted", 1],
    ["startup", "Never", "", 0],
  ] as const)("is killed and restarted by its policy: %s, restart policy %s", (type, restartPolicy, tail, starts) => {
    const seen = seenPod(seenContainer("a"), seenContainer("b"));
    const pod = probing(smallPod(["a", "b"], [], { restartPolicy }), "a", type);
    const actions = actionsOf(pod, seen, { [`a-0 ${type}`]: "Failure" });
    expect(actions.toKill).toEqual([
      { containerId: "a-0", name: "a", message: `Container a failed ${type} probe${tail}`, probe: type },
    ]);
    expect(actions.toStart.map(({ name }) => name)).toEqual(["a"].slice(0, starts));
    expect(actions.killPod).toBe(false);
  });
  test("ends the pod when it was the only one left and is not restarted", () => {
    const pod = probing(smallPod(["a"], [], { restartPolicy: "Never" }), "a", "liveness");
    expect(actionsOf(pod, seenPod(seenContainer("a")), { "a-0 liveness": "Failure" })).toMatchObject({ killPod: true });
  });
  test("is not restarted when its readiness failed, or another instance's liveness", () => {
    const pod = probing(smallPod(["a"]), "a", "liveness", "readiness");
    const stored = { "a-0 readiness": "Failure", "a-7 liveness": "Failure", "a-0 liveness": "Success" } as const;
    expect(actionsOf(pod, seenPod(seenContainer("a")), stored)).toMatchObject({ toKill: [], toStart: [] });
  });
  test("has the probe's grace period, and a deletion's takes precedence", () => {
    const pod = runnableOf(smallPod(["a"]));
    expect(restartGracePeriod(pod, { ...PROBE, terminationGracePeriodSeconds: 3 })).toBe(3);
    expect(restartGracePeriod(pod, PROBE)).toBe(pod.spec.terminationGracePeriodSeconds);
    expect(restartGracePeriod({ ...pod, deletion: { atMs: 0, graceSeconds: 7 } }, PROBE)).toBe(7);
  });
});

describe("a sidecar", () => {
  const seen = seenPod(seenContainer("s"));
  const pod = probing(smallPod(["a"], ["s*", "i"]), "s", "startup", "liveness");
  test.each([
    ["that was not asked yet", {}],
    ["that has not started", { "s-0 startup": "Unknown" }],
  ] as const)("%s holds back the following containers", (_, stored) => {
    expect(actionsOf(pod, seen, stored)).toMatchObject({ initToStart: [], toStart: [], toKill: [] });
  });
  test("that has started lets the following containers begin", () => {
    const { initToStart } = actionsOf(pod, seen, { "s-0 startup": "Success" });
    expect(initToStart).toEqual([{ name: "i", attempt: 0 }]);
  });
  test.each(["startup", "liveness"] as const)("whose %s probe failed is restarted", (type) => {
    const stored = { "s-0 startup": "Success", [`s-0 ${type}`]: "Failure" } as const;
    const actions = actionsOf(pod, seen, stored);
    expect(actions.toKill).toEqual([
      { containerId: "s-0", name: "s", message: `Init container s failed ${type} probe`, probe: type },
    ]);
    expect(actions.initToStart).toContainEqual({ name: "s", attempt: 1 });
    expect(actions.initToStart.some(({ name }) => name === "i")).toBe(type === "liveness");
  });
});

describe("the container status", () => {
  const statusOf = (pod: RunnablePod, isStarted: boolean, isReady: boolean) =>
    podStatus(pod, recordOf(smallPod(["a"])), seenPod(seenContainer("a")), {
      nowMs: 100_000,
      hostIPs: ["10.0.0.2"],
      qosClass: "BestEffort",
      previous: null,
      probeResults: { isStarted: () => isStarted, isReady: () => isReady },
    });
  test.each([
    [["startup"], false, false, [false, false]],
    [["startup"], true, false, [true, true]],
    [["readiness"], false, false, [true, false]],
    [["readiness"], false, true, [true, true]],
    [["startup", "readiness"], false, true, [false, false]],
    [["liveness"], false, false, [true, true]],
  ] as const)("with probes %j: has started %s, ready %s", (types, isStarted, isReady, [started, ready]) => {
    const status = statusOf(probing(smallPod(["a"]), "a", ...types), isStarted, isReady);
    expect(status.containerStatuses).toMatchObject([{ started, ready }]);
    expect(status.conditions.find(({ type }) => type === "Ready")?.status).toBe(ready ? "True" : "False");
  });
});
