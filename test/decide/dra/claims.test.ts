import { describe, expect, test } from "vitest";
import type { ClaimsDecision } from "../../../api/model/claims.ts";
import { answer, claim, claiming, DRIVER, decide, result, slice, stateOf } from "../../kit/claims.ts";
import { container } from "../../kit/containers.ts";
import { node } from "../../kit/nodes.ts";
import { pod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";

/** The decision about the claims of a pod. */
function decided(dra: Json, asked: unknown, version?: string): ClaimsDecision {
  const answered = decide({ dra }, asked, version);
  if (!("decision" in answered)) throw new Error(JSON.stringify(answered));
  return answered.decision;
}
const drivers = [{ name: DRIVER, answers: [answer("gpu", ["0"])] }];
const gpu = claim("gpu", [result("0")], ["p"]);
describe("the resource claims of a pod", () => {
  test("are prepared by their drivers, whose answers give the containers their devices", () => {
    const decision = decided({ resourceClaims: [gpu], drivers }, claiming("p", ["gpu"]));
    expect(decision.refusal).toBeNull();
    expect(decision.pods[0]?.calls).toEqual([
      {
        driver: DRIVER,
        service: "v1.DRAPlugin",
        operation: "NodePrepareResources",
        claims: [{ namespace: "default", name: "gpu", uid: "claim-gpu" }],
      },
    ]);
    expect(decision.pods[0]?.containers).toEqual([
      { container: "c", cdiDevices: ["example.com/gpu=0"], pending: [], error: null },
    ]);
  });
  test("are prepared with one call per driver", () => {
    const nic = claim("nic", [result("1"), { ...result("2"), driver: "nic.example.com" }], ["p"]);
    const both = { resourceClaims: [gpu, nic], drivers: [...drivers, { name: "nic.example.com" }] };
    const [of] = decided(both, claiming("p", ["nic", "gpu"])).pods;
    expect(of?.calls.map(({ driver, claims }) => [driver, claims.map(({ name }) => name)])).toEqual([
      [DRIVER, ["nic", "gpu"]],
      ["nic.example.com", ["nic"]],
    ]);
    expect(of?.containers[0]?.pending).toEqual([DRIVER, "nic.example.com"]);
  });
  test.each([
    [[], drivers, 'fetch ResourceClaim gpu: resourceclaims.resource.k8s.io "gpu" not found'],
    [
      [claim("gpu", [result("0")], ["q"])],
      drivers,
      "pod p (uid-p) is not allowed to use ResourceClaim gpu (claim-gpu)",
    ],
    [[gpu], [], `DRA driver ${DRIVER} is not registered`],
    [[gpu], [{ name: DRIVER, registered: false }], `DRA driver ${DRIVER} is not registered`],
    [[gpu], [{ name: DRIVER, services: ["v1alpha4.DRAPlugin"] }], `DRA driver ${DRIVER} is not registered`],
    [[{ ...gpu, status: { reservedFor: [{ uid: "uid-p" }] } }], drivers, "ResourceClaim gpu: not allocated"],
  ])("keep the pod from starting, in the kubelet's words: %#", (resourceClaims, drivers, why) => {
    const decision = decided({ resourceClaims, drivers }, claiming("p", ["gpu"]));
    expect(decision.refusal).toEqual({
      reason: "FailedPrepareDynamicResources",
      message: `Failed to prepare dynamic resources: prepare dynamic resources: ${why}`,
    });
    expect(decision.pods[0]?.claims.map(({ state }) => state)).toEqual(["refused"]);
  });
  test("are reported in needs when no ResourceClaims are posted", () => {
    expect(decide({ dra: { drivers } }, claiming("p", ["gpu"]))).toMatchObject({
      refused: { code: "needs_input", needs: ["dra.resourceClaims"] },
    });
    expect(decide({ pods: [claiming("p", ["gpu"])] })).toMatchObject({ needs: ["dra.resourceClaims"] });
  });
  test("keep the kubelet from starting when its state file is damaged", () => {
    expect(decide({ assignments: { dra_manager_state: "{" } })).toMatchObject({
      verdict: "kubelet-refuses",
      decision: {
        startErrors: [
          "create ResourceClaim cache: GetOrCreate() on checkpoint state: failed to get checkpoint dra_manager_state: unexpected end of JSON input",
        ],
      },
    });
  });
});

describe("a claim that another pod held before", () => {
  const shared = claim("gpu", [result("0")], ["new"]);
  const held = stateOf("gpu", "uid-old");
  const ended = { ...claiming("old", ["gpu"]), status: { phase: "Succeeded" } };
  test.each([
    ["gone", []],
    ["ended", [ended]],
  ])("is joined by the new pod, and only the old one leaves it: the old pod is %s", (_, others) => {
    const of = claiming("new", ["gpu"]);
    const parts = { pods: [...others, of], dra: { resourceClaims: [shared], drivers }, assignments: held };
    for (const asked of [undefined, "default/new"]) {
      const answered = decide(parts, asked);
      expect(answered).toMatchObject({
        decision: { refusal: null, givenBack: [{ claims: [], kept: ["gpu"], calls: [] }] },
      });
    }
  });
});

test("without observedAt, device health recorded by drivers is of unknown age", () => {
  const device = { PoolName: "n1", DeviceName: "0", Health: "Healthy", LastUpdated: "2025-01-01T00:00:00Z" };
  const dra_health_state = JSON.stringify({ [DRIVER]: { Devices: { "n1/0": device } } });
  const parts = {
    pods: [claiming("p", ["gpu"])],
    dra: { resourceClaims: [gpu], drivers, resourceSlices: [] },
    assignments: { ...stateOf("gpu", "uid-p"), dra_health_state },
  };
  const healthIn = (answered: ReturnType<typeof decide>) =>
    "decision" in answered ? answered.decision.health[0]?.claims[0]?.resources[0]?.health : answered;
  const untimed = decide(parts);
  expect(untimed).toMatchObject({ needs: ["observedAt"] });
  expect(healthIn(untimed)).toBe("Unknown");
  const timed = decide({ ...parts, observedAt: "2025-01-01T00:00:10Z" });
  expect(timed).toMatchObject({ needs: [] });
  expect(healthIn(timed)).toBe("Healthy");
});

test("with the gate DynamicResourceAllocation off in 1.34, nothing is prepared and pods start without devices", () => {
  const parts = {
    pods: [claiming("p", ["gpu"])],
    dra: { resourceClaims: [gpu], drivers },
    kubeletConfiguration: { featureGates: { DynamicResourceAllocation: false } },
  };
  for (const asked of [undefined, claiming("p", ["gpu"])]) {
    expect(decide(parts, asked, "1.34")).toMatchObject({
      verdict: "decided",
      decision: { refusal: null, pods: [] },
      reasons: [{ because: [expect.objectContaining({ code: "dra_off" })] }],
    });
  }
});

describe("a device that the scheduler allocated", () => {
  const faultsOf = (of: Json, slices: readonly Json[], more: Json = {}) =>
    decided(
      { resourceClaims: [claim("gpu", [of], ["p"])], resourceSlices: slices, drivers, ...more },
      claiming("p", ["gpu"]),
    ).allocationFaults.map(({ fault, message }) => `${fault}: ${message}`);
  const hot = { name: "0", taints: [{ key: "hot", effect: "NoExecute" }] };
  test.each<[string, Json, readonly Json[], readonly string[]]>([
    ["is there", result("0"), [slice(["0"])], []],
    ["has no slice", result("0"), [], [`no-slice: no ResourceSlice is of driver ${DRIVER} and pool n1`]],
    ["is in no slice", result("1"), [slice(["0"])], ["no-device: no ResourceSlice of pool n1 has it"]],
    [
      "is in an older slice",
      result("0"),
      [slice(["0"]), slice(["1"], { pool: { name: "n1", generation: 2 } })],
      ["old-generation: only generation 1 of pool n1 has it, the newest is 2"],
    ],
    [
      "is of a pool that is not whole",
      result("0"),
      [slice(["0"], { pool: { name: "n1", generation: 1, resourceSliceCount: 2 } })],
      ["incomplete-pool: pool n1 has 1 of 2 ResourceSlices"],
    ],
    ["is elsewhere", result("0"), [slice(["0"], { nodeName: "n2" })], ["other-node: it is on node n2"]],
    ["is tainted", result("0"), [slice([hot])], ["tainted: its taint hot:NoExecute is not tolerated"]],
    [
      "is tainted and tolerated",
      result("0", { tolerations: [{ key: "hot", operator: "Exists" }] }),
      [slice([hot])],
      [],
    ],
  ])("%s", (_, of, slices, faults) => expect(faultsOf(of, slices)).toEqual(faults));
  const twin = (name: string): Json => ({ ...slice(["0"]), metadata: { name } });
  test("is reported when its pool has it more than once", () => {
    expect(faultsOf(result("0"), [twin("a"), twin("b")])).toEqual([
      "twice-in-pool: generation 1 of pool n1 has it more than once, in ResourceSlice a, b: nothing is given from such a pool",
    ]);
    expect(faultsOf(result("0"), [slice(["0", "0"])])).toEqual([
      "twice-in-pool: generation 1 of pool n1 has it more than once, in ResourceSlice slice, 2 times: nothing is given from such a pool",
    ]);
  });
  test("is reported when it takes more of a counter than other devices leave", () => {
    const part = (name: string, memory: string) => ({
      name,
      consumesCounters: [{ counterSet: "gpu-0", counters: { memory: { value: memory }, slices: { value: "1" } } }],
    });
    const counters = { memory: { value: "40Gi" }, slices: { value: "7" } };
    const pool = { name: "n1", generation: 1, resourceSliceCount: 2 };
    const slices = [
      slice([part("a", "20Gi"), part("b", "30Gi"), part("c", "20Gi")], { pool }),
      slice([], { pool, sharedCounters: [{ name: "gpu-0", counters }] }),
    ];
    const other = (of: Json) => ({
      resourceClaims: [claim("gpu", [result("a")], ["p"]), claim("other", [of], ["q"])],
    });
    expect(faultsOf(result("a"), slices, other(result("c")))).toEqual([]);
    expect(faultsOf(result("a"), slices, other(result("b", { adminAccess: true })))).toEqual([]);
    expect(faultsOf(result("a"), slices, other(result("b")))).toEqual([
      "counter-overdrawn: counter memory of gpu-0 has 40Gi, and the devices that are given take 50Gi: a of default/gpu takes 20Gi, b of default/other takes 30Gi",
    ]);
  });
  test("is reported when its shares exceed its capacity, or its driver allows no sharing", () => {
    const device = { name: "0", capacity: { memory: { value: "80Gi" } } };
    const share = (shareID: string, memory: string) => result("0", { shareID, consumedCapacity: { memory } });
    const other = (of: Json) => ({
      resourceClaims: [claim("gpu", [share("s", "60Gi")], ["p"]), claim("other", [of], ["q"])],
    });
    const shared = [slice([{ ...device, allowMultipleAllocations: true }])];
    expect(faultsOf(share("s", "60Gi"), shared, other(share("t", "20Gi")))).toEqual([]);
    expect(faultsOf(share("s", "60Gi"), shared, other(share("t", "60Gi")))).toEqual([
      "capacity-overdrawn: capacity memory of 0 has 80Gi, and the shares that are given take 120Gi: a share of default/gpu takes 60Gi, a share of default/other takes 60Gi",
    ]);
    expect(faultsOf(share("s", "60Gi"), [slice([device])], other(share("t", "20Gi")))).toEqual([
      "not-shareable: a share of it is given, and its driver does not allow shares (allowMultipleAllocations)",
    ]);
  });
  test("is reported when another claim has it too, unless by adminAccess", () => {
    const claims = [gpu, claim("other", [result("0")], ["q"])];
    const { allocationFaults } = decided({ resourceClaims: claims, drivers }, claiming("p", ["gpu"]));
    expect(allocationFaults).toMatchObject([{ fault: "given-twice", message: "it is given to default/other as well" }]);
    const shared = [gpu, claim("other", [result("0", { adminAccess: true })], ["q"])];
    expect(decided({ resourceClaims: shared, drivers }, claiming("p", ["gpu"])).allocationFaults).toEqual([]);
  });
  const reportOf = (resourceClaims: readonly Json[]) =>
    decided({ resourceClaims, drivers }, claiming("p", ["gpu"])).allocationFaults.map(({ fault, message }) => [
      fault,
      message,
    ]);
  test("is reported when its claim has it twice, or one claim has all of it and another a share", () => {
    const twice = "it is given to this claim once more as well";
    expect(reportOf([claim("gpu", [result("0"), result("0")], ["p"])])).toEqual([
      ["given-twice", twice],
      ["given-twice", twice],
    ]);
    const share = (shareID: string) => result("0", { shareID });
    expect(reportOf([gpu, claim("other", [share("s")], ["q"])])).toEqual([
      ["given-twice", "it is given to default/other as well"],
    ]);
    expect(reportOf([claim("gpu", [share("s"), share("t")], ["p"]), claim("other", [share("u")], ["q"])])).toEqual([]);
  });
  test("is reported when the claim has no such request, or the allocation is for other nodes", () => {
    const spec = { devices: { requests: [{ name: "nic", exactly: { deviceClassName: "c" } }] } };
    expect(reportOf([{ ...claim("gpu", [result("0")], ["p"]), spec }])).toEqual([
      ["no-request", "the claim has no request gpu"],
    ]);
    const none = claim("gpu", [], ["p"]);
    const matchFields = [{ key: "metadata.name", operator: "In", values: ["n2"] }];
    const allocation = { devices: { results: [] }, nodeSelector: { nodeSelectorTerms: [{ matchFields }] } };
    const { status } = none as { readonly status: Json };
    expect(reportOf([{ ...none, status: { ...status, allocation } }])).toEqual([
      ["other-node", "the allocation as a whole is for other nodes"],
    ]);
  });
});

describe("extended resources with a claim", () => {
  const RESOURCE = "example.com/gpu";
  const asking = pod("p", {
    spec: { containers: [container("c", { [RESOURCE]: "1" })] },
    status: {
      extendedResourceClaimStatus: {
        resourceClaimName: "gpu",
        requestMappings: [{ containerName: "c", resourceName: RESOURCE, requestName: "gpu" }],
      },
    },
  });
  const devices = [{ resource: RESOURCE, id: "0" }];
  const classes = { deviceClasses: [{ metadata: { name: "gpu" }, spec: { extendedResourceName: RESOURCE } }] };
  test.each([
    ["1.34", "device-plugin"],
    ["1.35", "device-plugin"],
    ["1.36", "claim"],
    ["1.37", "claim"],
  ])("under kubelet %s are provided by a %s", (version, by) => {
    const answered = decide({ devices, dra: { resourceClaims: [gpu], drivers } }, asking, version);
    const decision = "decision" in answered ? answered.decision : undefined;
    expect(decision?.extendedResources).toMatchObject([{ by, claim: "gpu", requests: ["gpu"], plugin: true }]);
    const cdi = decision?.pods[0]?.containers[0]?.cdiDevices;
    expect(cdi).toEqual(by === "claim" ? ["example.com/gpu=0"] : []);
  });
  const plain = pod("p", { spec: { containers: [container("c", { [RESOURCE]: "1" })] } });
  const listing = (amount: string, status: Json = {}) =>
    node({ capacity: { cpu: "4", memory: "8Gi", [RESOURCE]: amount }, status });
  test.each<[string, Json, string | null, string]>([
    ["a node that lists none", {}, "nothing", "resource_by_nothing"],
    ["a node that lists some", { node: listing("2") }, "device-plugin", "resource_listed"],
    ["a node whose plugin has ended", { node: listing("0") }, "nothing", "resource_by_nothing"],
    ["a plugin that is told", { devices }, "device-plugin", "resource_by_plugin"],
    ["a node that lists some, of no plugin", { node: listing("2"), devices: [] }, "node", "resource_counted"],
    [
      "a DeviceClass beside a node that lists some",
      { node: listing("2"), dra: classes },
      "device-plugin",
      "resource_listed",
    ],
    ["a DeviceClass alone", { dra: classes }, "nothing", "resource_by_nothing"],
    ["nothing that is known", { node: undefined }, null, "resource_not_known"],
  ])("of a pod without a claim for them are given by %s", (_, parts, by, code) => {
    const answered = decide({ pods: [plain], ...parts });
    if (!("decision" in answered)) throw new Error(JSON.stringify(answered));
    const plugin = by === "device-plugin";
    expect(answered.decision.extendedResources).toMatchObject([{ by, claim: null, plugin }]);
    const codes = answered.reasons.flatMap(({ because }) => because.map((one) => one.code));
    expect(codes.filter((one) => one.startsWith("resource_"))).toEqual([code]);
    expect(answered.needs).toEqual(by === null ? ["node.status.allocatable"] : []);
  });
  test("are provided by a plugin as well when a 1.34 node lists them", () => {
    const gates = { featureGates: { DRAExtendedResource: true } };
    const parts = { node: listing("2"), kubeletConfiguration: gates, dra: { resourceClaims: [gpu], drivers } };
    const answered = decide(parts, asking, "1.34");
    expect(answered).toMatchObject({ decision: { extendedResources: [{ by: "claim", plugin: true }] } });
    expect(JSON.stringify(answered)).toContain("resource_by_both");
  });
});

test("one pod of the node that cannot start makes the whole answer a refusal", () => {
  const other = claim("nic", [result("1")], ["q"]);
  const parts = {
    pods: [claiming("p", ["gpu"]), claiming("q", ["nic"])],
    dra: { resourceClaims: [gpu, other], drivers },
  };
  expect(decide(parts)).toMatchObject({ verdict: "decided", decision: { refusal: null } });
  const answered = decide({ ...parts, dra: { resourceClaims: [gpu], drivers } });
  if (!("decision" in answered)) throw new Error(JSON.stringify(answered));
  expect(answered).toMatchObject({ verdict: "refused", decision: { refusal: null } });
  expect(answered.decision.pods.map(({ message }) => message === null)).toEqual([true, false]);
  expect(decide({ ...parts, dra: { resourceClaims: [gpu], drivers } }, "default/p")).toMatchObject({
    verdict: "decided",
  });
});
