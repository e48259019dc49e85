import { describe, expect, test } from "vitest";
import { claimsTable } from "../../../api/text/tables/claims.ts";
import { answer, claim, claiming, DRIVER, decide, result, stateOf } from "../../kit/claims.ts";
import { container } from "../../kit/containers.ts";
import { pod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";

function decisionOf(...question: Parameters<typeof decide>) {
  const answered = decide(...question);
  if (!("decision" in answered)) throw new Error(JSON.stringify(answered));
  return answered.decision;
}
const drivers = [{ name: DRIVER, answers: [answer("gpu", ["0"])] }];
const gpu = claim("gpu", [result("0")], ["p"]);
const dra = { resourceClaims: [gpu], drivers };
const messages = (...question: Parameters<typeof decide>): readonly string[] =>
  decisionOf(...question).warnings.map(({ about, warning, message }) => `${warning} ${about}: ${message}`);

describe("claims of a pod that has ended or is being deleted", () => {
  const succeeded: Json = { status: { phase: "Succeeded" } };
  const running = { containerStatuses: [{ name: "c", containerID: "containerd://1", state: { running: {} } }] };
  const named = claiming("p", ["gpu"])["metadata"] as Json;
  const deleted: Json = {
    metadata: { ...named, deletionTimestamp: "2026-01-01T00:00:00Z" },
    status: { phase: "Running" },
  };
  test.each<[string, Json, string]>([
    ["ended", succeeded, "the pod has ended (Succeeded)"],
    ["ended", { status: { phase: "Failed", ...running } }, "the pod has ended (Failed)"],
    ["being-deleted", deleted, "the pod is being deleted"],
  ])("are not prepared, and held ones are given back: %s", (warning, more, why) => {
    const of = { ...claiming("p", ["gpu"]), ...more };
    const held = { pods: [of], dra, assignments: stateOf("gpu", "uid-p") };
    for (const asked of ["default/p", undefined, of]) {
      const decision = decisionOf(held, asked);
      expect(decision.pods).toEqual([]);
      expect(decision.givenBack).toMatchObject([
        {
          pod: { name: "p" },
          when: "containers-stopped",
          claims: ["gpu"],
          calls: [{ operation: "NodeUnprepareResources" }],
        },
      ]);
    }
    expect(messages(held, "default/p")).toEqual([
      `${warning} default/p: ${why}: no claim is prepared, and what it holds is given back once its containers have stopped`,
    ]);
    const others = { pods: [of], dra, assignments: stateOf("gpu", "uid-q") };
    expect(messages(others, "default/p")).toEqual([
      `${warning} default/p: ${why}: no claim is prepared, and it holds none that would be given back`,
    ]);
    // without the state file the pod may hold claims; the claims themselves are not needed for this warning
    expect(messages({ pods: [of] }, "default/p")).toEqual(messages(held, "default/p"));
    expect(decisionOf({ pods: [of] }, "default/p").pods).toEqual([]);
  });
  test("give no warning when the pod is posted without a status", () => {
    expect(decisionOf({ dra }, claiming("p", ["gpu"]))).toMatchObject({ warnings: [], pods: [{ calls: [{}] }] });
  });
});

describe("nothing is prepared for a pod, with a warning why", () => {
  const extended = pod("p", { spec: { containers: [container("c", { "example.com/gpu": "1" })] } });
  test.each(["1.34", "1.35", "1.36", "1.37"])(
    "when it has only an extended resource, or nothing, under kubelet %s",
    (version) => {
      const reported = ["no-claims default/p: the pod has no claims: nothing is prepared"];
      expect(messages({ dra }, extended, version)).toEqual(reported);
      expect(messages({}, pod("p"), version)).toEqual(reported);
    },
  );
  test("when its templates generated no claim", () => {
    const of = claiming("p", []);
    const spec = { ...(of["spec"] as Json), resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "t" }] };
    const unneeded = { ...of, spec, status: { resourceClaimStatuses: [{ name: "gpu" }] } };
    expect(messages({ dra }, unneeded)).toEqual([
      "no-claims default/p: none of the pod's claims was needed, and none made: nothing is prepared",
    ]);
    const one = { ...unneeded, status: { resourceClaimStatuses: [{ name: "gpu", resourceClaimName: "gpu" }] } };
    const own = {
      ...gpu,
      metadata: { ...(gpu["metadata"] as Json), ownerReferences: [{ uid: "uid-p", controller: true }] },
    };
    expect(messages({ dra: { ...dra, resourceClaims: [own] } }, one)).toEqual([]);
  });
  test("when the gate DynamicResourceAllocation is off", () => {
    const kubeletConfiguration = { featureGates: { DynamicResourceAllocation: false } };
    expect(messages({ dra, kubeletConfiguration }, claiming("p", ["gpu"]), "1.34")).toEqual([
      "gate-off default/p: the gate DynamicResourceAllocation is off: no claim is prepared, and the pod starts without their devices",
    ]);
  });
});

describe("a warning says that a container gets no device", () => {
  const requesting = (request: string): Json => {
    const resources = { claims: [{ name: "gpu", request }] };
    const spec = {
      resourceClaims: [{ name: "gpu", resourceClaimName: "gpu" }],
      containers: [{ ...container("c"), resources }],
    };
    return pod("p", { spec });
  };
  const wanting = { ...gpu, spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "c" } }] } } };
  const answering = (
    requestNames: readonly string[],
    devices = [{ poolName: "n1", deviceName: "0", requestNames }],
  ) => [{ name: DRIVER, answers: [{ claim: "claim-gpu", devices }] }];
  const reportOf = (request: string, parts: Json, version?: string) =>
    messages({ dra: { resourceClaims: [wanting], ...parts } }, requesting(request), version);
  const none = (request: string) =>
    `request-without-device default/p: container c gets no device for request ${request} of ResourceClaim gpu:`;
  test.each(["1.34", "1.37"])("when its claim has no such request, under %s", (version) => {
    const why = `${none("rr")} the claim has no such request, only gpu`;
    expect(reportOf("rr", { drivers }, version)).toEqual([why]);
    // also before the driver has answered
    expect(reportOf("rr", {}, version)).toEqual([why]);
    expect(reportOf("gpu", { drivers }, version)).toEqual([]);
    expect(reportOf("gpu", {}, version)).toEqual([]);
  });
  test.each(["1.34", "1.35", "1.36", "1.37"])("when the driver answers for a subrequest only, under %s", (version) => {
    const parts = { drivers: answering(["gpu/big"]) };
    expect(reportOf("gpu", parts, version)).toEqual([
      `${none("gpu")} its drivers answer for gpu/big alone, and the kubelet compares whole names`,
    ]);
    expect(reportOf("gpu", { drivers: answering([]) }, version)).toEqual([]);
    expect(reportOf("gpu", { drivers: answering([], []) }, version)).toEqual([
      `${none("gpu")} no driver answers with one`,
    ]);
  });
});

describe("a warning about a posted driver says", () => {
  const reported = (parts: Json, of = claiming("p", ["gpu"])) => messages({ dra: { ...dra, ...parts } }, of);
  test("why the kubelet does not register it", () => {
    const words =
      'none of services supported by the plugin (["v1alpha4.Node"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])';
    const driver = { name: DRIVER, services: ["v1alpha4.Node"] };
    for (const more of [{}, { registered: true }])
      expect(reported({ drivers: [{ ...driver, ...more }] })).toEqual([
        `driver-not-registered ${DRIVER}: the kubelet does not register it: ${words}`,
      ]);
    expect(reported({ drivers: [{ ...driver, registered: false }] })).toEqual([]);
  });
  test.each(["gpu", "default/gpu"])("that no claim has the uid %s, and the uid of the claim with that name", (uid) => {
    expect(reported({ drivers: [{ name: DRIVER, answers: [{ claim: uid }] }] })).toEqual([
      `answer-for-no-claim ${DRIVER}: no ResourceClaim has the uid ${uid}, of which it answers; that of ResourceClaim default/gpu is claim-gpu`,
    ]);
  });
  test("which faults of its answer the kubelet does not check", () => {
    const devices = [
      { poolName: "n1", deviceName: "0", cdiDeviceIds: ["example.com/gpu=0", "notcdi", "a.b/c-d=0:1"] },
      { poolName: "n1", deviceName: "9" },
    ];
    const wrong = { drivers: [{ name: DRIVER, answers: [{ claim: "claim-gpu", devices }] }] };
    const of = "its answer of ResourceClaim default/gpu has";
    expect(reported(wrong)).toEqual([
      `no-cdi-device ${DRIVER}: ${of} \`notcdi\`, which is no CDI device (VENDOR/CLASS=NAME); the kubelet does not check it, and the runtime creates no container with it`,
      `device-not-allocated ${DRIVER}: ${of} device n1/9, which is not allocated to that claim; the kubelet does not check it, and gives it`,
    ]);
    // a prepared claim is not checked again
    const held = { pods: [claiming("p", ["gpu"])], dra: { ...dra, ...wrong }, assignments: stateOf("gpu", "uid-p") };
    expect(messages(held, "default/p")).toEqual([]);
  });
});

test("a claim not found in the pod's namespace is reported with the namespace that has one of its name", () => {
  const lost = claim("gpu", [result("0")], ["p"], { metadata: { name: "gpu", uid: "claim-gpu" } });
  const of = claiming("p", ["gpu"]);
  const elsewhere = { ...of, metadata: { ...(of["metadata"] as Json), namespace: "ml" } };
  const decision = decisionOf({ dra: { ...dra, resourceClaims: [lost] } }, elsewhere);
  expect(decision.refusal?.message).toContain('"gpu" not found');
  expect(decision.warnings.map(({ message }) => message)).toEqual([
    "no ResourceClaim gpu is posted in namespace ml, and one of that name is in default (it names none)",
  ]);
});

test("a claim shared by pods of the node is to be prepared for the first and joined by the others", () => {
  const shared = claim("gpu", [result("0")], ["a", "b"]);
  const parts = { pods: [claiming("a", ["gpu"]), claiming("b", ["gpu"])], dra: { resourceClaims: [shared], drivers } };
  const states = (more: Json = {}) => decisionOf({ ...parts, ...more }).pods.map(({ claims }) => claims[0]?.state);
  expect(states()).toEqual(["to-prepare", "to-join"]);
  expect(states({ assignments: stateOf("gpu", "uid-a") })).toEqual(["prepared", "prepared"]);
  const open = decisionOf({ ...parts, dra: { resourceClaims: [shared] } });
  expect(open.pods.map(({ containers }) => containers[0]?.pending)).toEqual([[DRIVER], [DRIVER]]);
});

test("the claims table says that claims can be prepared only for pods with claims, with warnings below", () => {
  const table = (of: Json, parts: Json = {}) => {
    const decision = decisionOf({ dra: { ...dra, ...parts } }, of);
    const asked = { namespace: "default", name: "p", uid: "uid-p" };
    return claimsTable({
      decision,
      asked,
      columns: 200,
      paint: (color, text) => `${color}:${text}`,
      notesAt: () => [],
    });
  };
  const lines = (of: Json, parts?: Json) => table(of, parts).split("\n").slice(0, 2);
  const whole = claiming("p", ["gpu"]);
  expect(lines(whole)).toEqual(["green:its claims can be prepared: default/p", ""]);
  const ended = { ...whole, status: { phase: "Succeeded" } };
  expect(table(ended)).toMatch(/^yellow:default\/p: the pod has ended \(Succeeded\): no claim is prepared, .*\n$/);
  expect(table(pod("p"))).toBe("yellow:default/p: the pod has no claims: nothing is prepared\n");
  const odd = { drivers: [...drivers, { name: "old.example.com", services: [] }] };
  expect(lines(whole, odd)).toEqual([
    "green:its claims can be prepared: default/p",
    "yellow:old.example.com: the kubelet does not register it: empty list of supported gRPC services (aka supported versions)",
  ]);
});
