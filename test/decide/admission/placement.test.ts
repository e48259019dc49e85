import { describe, expect, it } from "vitest";
import { selectsNode } from "../../../api/decide/admission/node-affinity.ts";
import { conflicts, tolerates } from "../../../api/decide/admission/predicates.ts";
import { kernelAtLeast, normalized } from "../../../api/decide/admission/sysctls.ts";
import type { Pod } from "../../../api/model/pod.ts";
import { isExtendedResource } from "../../../api/model/resource-name.ts";
import { decodedPod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { admitted, boundPod, readyNode, wouldRefuse } from "./admission-kit.ts";

const LABELS = { zone: "a", gen: "3", word: "x" };
const specified = (spec: Json): Pod => decodedPod(boundPod("p", {}, spec));
const term = (nodeSelectorTerm: Json): Json => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [nodeSelectorTerm] } },
  },
});
const expression = (key: string, operator: string, ...values: string[]): Json => ({ key, operator, values });
const selects = (...matchExpressions: Json[]): boolean =>
  selectsNode(specified(term({ matchExpressions })), LABELS, "n");
const selectsField = (...matchFields: Json[]): boolean => selectsNode(specified(term({ matchFields })), LABELS, "n");

describe("node affinity", () => {
  it.each([
    [expression("zone", "In", "b", "a"), true],
    [expression("zone", "In", "b"), false],
    [expression("none", "In", "b"), false],
    [expression("zone", "NotIn", "b"), true],
    [expression("none", "NotIn", "b"), true],
    [expression("zone", "NotIn", "a"), false],
    [expression("zone", "Exists"), true],
    [expression("none", "Exists"), false],
    [expression("none", "DoesNotExist"), true],
    [expression("gen", "Gt", "2"), true],
    [expression("gen", "Gt", "3"), false],
    [expression("gen", "Lt", "4"), true],
    [expression("word", "Gt", "2"), false],
    [expression("none", "Lt", "2"), false],
    [expression("gen", "Lt", "9223372036854775808"), false],
  ])("expression %j selects the node: %s", (requirement, holds) => {
    expect(selects(requirement)).toBe(holds);
  });
  it("selects nothing when a requirement is invalid", () => {
    for (const wrong of [
      expression("zone", "In"),
      expression("zone", "Exists", "a"),
      expression("gen", "Gt", "1", "2"),
      expression("gen", "Gt", "x"),
      expression("zone", "Near", "a"),
      expression("a/b/c", "DoesNotExist"),
      expression("zone", "NotIn", "not a label"),
    ]) {
      expect(selects(wrong), JSON.stringify(wrong)).toBe(false);
    }
    expect(selectsField(expression("metadata.name", "In", "n", "m"))).toBe(false);
    expect(selectsField(expression("metadata.name", "Exists"))).toBe(false);
  });
  it("matches fields by metadata.name only", () => {
    expect(selectsField(expression("metadata.name", "In", "n"))).toBe(true);
    expect(selectsField(expression("metadata.name", "NotIn", "n"))).toBe(false);
    expect(selectsField(expression("spec.x", "In", "n"))).toBe(false);
    expect(selectsField(expression("spec.x", "NotIn", "n"))).toBe(true);
  });
  it("needs all requirements of a term, any one of the terms, and the nodeSelector", () => {
    expect(selects(expression("zone", "Exists"), expression("gen", "Gt", "7"))).toBe(false);
    expect(selectsNode(specified(term({})), LABELS, "n")).toBe(false);
    expect(
      selectsNode(
        specified({ nodeSelector: { zone: "b" }, ...term({ matchExpressions: [expression("gen", "Exists")] }) }),
        LABELS,
        "n",
      ),
    ).toBe(false);
    expect(selectsNode(specified({ nodeSelector: { constructor: "x" } }), LABELS, "n")).toBe(false);
  });
  it("reads node labels as posted when it alone refuses, else as the kubelet corrects them", () => {
    const without = term({ matchExpressions: [expression("kubernetes.io/os", "DoesNotExist")] });
    const node = { metadata: { name: "n", labels: { zone: "a" } } };
    expect(admitted(readyNode({}, {}, node), boundPod("p", {}, without)).decision.admit).toBe(true);
    expect(wouldRefuse(admitted(readyNode({}, {}, node), boundPod("p", { cpu: "9" }, without)))).toEqual([
      "predicates OutOfcpu",
      "predicates NodeAffinity",
    ]);
  });
});

describe("tolerations", () => {
  const taint = { key: "k", value: "5", effect: "NoExecute" };
  it.each([
    [{ key: "k", operator: "Exists" }, true],
    [{ operator: "Exists" }, true],
    [{ key: "k", value: "5" }, true],
    [{ key: "k", operator: "Equal", value: "6" }, false],
    [{ key: "k", operator: "Exists", effect: "NoSchedule" }, false],
    [{ key: "k", operator: "Lt", value: "6" }, false],
    [{ key: "k", operator: "Near", value: "5" }, false],
  ])("toleration %j tolerates the taint: %s", (toleration, yes) => {
    expect(tolerates([toleration], taint, false)).toBe(yes);
  });
  it("compare numbers with Lt and Gt when the feature gate is on", () => {
    const lower = (value: string): boolean => tolerates([{ key: "k", operator: "Lt", value }], taint, true);
    expect([lower("6"), lower("5"), lower("06"), lower("x")]).toEqual([true, false, false, false]);
    expect(tolerates([{ key: "k", operator: "Gt", value: "-4" }], taint, true)).toBe(true);
  });
  it("are required for NoExecute taints only, and not of static pods", () => {
    const tainted = (effect: string): Json =>
      readyNode({}, {}, { spec: { taints: [{ key: "k", value: "5", effect }] } });
    const fixed = { ...boundPod("p"), metadata: { name: "p", annotations: { "kubernetes.io/config.source": "file" } } };
    expect(wouldRefuse(admitted(tainted("NoExecute"), boundPod("p")))).toEqual(["predicates TaintToleration"]);
    expect(admitted(tainted("NoSchedule"), boundPod("p")).decision.admit).toBe(true);
    expect(admitted(tainted("NoExecute"), fixed).decision.admit).toBe(true);
  });
});

describe("host ports", () => {
  const on = (ip: string, port = 80, protocol = "TCP") => ({ ip, port, protocol });
  it("conflict on the same address, and when one side binds all addresses", () => {
    expect(conflicts(on("10.0.0.1"), on("10.0.0.1"))).toBe(true);
    expect(conflicts(on("10.0.0.1"), on("10.0.0.2"))).toBe(false);
    expect(conflicts(on("0.0.0.0"), on("10.0.0.2"))).toBe(true);
    expect(conflicts(on("10.0.0.1"), on("0.0.0.0"))).toBe(true);
    expect(conflicts(on("0.0.0.0"), on("0.0.0.0", 81))).toBe(false);
    expect(conflicts(on("0.0.0.0"), on("0.0.0.0", 80, "UDP"))).toBe(false);
  });
  it("are taken by containers and sidecars, not by init containers", () => {
    const ports = [{ containerPort: 80, hostPort: 8080 }];
    const init = (restartPolicy?: string): Json => ({
      initContainers: [{ name: "i", ports, ...(restartPolicy && { restartPolicy }) }],
    });
    const holding = (spec: Json): Json => readyNode({ pods: [boundPod("old", {}, spec)] });
    const asking = boundPod("p", {}, { containers: [{ name: "c", ports }] });
    expect(wouldRefuse(admitted(holding(init("Always")), asking))).toEqual(["predicates NodePorts"]);
    expect(admitted(holding(init()), asking).decision.admit).toBe(true);
  });
});

describe("parsing of names", () => {
  it("extended resources are distinguished from Kubernetes' own resources", () => {
    const names = [
      "example.com/gpu",
      "cpu",
      "kubernetes.io/x",
      "requests.example.com/x",
      "a/b/c",
      "Example.com/x",
      "x.y/-",
    ];
    expect(names.filter(isExtendedResource)).toEqual(["example.com/gpu"]);
  });
  it("sysctl names with dots and with slashes are normalised alike", () => {
    expect(normalized("net/ipv4/conf/eth0.1/x")).toBe("net.ipv4.conf.eth0/1.x");
    expect(normalized("net.ipv4.conf.eth0/1.x")).toBe("net.ipv4.conf.eth0/1.x");
  });
  it("kernel versions are compared as numbers", () => {
    expect(kernelAtLeast("4.15", [4, 15])).toBe(true);
    expect(kernelAtLeast("10.1-generic", [4, 15])).toBe(true);
    expect(kernelAtLeast("4.9.0", [4, 15])).toBe(false);
    expect(kernelAtLeast("lab", [3, 16])).toBe(false);
  });
});
