import { describe, expect, it } from "vitest";
import type { TestedResource } from "../../../api/model/admission.ts";
import type { Json } from "../../kit/snapshots.ts";
import { admitted, boundPod, CRITICAL, readyNode, refusal, wouldRefuse } from "./admission-kit.ts";

const tested = (resource: string, pods: Json[], pod: unknown = boundPod("p", { cpu: "1" }), parts: Json = {}) =>
  admitted(readyNode({ pods, ...parts }), pod).decision.resources.find(
    (r) => r.resource === resource,
  ) as TestedResource;
const usedCpu = (pods: Json[], parts: Json = {}): number => tested("cpu", pods, undefined, parts).used;
const status = (fields: Json): Json => ({ status: { phase: "Running", ...fields } });

describe("pods that count towards the node's used resources", () => {
  const old = (more: Json): Json => boundPod("old", { cpu: "2" }, {}, more);
  it("include every pod that has not ended", () => {
    expect(usedCpu([old({})])).toBe(2000);
    expect(usedCpu([old(status({ phase: "Succeeded" }))])).toBe(0);
    expect(usedCpu([old(status({ phase: "Failed" }))])).toBe(0);
  });
  it("include a pod that is being deleted, and an ended pod of which a container still runs", () => {
    const deleted = { metadata: { name: "old", uid: "u", deletionTimestamp: "2026-01-31T12:00:00Z" } };
    expect(usedCpu([{ ...old({}), ...deleted }])).toBe(2000);
    const running = [{ name: "c", state: { running: {} } }];
    expect(usedCpu([old(status({ phase: "Failed", containerStatuses: running }))])).toBe(2000);
    const ended = [{ name: "c", state: { terminated: { exitCode: 0 } } }];
    expect(usedCpu([old(status({ phase: "Failed", containerStatuses: ended }))])).toBe(0);
  });
  it("exclude pods that are bound to another node", () => {
    expect(usedCpu([boundPod("old", { cpu: "2" }, { nodeName: "m" })])).toBe(0);
    expect(tested("pods", [boundPod("old", {}, { nodeName: "m" }), boundPod("here")]).used).toBe(1);
  });
});

describe("a pod that is not yet in the kubelet's allocated_pods_state", () => {
  const entries = { "uid-held": { ContainerResources: { c: { requests: { cpu: "1" } } } } };
  const pods = [boundPod("held", { cpu: "1" }, CRITICAL), boundPod("comes", { cpu: "2" })];
  const on = (kubeletVersion: string, parts: Json = {}, pod = boundPod("p", { cpu: "1" })) =>
    admitted(readyNode({ pods, ...parts }, { nodeInfo: { kubeletVersion } }), pod);
  const assignments = { allocated_pods_state: { entries } };
  it("counts as used up to kubelet 1.36, and from 1.37 on when the state file was not posted", () => {
    expect(on("v1.36.3", { assignments }).decision.resources[1]?.used).toBe(3000);
    expect(on("v1.37.2").decision.resources[1]?.used).toBe(3000);
  });
  it("does not count as used from 1.37 on (reason not_allocated), but may still be preempted", () => {
    const { decision, reasons } = on("v1.37.2", { assignments });
    expect(decision.resources[1]?.used).toBe(1000);
    expect(reasons.flatMap((r) => r.because)).toContainEqual(
      expect.objectContaining({ code: "not_allocated", numbers: { pods: 1 } }),
    );
    const critical = boundPod("critical", { cpu: "3500m" }, CRITICAL);
    expect(on("v1.37.2", { assignments }, critical).decision.preempt.map(({ name }) => name)).toEqual(["comes"]);
  });
});

describe("node resources that a pod gets through its resource claims", () => {
  const featureGates = { DRANodeAllocatableResources: true };
  const forms = {
    "v1.36.3": { resources: { cpu: "500m", memory: "1Gi" } },
    "v1.37.2": {
      mapping: Object.entries({ cpu: "500m", memory: "1Gi" }).map(([name, quantity]) => ({ name, quantity })),
    },
  };
  const reportOf = (
    kubeletVersion: keyof typeof forms,
    spec: Json = {},
    kubeletConfiguration: Json = { featureGates },
  ) => {
    const claimed = { resourceClaimName: "m", containers: ["c"], ...forms[kubeletVersion] };
    const pod = boundPod("p", { cpu: "1" }, spec, status({ nodeAllocatableResourceClaimStatuses: [claimed] }));
    const node = readyNode({ pods: [], kubeletConfiguration }, { nodeInfo: { kubeletVersion } });
    return admitted(node, pod).reasons.flatMap(({ at, because }) =>
      because.flatMap(({ code, field, numbers }) => (code === "part_of_claims" ? [{ at, field, ...numbers }] : [])),
    );
  };
  const memory = { at: "memory", field: "requested", resource: "memory", bytes: 2 ** 30 };
  it.each(["v1.36.3", "v1.37.2"] as const)(
    "are reported as the claims' part of the requested amount: kubelet %s",
    (version) => {
      expect(reportOf(version)).toEqual([{ at: "cpu", field: "requested", resource: "cpu", milliCpu: 500 }, memory]);
      expect(reportOf(version, {}, {})).toEqual([]);
      // pod-level CPUs replace those of containers and claims
      expect(reportOf(version, { resources: { requests: { cpu: "2" } } })).toEqual([memory]);
    },
  );
});

describe("a pod that is being resized", () => {
  const resizing = (inForce: string, allocated: string, more: Json = {}): Json =>
    boundPod(
      "old",
      { cpu: "1" },
      {},
      status({
        containerStatuses: [
          { name: "c", allocatedResources: { cpu: allocated }, resources: { requests: { cpu: inForce } } },
        ],
        ...more,
      }),
    );
  it("counts with the resources in force while these exceed the allocated ones", () => {
    expect(usedCpu([resizing("3", "1")])).toBe(3000);
  });
  it("counts with its allocated resources, not with its new requests", () => {
    const allocated_pods_state = {
      data: JSON.stringify({ entries: { "uid-old": { ContainerResources: { c: { requests: { cpu: "500m" } } } } } }),
    };
    const state = (text: unknown): Json => ({ assignments: { allocated_pods_state: text } });
    expect(usedCpu([boundPod("old", { cpu: "2" })], state(JSON.parse(allocated_pods_state.data)))).toBe(500);
  });
  it.each(["v1.36.3", "v1.37.2"])(
    "counts with the pod-level resources that its status reports as allocated: kubelet %s",
    (kubeletVersion) => {
      const cpu = { cpu: "1" };
      const conditions = [{ type: "PodResizePending", status: "True", reason: "Deferred" }];
      const reported = status({ allocatedResources: cpu, resources: { requests: cpu }, conditions });
      const waiting = boundPod("old", {}, { resources: { requests: { cpu: "3" } } }, reported);
      const { decision } = admitted(
        readyNode({ pods: [waiting] }, { nodeInfo: { kubeletVersion } }),
        boundPod("p", cpu),
      );
      expect(decision.resources.find(({ resource }) => resource === "cpu")?.used).toBe(1000);
    },
  );
  it("counts with its current resources when the resize is infeasible", () => {
    const infeasible = { conditions: [{ type: "PodResizePending", status: "True", reason: "Infeasible" }] };
    expect(
      usedCpu([
        boundPod(
          "old",
          { cpu: "3" },
          {},
          status({
            containerStatuses: [{ name: "c", resources: { requests: { cpu: "1" } } }],
            ...infeasible,
          }),
        ),
      ]),
    ).toBe(1000);
    expect(
      usedCpu([
        boundPod(
          "old",
          { cpu: "3" },
          {},
          status({ containerStatuses: [{ name: "c", resources: { requests: { cpu: "1" } } }] }),
        ),
      ]),
    ).toBe(3000);
  });
});

describe("a pod that is already on the node", () => {
  const here = boundPod("p", { cpu: "3" });
  it("is not counted twice when it is asked about by name or by its object", () => {
    for (const pod of ["default/p", here]) {
      const { decision, reasons } = admitted(readyNode({ pods: [here] }), pod);
      expect(decision).toMatchObject({ admit: true, onNode: true });
      expect(decision.resources.map(({ used }) => used)).toEqual([0, 0]);
      expect(reasons.flatMap((r) => r.because.map((b) => b.code))).toContain("asked_again");
    }
  });
  it("is admitted with its allocated resources, not with its new requests", () => {
    const assignments = {
      allocated_pods_state: { entries: { "uid-p": { ContainerResources: { c: { requests: { cpu: "1" } } } } } },
    };
    const { decision } = admitted(readyNode({ pods: [here], assignments }), "default/p");
    expect(decision.resources[1]).toMatchObject({ resource: "cpu", requested: 1000 });
  });
  it("is admitted like a new pod when it has ended", () => {
    const ended = { ...here, status: { phase: "Failed" } };
    const { decision } = admitted(readyNode({ pods: [ended] }), "default/p");
    expect(decision).toMatchObject({ admit: true, onNode: false });
  });
});

describe("the resource check of an admission", () => {
  it("ignores resources that the pod does not request, however overcommitted they are", () => {
    const full = readyNode({ pods: [boundPod("old", { cpu: "9" })] });
    expect(admitted(full, boundPod("p", { cpu: "0", memory: "1Mi" })).decision.admit).toBe(true);
    expect(admitted(full, boundPod("p", { cpu: "1m" })).decision).toMatchObject({
      reason: "OutOfcpu",
      message: "Node didn't have enough resource: cpu, requested: 1, used: 9000, capacity: 4000",
      counterfactuals: [
        {
          code: "lower_request_admits",
          numbers: { resource: "cpu", requested: 1, atMost: 0, less: 1, otherReasons: 0 },
        },
      ],
    });
  });
  it("tests extended resources only where the node lists them, and huge pages always", () => {
    const asking = boundPod("p", { "example.com/gpu": "1" });
    expect(admitted(readyNode(), asking).decision.admit).toBe(true);
    const listing = readyNode({}, { allocatable: { cpu: "4", pods: "10", "example.com/gpu": "0" } });
    expect(wouldRefuse(admitted(listing, asking))).toEqual(["predicates OutOfexample.com/gpu"]);
    expect(wouldRefuse(admitted(readyNode(), boundPod("p", { "hugepages-2Mi": "2Mi" })))).toEqual([
      "predicates OutOfhugepages-2Mi",
    ]);
  });
  it("does not count an extended resource that a claim provides", () => {
    const listing = readyNode({}, { allocatable: { pods: "10", "example.com/gpu": "0" } });
    const requestMappings = [{ containerName: "c", resourceName: "example.com/gpu", requestName: "r" }];
    const claimed = boundPod(
      "p",
      { "example.com/gpu": "1" },
      {},
      { status: { extendedResourceClaimStatus: { requestMappings } } },
    );
    expect(admitted(listing, claimed).decision.admit).toBe(true);
  });
  it.each([
    ["1.34", "example.com/gpu", false],
    ["1.35", "example.com/gpu", false],
    ["1.36", "example.com/gpu", true],
    ["1.34", "deviceclass.resource.kubernetes.io/fpga", true],
    ["1.35", "deviceclass.resource.kubernetes.io/fpga", true],
    ["1.36", "deviceclass.resource.kubernetes.io/fpga", true],
    ["1.37", "deviceclass.resource.kubernetes.io/fpga", true],
  ])(
    "counts an extended resource that a claim provides before 1.36 where the node lists it: %s, %s",
    (version, resource, admits) => {
      const kubeletConfiguration = { featureGates: { DRAExtendedResource: true } };
      const allocatable = { pods: "10", "example.com/gpu": "1" };
      const node = readyNode({ kubeletConfiguration }, { allocatable, nodeInfo: { kubeletVersion: version } });
      const requestMappings = [{ containerName: "c", resourceName: resource, requestName: "r" }];
      const status = { extendedResourceClaimStatus: { requestMappings } };
      expect(wouldRefuse(admitted(node, boundPod("p", { [resource]: "3" }, {}, { status })))).toEqual(
        admits ? [] : [`predicates OutOf${resource}`],
      );
    },
  );
  it("suggests no lower request when the overhead alone does not fit", () => {
    const pod = boundPod("p", { cpu: "1" }, { overhead: { cpu: "5" } });
    expect(admitted(readyNode(), pod).decision.counterfactuals).toEqual([
      {
        code: "no_request_helps",
        numbers: { resource: "cpu", requested: 6000, atMost: 4000, overhead: 5000, otherReasons: 0 },
      },
    ]);
  });
});

describe("an asked pod that was never created in the API server", () => {
  const fresh = (spec: Json): Json => ({ metadata: { name: "p" }, spec: { containers: [{ name: "c" }], ...spec } });
  it("gets the priority of a system class, and needs spec.priority for any other class", () => {
    expect(admitted(readyNode(), fresh({ priorityClassName: "system-node-critical" })).decision.critical).toBe(true);
    expect(admitted(readyNode(), fresh({ priorityClassName: "high" }))).toMatchObject({
      decision: { critical: false },
      needs: ["ask.pod.spec.priority"],
    });
  });
  it("gets the API server's default toleration for a node that is not ready", () => {
    const taints = [{ key: "node.kubernetes.io/not-ready", effect: "NoExecute" }];
    const node = readyNode({}, {}, { metadata: { name: "n" }, spec: { taints } });
    expect(admitted(node, fresh({})).decision.admit).toBe(true);
    expect(admitted(node, boundPod("p")).decision.admit).toBe(false);
  });
});

describe("an admission that cannot be decided", () => {
  it("is refused with the input that is missing or the pod that does not exist", () => {
    expect(refusal(readyNode(), null)).toMatchObject({ code: "needs_input", needs: ["ask.pod"] });
    expect(refusal(readyNode(), "default/none")).toMatchObject({
      code: "no_such_pod",
      message: "the snapshot has no pod `default/none`",
    });
    expect(refusal({}, boundPod("p"))).toMatchObject({ code: "needs_input", needs: ["node.status.allocatable"] });
  });
});
