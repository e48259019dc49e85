import { describe, expect, test } from "vitest";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import type { PodResize, ResizeDecision } from "../../api/model/resize.ts";
import { container, running } from "../kit/containers.ts";
import { node } from "../kit/nodes.ts";
import { podOf } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";

const SIZE = { cpu: "4", memory: "8Gi", pods: "110" };
const pod = (name: string, requests: Json, limits: Json = {}, more: Json = {}, ofContainer: Json = {}): Json => ({
  ...podOf([{ ...container("app", requests, limits), ...ofContainer }], more),
  metadata: { name, namespace: "shop", uid: name },
  status: { phase: "Running", containerStatuses: [running("app", `id-${name}`)] },
});
const on = (pods: readonly Json[], kubelet = "v1.36.3", more: Json = {}): Json => ({
  node: node({ capacity: SIZE, allocatable: SIZE, nodeInfo: { kubeletVersion: kubelet } }),
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

describe("a resize decision", () => {
  test("keeps the ratio of limit to request, for an asked size and for a VPA recommendation", () => {
    const changes = [
      { container: "app", list: "requests", resource: "cpu", from: "1", to: "1500m" },
      { container: "app", list: "limits", resource: "cpu", from: "2", to: "3" },
    ];
    expect(one(on([web]), { ...WEB, to: { cpu: "1500m" } })).toMatchObject({ status: "InProgress", changes });
    const recommendation = { containerRecommendations: [{ containerName: "app", target: { cpu: "1500m" } }] };
    expect(one(on([web]), { ...WEB, recommendation })).toMatchObject({ status: "InProgress", changes });
  });
  describe("of a VerticalPodAutoscaler recommendation", () => {
    const target = { cpu: "3", memory: "256Mi" };
    const recommendation = { containerRecommendations: [{ containerName: "app", target }] };
    const written = (resourcePolicy: Json | undefined, of = web): readonly string[] =>
      one(on([of]), { ...WEB, recommendation, ...(resourcePolicy && { resourcePolicy }) }).changes.map(
        ({ list, resource, from, to }) => `${list}.${resource}: ${from} -> ${to}`,
      );
    const policy = (containerName: string, more: Json): Json => ({
      containerPolicies: [{ containerName, minAllowed: { cpu: "1m" }, ...more }],
    });
    const inProportion = [
      ...["requests.cpu: 1 -> 3", "requests.memory: 512Mi -> 256Mi"],
      ...["limits.cpu: 2 -> 6", "limits.memory: 1Gi -> 512Mi"],
    ];
    test("changes limits in proportion by default", () => {
      expect(written(undefined)).toEqual(inProportion);
      expect(written(policy("*", { controlledValues: "RequestsAndLimits" }))).toEqual(inProportion);
      expect(written(policy("other", { controlledValues: "RequestsOnly" }))).toEqual(inProportion);
    });
    test("with RequestsOnly keeps limits, and requests stay within them", () => {
      const only = ["requests.cpu: 1 -> 2", "requests.memory: 512Mi -> 256Mi"];
      expect(written(policy("app", { controlledValues: "RequestsOnly" }))).toEqual(only);
      expect(written(policy("*", { controlledValues: "RequestsOnly" }))).toEqual(only);
      const both = [{ containerName: "*", controlledValues: "RequestsOnly" }, { containerName: "app" }];
      expect(written({ containerPolicies: both })).toEqual(inProportion);
    });
    test("leaves a container with mode Off unchanged", () => {
      expect(written(policy("app", { mode: "Off" }))).toEqual([]);
    });
    test("without a ratio raises a limit only to make room for the request", () => {
      const lists = (requests: Json, limits: Json) => pod("web", requests, limits);
      expect(written(undefined, lists({ cpu: "0", memory: "1" }, { cpu: "2" }))).toContain("limits.cpu: 2 -> 3");
      expect(written(undefined, lists({ cpu: "0", memory: "1" }, { cpu: "4" }))).not.toContainEqual(
        expect.stringContaining("limits.cpu"),
      );
      expect(written(undefined, lists({ cpu: "1", memory: "1" }, { cpu: "0" }))).not.toContainEqual(
        expect.stringContaining("limits.cpu"),
      );
      const none = one(on([web]), { ...WEB, to: { cpu: "0" } });
      expect(none).toMatchObject({ status: "InProgress", notRequested: [] });
      expect(none.changes).toEqual([{ container: "app", list: "requests", resource: "cpu", from: "1", to: "0" }]);
      expect(none.largest).toContainEqual({ resource: "cpu", quantity: 4000 });
    });
    test("refuses a resourcePolicy without a recommendation", () => {
      const asked = decodeAsk("resize", { ...WEB, to: { cpu: "1" }, resourcePolicy: policy("*", {}) });
      expect(asked).toMatchObject({
        error: [{ path: "ask.resourcePolicy", message: "it goes with `recommendation`" }],
      });
    });
  });
  test("accepts resources and an unchanged resizePolicy in a patch, and rejects other fields", () => {
    const resizePolicy = [{ resourceName: "cpu", restartPolicy: "RestartContainer" }];
    const message = "only cpu and memory resources are mutable";
    const patch = (more: Json): Json => ({ ...WEB, spec: { containers: [{ name: "app", ...more }] } });
    const resources = { requests: { cpu: "1500m" } };
    const restarts = (ask: Json, of = web) => one(on([of]), ask).actuation?.restarts;
    const restarting = pod("web", { cpu: "1" }, {}, {}, { resizePolicy });
    const restart = [{ container: "app", resources: ["cpu"] }];
    expect(restarts(patch({ resources, resizePolicy }), restarting)).toEqual(restart);
    expect(restarts(patch({ resources }), restarting)).toEqual(restart);
    expect(restarts(patch({ resources }))).toEqual([]);
    for (const changed of [{ resources, resizePolicy }, { resizePolicy }])
      expect(one(on([web]), patch(changed))).toMatchObject({ status: "Rejected", message });
    expect(
      decodeAsk("resize", patch({ resizePolicy: [{ resourceName: "gpu", restartPolicy: "Never" }] })),
    ).toMatchObject({
      error: [
        { path: "ask.spec.containers[0].resizePolicy[0].resourceName" },
        { path: "ask.spec.containers[0].resizePolicy[0].restartPolicy" },
      ],
    });
    expect(decodeAsk("resize", patch({ resources, image: "web:2" }))).toMatchObject({
      error: [
        {
          path: "ask.spec.containers[0].image",
          message: "a resize changes resources and resizePolicy of a container alone: leave `image` out",
        },
      ],
    });
    expect(decodeAsk("resize", { ...WEB, spec: { nodeName: "n", restartPolicy: "Never" } })).toMatchObject({
      error: [
        {
          path: "ask.spec.nodeName",
          message:
            "a resize changes resources, containers, initContainers and volumes of a pod's spec alone: leave `nodeName`, `restartPolicy` out",
        },
      ],
    });
  });
  test("reports a state file with which the kubelet does not start, in its words", () => {
    const cpu_manager_state = { policyName: "static", defaultCpuSet: "0,2", entries: {} };
    const machine = { cpus: [0, 1, 2, 3].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })) };
    const kubeletConfiguration = { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } };
    const snapshot = on([web], "v1.36.3", { machine, kubeletConfiguration, assignments: { cpu_manager_state } });
    const decision = decide(snapshot, { ...WEB, to: { cpu: "1500m" } });
    expect(decision).toMatchObject({ resizes: [], inProgress: 0, deferred: 0 });
    expect(decision.startErrors).toEqual([
      expect.stringMatching(/^current set of available CPUs "0-3" doesn't match with CPUs in state "0,2"/),
    ]);
  });
  test("changes what a patch of the resize subresource names", () => {
    const spec = { containers: [{ name: "app", resources: { limits: { memory: "2Gi" } } }] };
    expect(one(on([web]), { ...WEB, spec }).changes).toEqual([
      { container: "app", list: "limits", resource: "memory", from: "1Gi", to: "2Gi" },
    ]);
  });
  test("when deferred, shows the room there is and which pods would have to leave, lowest priority first", () => {
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
    // the pod of higher priority is not listed, though its removal would free less
    const important = pod("web", { cpu: "1" }, {}, { priority: 20 });
    const smaller = pod("smaller", { cpu: "800m" }, {}, { priority: 10 });
    const spared = one(on([important, ...others.slice(0, 2), smaller]), { ...WEB, to: { cpu: "1500m" } });
    expect(spared.leave?.map(({ name }) => name)).toEqual(["low"]);
    const hopeless = one(on([web, pod("other", { cpu: "3" })], "v1.35.4"), { ...WEB, to: { cpu: "5" } });
    expect(hopeless).toMatchObject({ status: "Infeasible", leave: null });
  });
  describe("beside a pod that is being shrunk", () => {
    const has = (requests: Json): Json => ({
      status: {
        phase: "Running",
        containerStatuses: [{ ...running("app", "id-down"), allocatedResources: requests, resources: { requests } }],
      },
    });
    const down = { ...pod("down", { cpu: "1" }), ...has({ cpu: "2" }) };
    const up = pod("up", { cpu: "1500m" });
    const more = (cpu: string, pods = [down, up]) => one(on(pods), { pod: "shop/up", to: { cpu } });
    const names = (of: PodResize) => ({
      terminating: of.terminating.map(({ name }) => name),
      shrinks: of.shrinks.map(({ name }) => name),
      leave: of.leave?.map(({ name }) => name) ?? null,
    });
    test("waits for that to be written, and no pod has to leave", () => {
      expect(more("3")).toMatchObject({ status: "Deferred", resources: [{}, { used: 2000, insufficient: 1000 }] });
      expect(names(more("3"))).toEqual({ terminating: [], shrinks: ["down"], leave: [] });
    });
    test("for what is still missing lists other pods to leave, by their resources after the shrink", () => {
      expect(names(more("3500m"))).toEqual({ terminating: [], shrinks: ["down"], leave: ["down"] });
      const low = pod("low", { cpu: "400m" }, {}, { priority: -1 });
      expect(names(more("3", [down, up, low]))).toEqual({ terminating: [], shrinks: ["down"], leave: ["low"] });
    });
    test("shrinks nothing when no pod is to shrink", () => {
      const leave = ["other"];
      expect(names(more("3500m", [pod("other", { cpu: "1" }), up]))).toEqual({ terminating: [], shrinks: [], leave });
    });
    test("waits for a pod that is being deleted instead of making others leave", () => {
      const deletionTimestamp = "2026-11-20T00:00:00Z";
      const ending = { ...down, metadata: { name: "ending", namespace: "shop", uid: "ending", deletionTimestamp } };
      const low = pod("low", { cpu: "400m" }, {}, { priority: -1 });
      expect(names(more("3", [ending, up, low]))).toEqual({ terminating: ["ending"], shrinks: [], leave: [] });
      expect(names(more("4", [ending, up, low]))).toEqual({ terminating: ["ending"], shrinks: [], leave: ["low"] });
      expect(names(more("4", [ending, up]))).toEqual({ terminating: ["ending"], shrinks: [], leave: [] });
    });
  });
  test("counts what a leaving pod would free: container requests beside pod-level ones, and overhead", () => {
    const whole = {
      ...pod("whole", { memory: "5Gi" }),
      spec: { ...(podOf([container("app", { memory: "5Gi" })]).spec as Json), resources: { requests: { cpu: "1" } } },
    };
    const light = {
      ...pod("light", {}),
      spec: { ...(podOf([container("app", {})]).spec as Json), overhead: { cpu: "2" } },
    };
    const leave = (ask: Json) => one(on([web, whole, light]), { ...WEB, to: ask }).leave?.map(({ name }) => name);
    expect(leave({ memory: "6Gi" })).toEqual(["whole"]);
    expect(leave({ cpu: "2500m" })).toEqual(["light"]);
  });
  test("gives room to the pods that the kubelet tries first", () => {
    const waits = (name: string, to: string, priority: number): Json => ({
      ...pod(name, { cpu: to }, {}, { priority }),
      status: {
        phase: "Running",
        conditions: [{ type: "PodResizePending", status: "True", reason: "Deferred" }],
        containerStatuses: [{ ...running("app", `id-${name}`), allocatedResources: { cpu: "1" } }],
      },
    });
    const ending = pod("ending", { cpu: "1" });
    const deletionTimestamp = "2026-11-20T00:00:00Z";
    const going = { ...ending, metadata: { ...(ending["metadata"] as Json), deletionTimestamp } };
    const low = pod("low", { cpu: "1" }, {}, { priority: -1 });
    const { resizes } = decide(on([waits("first", "1500m", 9), waits("second", "2", 0), going, low]), {});
    expect(resizes.map(({ pod, leave }) => [pod.name, leave?.map(({ name }) => name)])).toEqual([
      ["first", []],
      ["second", ["low"]],
    ]);
  });
  test("has the verdict of the asked pods only", () => {
    const waits = pod("waits", { cpu: "9" });
    const has = {
      phase: "Running",
      conditions: [{ type: "PodResizePending", status: "True", reason: "Deferred" }],
      containerStatuses: [
        { ...running("app", "id"), allocatedResources: { cpu: "1" }, resources: { requests: { cpu: "1" } } },
      ],
    };
    const snapshot = decodeSnapshot(on([web, { ...waits, status: has }]));
    if (!snapshot.ok) throw new Error("no snapshot");
    const verdictOf = (posted: Json | null) => {
      const asked = decodeAsk("resize", posted);
      if (!asked.ok) throw new Error(JSON.stringify(asked.error));
      const answer = decideKind("resize", { snapshot: snapshot.value, facts: {}, ask: asked.value, explain: "off" });
      return answer.ok && [answer.value.verdict, (answer.value.decision as ResizeDecision).deferred];
    };
    expect(verdictOf(null)).toEqual(["refused", 1]);
    expect(verdictOf({ ...WEB, to: { cpu: "1100m" } })).toEqual(["decided", 1]);
  });
  test("reports an autoscaler without a recommendation yet, and fields dropped without their gate", () => {
    for (const recommendation of [null, {}, { containerRecommendations: [] }])
      expect(one(on([web]), { ...WEB, recommendation })).toMatchObject({
        status: "Unchanged",
        message: "the autoscaler recommends nothing yet",
      });
    const spec = { resources: { requests: { cpu: "3" } } };
    expect(one(on([web], "v1.35.4"), { ...WEB, spec }).message).toMatch(/^spec.resources is left out: /);
    expect(decodeAsk("resize", { kind: "VerticalPodAutoscaler", status: {} })).toMatchObject({
      error: [{ path: "ask", message: expect.stringContaining("`recommendation`") }],
    });
    expect(decodeAsk("resize", { ...WEB, to: { CPU: "1" } })).toMatchObject({
      error: [{ path: "ask.to.CPU", message: expect.stringContaining("did you mean cpu?") }],
    });
  });
  test("has a largest size for unrequested resources too, where a resize may add the request", () => {
    const sizes = ({ largest, notRequested }: PodResize) => ({ largest, notRequested });
    const memory = { resource: "memory", quantity: 8 * 1024 ** 3 };
    const light = { ...web, spec: podOf([{ name: "app", resources: { requests: { cpu: "1" } } }]).spec };
    for (const cpu of ["2", "8"])
      expect(sizes(one(on([light]), { ...WEB, to: { cpu } }))).toEqual({
        largest: [{ resource: "cpu", quantity: 4000 }, memory],
        notRequested: [],
      });
    const message = "Pod QOS Class may not change as a result of resizing";
    const bare = { ...web, spec: podOf([{ name: "app" }]).spec };
    expect(sizes(one(on([bare]), { ...WEB, to: { cpu: "0" } }))).toEqual({
      largest: [],
      notRequested: [
        { resource: "cpu", message },
        { resource: "memory", message },
      ],
    });
  });
  test("rejects every container of a pod with claims before 1.37", () => {
    const claiming = { name: "side", resources: { claims: [{ name: "gpu" }] } };
    const spec = {
      ...(podOf([container("app", { cpu: "1" }), claiming]).spec as Json),
      resourceClaims: [{ name: "gpu" }],
    };
    const asked = (kubelet: string) =>
      one(on([{ ...web, spec }], kubelet), { ...WEB, container: "app", to: { cpu: "2" } });
    const message = "only cpu and memory resources are mutable";
    for (const kubelet of ["v1.34.4", "v1.35.4", "v1.36.3"])
      expect(asked(kubelet)).toMatchObject({
        ...{ status: "Rejected", check: "other_resource", message, largest: [] },
        notRequested: [{ resource: "cpu" }, { resource: "memory" }],
      });
    expect(asked("v1.37.2")).toMatchObject({ status: "InProgress", notRequested: [] });
  });
  test("has no largest size for resources that no resize can change, or when not room blocks it", () => {
    const sizes = ({ largest, notRequested }: PodResize) => ({
      largest,
      notRequested: notRequested.map((n) => n.resource),
    });
    const own = pod("web", { cpu: "1", memory: "512Mi" }, { cpu: "1", memory: "512Mi" });
    const memory = { resource: "memory", quantity: 8 * 1024 ** 3 };
    const kubeletConfiguration = { cpuManagerPolicy: "static", reservedSystemCPUs: "0" };
    for (const to of [{ cpu: "2" }, { memory: "1Gi" }])
      expect(sizes(one(on([own], "v1.36.3", { kubeletConfiguration }), { ...WEB, to }))).toEqual({
        largest: [memory],
        notRequested: ["cpu"],
      });
    const under = on([web]);
    const conditions = [{ type: "DiskPressure", status: "True" }];
    const node = { metadata: { name: "n" }, status: { capacity: SIZE, allocatable: SIZE, conditions } };
    const waits = one({ ...under, node }, { ...WEB, to: { cpu: "500m" } });
    expect(waits).toMatchObject({ status: "Deferred", message: "The node had condition: [DiskPressure]. " });
    expect(sizes(waits)).toEqual({ largest: [], notRequested: [] });
  });
  test("writes a sidecar once its startup probe succeeded, and the other containers then", () => {
    const requests = { cpu: "1" };
    const startupProbe = { exec: { command: ["true"] } };
    const side = { ...container("side", requests), restartPolicy: "Always", startupProbe };
    const written = (started: boolean, of: string): readonly (string | null)[] | undefined => {
      const status = {
        phase: "Pending",
        initContainerStatuses: [{ ...running("side", "id-side"), started }],
        containerStatuses: started ? [running("app", "id-app")] : [],
      };
      const spec = { ...(podOf([container("app", requests)]).spec as Json), initContainers: [side] };
      const { actuation } = one(on([{ ...web, spec, status }]), { ...WEB, container: of, to: { cpu: "2" } });
      return actuation?.writes.map(({ container }) => container);
    };
    expect(written(false, "side")).toEqual([]);
    expect(written(true, "side")).toEqual([null, "side"]);
    expect(written(false, "app")).toEqual([]);
    expect(written(true, "app")).toEqual([null, "app"]);
  });
  test("needs the status of a pod whose pending resize does not contain its present resources", () => {
    const conditions = [{ type: "PodResizePending", status: "True", reason: "Deferred" }];
    const needs = (status: Json): readonly string[] => {
      const reported = {
        ...web,
        status: { phase: "Running", conditions, containerStatuses: [{ ...running("app", "id"), ...status }] },
      };
      const decoded = decodeSnapshot(on([reported]));
      if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
      const answer = decideKind("resize", { snapshot: decoded.value, facts: {}, ask: { pod: null }, explain: "off" });
      return answer.ok ? answer.value.needs : [];
    };
    expect(needs({})).toContain("assignments.allocated_pods_state");
    expect(needs({ allocatedResources: { cpu: "500m" } })).not.toContain("assignments.allocated_pods_state");
  });
  test("counts a pod with a pending pod-level resize by its status, without taking room from others", () => {
    const conditions = [{ type: "PodResizePending", status: "True", reason: "Deferred" }];
    const cpu = { cpu: "1" };
    const reported = { phase: "Running", conditions, allocatedResources: cpu, resources: { requests: cpu } };
    const waiting = { ...pod("wide", {}, {}, { resources: { requests: { cpu: "3500m" } } }), status: reported };
    const node = on([web, waiting]);
    const changes = [{ container: null, list: "requests", resource: "cpu", from: "1", to: "3500m" }];
    expect(one(node, {})).toMatchObject({ pod: { name: "wide" }, status: "Deferred", changes });
    expect(one(node, { ...WEB, to: { cpu: "3" } })).toMatchObject({ status: "InProgress" });
  });
  test("applies one patch to several pods, each accepted one counting for the next", () => {
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
  test("leaves a pod without the container unchanged, and accepts recommendations for more containers", () => {
    const pods = [web, { ...pod("db", { cpu: "1" }), spec: podOf([container("sql", { cpu: "1" })]).spec }];
    const both = { pods: ["shop/web", "shop/db"], container: "app", to: { cpu: "1500m" } };
    expect(decide(on(pods), both).resizes).toMatchObject([
      { pod: { name: "db" }, status: "Unchanged", message: "the pod has no container `app`, only sql", changes: [] },
      { pod: { name: "web" }, status: "InProgress", message: "" },
    ]);
    const target = { cpu: "1500m" };
    const recommended = (...names: readonly string[]) => ({
      containerRecommendations: names.map((containerName) => ({ containerName, target })),
    });
    expect(one(on(pods), { ...WEB, recommendation: recommended("gone", "app") })).toMatchObject({
      status: "InProgress",
      changes: [{ container: "app" }, { container: "app" }],
    });
    expect(() => one(on(pods), { ...WEB, recommendation: recommended("gone") })).toThrow(
      "ask.recommendation: shop/web: it is for none of the pod's containers app: gone",
    );
  });
  test.each([
    [{ limits: { memory: null } }, "limits.memory"],
    [{ requests: null }, "requests"],
  ])("refuses null in a patch, as it would remove an amount: %j", (resources, place) => {
    const spec = { containers: [{ name: "app", resources }] };
    expect(decodeAsk("resize", { ...WEB, spec })).toMatchObject({
      ok: false,
      error: [{ path: `ask.spec.containers[0].resources.${place}`, message: expect.stringContaining("remove") }],
    });
  });
  test("rejects what the API server would reject", () => {
    const guaranteed = pod("web", { cpu: "1", memory: "1Gi" }, { cpu: "1", memory: "1Gi" });
    const spec = { containers: [{ name: "app", resources: { limits: { cpu: "2" } } }] };
    expect(one(on([guaranteed]), { ...WEB, spec })).toMatchObject({
      ...{ status: "Rejected", check: "qos_class", message: "Pod QOS Class may not change as a result of resizing" },
    });
  });
  describe("with the API server's checks of node and pod state", () => {
    const to = { cpu: "1500m" };
    const withStatus = (more: Json): Json => ({ ...web, status: { ...(web["status"] as Json), ...more } });
    const onNode = (metadata: Json, status: Json = {}, kubelet = "v1.36.3"): Json => {
      const { node, ...rest } = on([web], kubelet) as { node: { metadata: Json; status: Json } };
      return {
        ...rest,
        node: { metadata: { ...node.metadata, ...metadata }, status: { ...node.status, ...status } },
      };
    };
    test("takes a status without resources as resizable while the gate is on, and rejects it when off", () => {
      expect(one(on([web], "v1.34.4"), { ...WEB, to })).toMatchObject({ status: "InProgress" });
      const off = { kubeletConfiguration: { featureGates: { InPlacePodVerticalScaling: false } } };
      expect(one(on([web], "v1.34.4", off), { ...WEB, to })).toMatchObject({
        ...{ status: "Rejected", check: "gate", message: "Pod running on node without support for resize" },
      });
      const reported = { ...running("app", "id-web"), resources: { requests: { cpu: "1" } } };
      expect(one(on([withStatus({ containerStatuses: [reported] })], "v1.34.4", off), { ...WEB, to })).toMatchObject({
        ...{ status: "Infeasible", check: "gate", message: "InPlacePodVerticalScaling is disabled" },
      });
    });
    test("rejects a pod with claims for node resources in 1.36 only", () => {
      const claiming = withStatus({ nodeAllocatableResourceClaimStatuses: [{ resourceClaimName: "cpus" }] });
      expect(one(on([claiming]), { ...WEB, to })).toMatchObject({
        ...{ check: "claims", message: "pods with node allocatable resource claims cannot be resized" },
      });
      expect(one(on([claiming], "v1.37.2"), { ...WEB, to }).status).toBe("InProgress");
    });
    test("rejects pods and nodes of Windows", () => {
      const pods = [pod("web", { cpu: "1" }, {}, { os: { name: "windows" } })];
      expect(one(on(pods), { ...WEB, to })).toMatchObject({
        check: "platform",
        message: "windows pods cannot be resized",
      });
      expect(one(onNode({ labels: { "kubernetes.io/os": "windows" } }), { ...WEB, to })).toMatchObject({
        ...{ check: "platform", message: 'pod resize is only supported on linux nodes, node "n" is "windows"' },
      });
    });
    test("checks the node's declared features, or its gates when it declares none", () => {
      const resources = { requests: { cpu: "2" } };
      const whole = { resources: { requests: { cpu: "1" } } };
      const snapshot = (declaredFeatures?: readonly string[]): Json => ({
        ...onNode({}, declaredFeatures && { declaredFeatures }),
        pods: [pod("web", { cpu: "500m" }, {}, whole)],
      });
      const ask = { ...WEB, spec: { resources } };
      const feature = "InPlacePodLevelResourcesVerticalScaling";
      expect(one(snapshot(), ask).status).toBe("InProgress");
      expect(one(snapshot([feature]), ask).status).toBe("InProgress");
      expect(one(snapshot(["ExtendWebSocketsToKubelet"]), ask)).toMatchObject({
        check: "declared_features",
        message: `pod update requires features ${feature} which are not available on node "n"`,
      });
    });
  });
  describe("of a memory-backed emptyDir volume", () => {
    const gate = { featureGates: { InPlacePodVerticalScalingMemoryBackedVolumes: true } };
    const volumes = [
      { name: "cache", emptyDir: { medium: "Memory", sizeLimit: "64Mi" } },
      { name: "disk", emptyDir: {} },
    ];
    const mounting = pod("web", { cpu: "1", memory: "512Mi" }, { memory: "1Gi" }, { volumes });
    const sized = (sizeLimit: string, memory?: string) => ({
      volumes: [{ name: "cache", emptyDir: { sizeLimit } }],
      ...(memory && { containers: [{ name: "app", resources: { limits: { memory } } }] }),
    });
    const ask = (spec: Json, more: Json = { kubeletConfiguration: gate }, kubelet = "v1.37.2") =>
      one(on([mounting], kubelet, more), { ...WEB, spec });
    test("grows the volume after the memory, and shrinks it before", () => {
      const steps = (spec: Json) =>
        ask(spec).actuation?.writes.map(({ container, volume }) => volume ?? container ?? "pod");
      const [bytes, less] = [128, 32].map((n) => n * 1024 ** 2);
      expect(steps(sized("128Mi", "2Gi"))).toEqual(["pod", "app", { name: "cache", sizeBytes: bytes }]);
      expect(steps(sized("32Mi", "2Gi"))).toEqual([{ name: "cache", sizeBytes: less }, "pod", "app"]);
      expect(ask(sized("128Mi")).changes).toEqual([
        { container: null, list: "sizeLimit", resource: "cache", from: "64Mi", to: "128Mi" },
      ]);
    });
    test("leaves the volume unchanged without the gate", () => {
      expect(ask(sized("128Mi"), {})).toMatchObject({ status: "Unchanged", changes: [] });
      expect(ask(sized("128Mi"), { kubeletConfiguration: gate }, "v1.36.3").status).toBe("Unchanged");
    });
    test("starts from the allocated sizeLimit, and is infeasible on cgroup v1", () => {
      const entry = { ContainerResources: {}, EmptyDirVolumeLimits: { cache: "32Mi" } };
      const assignments = { allocated_pods_state: { entries: { web: entry } } };
      const snapshot = on([mounting], "v1.37.2", { kubeletConfiguration: gate, assignments });
      expect(one(snapshot, {})).toMatchObject({ status: "InProgress", changes: [{ from: "32Mi", to: "64Mi" }] });
      expect(one({ ...snapshot, cgroup: { version: 1 } }, {})).toMatchObject({
        status: "Infeasible",
        check: "volumes",
        message: "Memory-backed emptyDir volume resize is not supported on cgroups v1",
      });
    });
    test.each([
      [{ volumes: [{ name: "disk", emptyDir: { sizeLimit: "1Gi" } }] }, "adding or removing sizeLimit on an existing"],
      [{ volumes: [{ name: "new", emptyDir: {} }] }, "volumes may not be added or removed on resize"],
      [{ volumes: [{ name: "new" }] }, "must specify a volume type"],
      [{ volumes: [{ name: "disk", emptyDir: { medium: "Memory" } }] }, "only sizeLimit of memory-backed emptyDir"],
    ])("rejects the change %j", (spec, message) => {
      expect(ask(spec)).toMatchObject({ status: "Rejected", check: "volumes" });
      expect(ask(spec).message).toContain(message);
    });
  });
  test("beyond the node's capacity is infeasible in older kubelets, and rejected by the API server in newer", () => {
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
  ])("for %j fails with %s", (ask, message) => {
    expect(() => decide(on([web]), ask)).toThrow(message);
  });
  test.each([
    [{ to: { cpu: "2" } }, "ask.pod"],
    [{ ...WEB, to: { "ephemeral-storage": "1Gi" } }, "ask.to.ephemeral-storage"],
    [{ ...WEB, to: { cpu: "2" }, spec: {} }, "ask.spec"],
    [{ ...WEB, container: "app" }, "ask.container"],
    [{ pod: "web", to: { cpu: "2" } }, "ask.pod"],
  ])("for the ask %j is refused at %s", (ask, path) => {
    const decoded = decodeAsk("resize", ask);
    expect(decoded.ok ? [] : decoded.error.map((issue) => issue.path)).toEqual([path]);
  });
});

describe("resizes that are pending in the pod specs", () => {
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
  test("are decided in the kubelet's order; infeasible ones are tried again at its restart", () => {
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

describe("the actuation of a resize", () => {
  test("lists the cgroup files to write in the kubelet's order", () => {
    const { actuation } = one(on([web]), { ...WEB, to: { cpu: "1500m" } });
    const at = "/kubepods/burstable/podweb";
    expect(actuation?.writes.map(({ path, files }) => [path, ...files.map((f) => `${f.path}=${f.value}`)])).toEqual([
      [at, "cpu.max=300000 100000"],
      [at, "cpu.weight=59"],
      [`${at}/id-web`, "cpu.weight=138", "cpu.max=300000 100000", "memory.swap.max=0", "memory.max=1073741824"],
    ]);
  });
  test("lists a container to restart with the resources that require it", () => {
    const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
    const restarted = pod("web", { memory: "1Gi" }, { memory: "2Gi" }, {}, { resizePolicy });
    const { actuation } = one(on([restarted]), { ...WEB, to: { memory: "2Gi" } });
    expect(actuation).toMatchObject({ restarts: [{ container: "app", resources: ["memory"] }], error: null });
  });
  test("sends huge page limits of the pod level only to the runtime, and writes none of them", () => {
    const capacity = { ...SIZE, "hugepages-2Mi": "1Gi", "hugepages-1Gi": "0" };
    const pages = { "hugepages-2Mi": "64Mi" };
    const requests = { cpu: "1", memory: "512Mi", ...pages };
    const hugePagesOf = (more: Json) => {
      const pods = [pod("web", requests, pages, more)];
      const { node, ...rest } = on(pods) as { node: { status: Json } };
      const snapshot = { ...rest, node: { ...node, status: { ...node.status, capacity, allocatable: capacity } } };
      const written = one(snapshot, { ...WEB, to: { cpu: "1500m" } }).actuation?.writes.at(-1);
      expect(written?.files.filter(({ path }) => path.startsWith("hugetlb"))).toEqual([]);
      return written?.values.hugePageLimit;
    };
    expect(hugePagesOf({})).toEqual({ "2097152": 0, "1073741824": 0 });
    const whole = {
      requests: { cpu: "2", memory: "1Gi", "hugepages-2Mi": "128Mi" },
      limits: { "hugepages-2Mi": "128Mi" },
    };
    expect(hugePagesOf({ resources: whole })).toEqual({ "2097152": 128 * 1024 ** 2, "1073741824": 0 });
  });
  test("keeps the CPU quota of containers on the pod's shared CPUs with PodLevelResourceManagers", () => {
    const amounts = (cpu: string): Json => ({ requests: { cpu, memory: "1Gi" }, limits: { cpu, memory: "1Gi" } });
    const containers = [
      { ...container("app"), resources: amounts("1") },
      { ...container("side"), resources: amounts("500m") },
    ];
    const made = {
      ...podOf(containers, {
        resources: { requests: { cpu: "3", memory: "3Gi" }, limits: { cpu: "3", memory: "3Gi" } },
      }),
      metadata: { name: "web", namespace: "shop", uid: "web" },
      status: { phase: "Running", containerStatuses: [running("app", "a"), running("side", "s")] },
    };
    const quotas = (isOn: boolean) => {
      const state = { policyName: "static", defaultCpuSet: "0,4-7", entries: { web: { app: "1", side: "2-3" } } };
      const machine = { cpus: [0, 1, 2, 3, 4, 5, 6, 7].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })) };
      const gates = { InPlacePodVerticalScalingExclusiveCPUs: true, PodLevelResourceManagers: isOn };
      const kubeletConfiguration = { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" }, featureGates: gates };
      const ofManagers = { machine, kubeletConfiguration, assignments: { cpu_manager_state: state } };
      const more = (cpu: string) => ({ requests: { cpu }, limits: { cpu } });
      const spec = { resources: more("4"), containers: [{ name: "side", resources: more("600m") }] };
      const { actuation, ...rest } = one(on([made], "v1.36.3", ofManagers), { ...WEB, spec });
      if (actuation === null) throw new Error(JSON.stringify(rest));
      return actuation.writes.map(({ container, values }) => [container, values.cpuQuota]);
    };
    expect(quotas(true)).toEqual([
      [null, 400_000],
      [null, undefined],
      ["side", 60_000],
    ]);
    expect(quotas(false)).toEqual([
      [null, undefined],
      ["side", -1],
    ]);
  });
  test("refuses to lower a memory limit below the usage, in the kubelet's words", () => {
    const stats = {
      pods: [
        {
          podRef: { name: "web", namespace: "shop", uid: "web" },
          memory: { usageBytes: 900_000_000 },
          containers: [{ name: "app", memory: { usageBytes: 800_000_000 } }],
        },
      ],
    };
    const less = { ...WEB, to: { memory: "256Mi" } };
    const message =
      'cannot decrease memory limits: [attempting to set pod memory limit (536870912) below current usage (900000000), attempting to set container "app" memory limit (536870912) below current usage (900000000)]';
    const decision = decide(on([web], "v1.36.3", { stats }), less);
    expect(decision).toMatchObject({ inProgress: 0, inError: 1, deferred: 0, infeasible: 0 });
    expect(decision.resizes[0]).toMatchObject({ status: "Error", message, actuation: { writes: [], error: message } });
    // the decrease is allocated nevertheless, so the next resize can use the freed resources
    const both = { pods: ["shop/web", "shop/b"], to: { memory: "256Mi" } };
    const next = pod("b", { memory: "128Mi" });
    const full = pod("full", { memory: "7552Mi" });
    const reported = decide(on([web, next, full], "v1.36.3", { stats }), both);
    expect(reported.resizes.map(({ status }) => status)).toEqual(["Error", "InProgress"]);
  });
  describe("of a resize that is allocated but not written", () => {
    const words =
      'cannot decrease memory limits: attempting to set container "app" memory limit (536870912) below current usage (900000000)';
    const stuck = (message: string, reason = "Error", limit = "1Gi"): Json => ({
      ...pod("web", { cpu: "1", memory: "256Mi" }, { cpu: "2", memory: "512Mi" }),
      status: {
        phase: "Running",
        conditions: [{ type: "PodResizeInProgress", status: "True", reason, message }],
        containerStatuses: [
          {
            ...running("app", "id-web"),
            allocatedResources: { cpu: "1", memory: "256Mi" },
            resources: { requests: { cpu: "1", memory: "256Mi" }, limits: { cpu: "2", memory: limit } },
          },
        ],
      },
    });
    const used = (bytes: number): Json => ({
      stats: {
        pods: [
          {
            podRef: { name: "web", namespace: "shop", uid: "web" },
            memory: { usageBytes: bytes },
            containers: [{ name: "app", memory: { usageBytes: bytes } }],
          },
        ],
      },
    });
    const changes = [{ container: "app", list: "limits", resource: "memory", from: "1Gi", to: "512Mi" }];
    test("has status Error with the message of the condition and what is not written", () => {
      expect(decide(on([stuck(words)]), {}).resizes).toMatchObject([
        { status: "Error", message: words, changes, wouldRefuse: [], actuation: { writes: [], error: words } },
      ]);
      expect(one(on([stuck(words)]), WEB)).toMatchObject({ status: "Error", message: words });
    });
    test("is decided by the known memory usage, which may also allow it now", () => {
      const freed = one(on([stuck(words)], "v1.36.3", used(1_000_000)), {});
      expect(freed).toMatchObject({ status: "InProgress", message: "", changes });
      expect(freed.actuation?.writes.map(({ container }) => container)).toEqual(["app", null]);
      const now = one(on([stuck(words)], "v1.36.3", used(950_000_000)), {});
      expect(now).toMatchObject({ status: "Error", message: expect.stringContaining("usage (950000000)") });
      const other = one(on([stuck("failed to update the container")], "v1.36.3", used(1_000_000)), {});
      expect(other).toMatchObject({ status: "Error", message: "failed to update the container" });
    });
    test("has status InProgress without an error in the condition", () => {
      expect(one(on([stuck("", "")]), {})).toMatchObject({ status: "InProgress", changes });
    });
    test("counts the allocated resources, and a further change starts from those in force", () => {
      const more = one(on([stuck(words)], "v1.36.3", used(1_000_000)), { ...WEB, to: { memory: "384Mi" } });
      expect(more.changes).toContainEqual({ ...changes[0], from: "512Mi", to: "768Mi" });
      // the limit in force is 1Gi, so this change is a decrease
      expect(more.actuation?.writes.map(({ container }) => container)).toEqual(["app", null]);
    });
    test("keeps no message of other conditions in the snapshot", () => {
      const reported = stuck(words);
      const conditions = [
        { type: "PodResizeInProgress", status: "True", reason: "Error", message: words },
        { type: "PodResizeInProgress", status: "True", message: words },
        { type: "Ready", status: "False", reason: "Error", message: "secret" },
      ];
      const read = decodeSnapshot(on([{ ...reported, status: { ...(reported["status"] as Json), conditions } }]));
      const kept = read.ok ? read.value.pods?.[0]?.status?.conditions : undefined;
      expect(kept?.map((one) => one.message)).toEqual([words, undefined, undefined]);
    });
  });
});
