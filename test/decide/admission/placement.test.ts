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
  ])("%j holds: %s", (requirement, holds) => {
    expect(selects(requirement)).toBe(holds);
  });
  it("with a requirement that is not valid selects nothing", () => {
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
  it("looks at the node's name, and at no other field", () => {
    expect(selectsField(expression("metadata.name", "In", "n"))).toBe(true);
    expect(selectsField(expression("metadata.name", "NotIn", "n"))).toBe(false);
    expect(selectsField(expression("spec.x", "In", "n"))).toBe(false);
    expect(selectsField(expression("spec.x", "NotIn", "n"))).toBe(true);
  });
  it("wants all of a term, any of the terms, and the selector", () => {
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
  it("alone sees the labels as they are, beside others as the kubelet corrects them", () => {
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
  ])("%j tolerates it: %s", (toleration, yes) => {
    expect(tolerates([toleration], taint, false)).toBe(yes);
  });
  it("compare numbers where the gate is on", () => {
    const lower = (value: string): boolean => tolerates([{ key: "k", operator: "Lt", value }], taint, true);
    expect([lower("6"), lower("5"), lower("06"), lower("x")]).toEqual([true, false, false, false]);
    expect(tolerates([{ key: "k", operator: "Gt", value: "-4" }], taint, true)).toBe(true);
  });
  it("are asked of NoExecute taints only, and not of static pods", () => {
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
  it("conflict on one address, and where one side takes all", () => {
    expect(conflicts(on("10.0.0.1"), on("10.0.0.1"))).toBe(true);
    expect(conflicts(on("10.0.0.1"), on("10.0.0.2"))).toBe(false);
    expect(conflicts(on("0.0.0.0"), on("10.0.0.2"))).toBe(true);
    expect(conflicts(on("10.0.0.1"), on("0.0.0.0"))).toBe(true);
    expect(conflicts(on("0.0.0.0"), on("0.0.0.0", 81))).toBe(false);
    expect(conflicts(on("0.0.0.0"), on("0.0.0.0", 80, "UDP"))).toBe(false);
  });
  it("are those of containers and sidecars, not of init containers", () => {
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

describe("names", () => {
  it("tell extended resources from Kubernetes' own", () => {
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
  it("of sysctls read alike with dots and with slashes", () => {
    expect(normalized("net/ipv4/conf/eth0.1/x")).toBe("net.ipv4.conf.eth0/1.x");
    expect(normalized("net.ipv4.conf.eth0/1.x")).toBe("net.ipv4.conf.eth0/1.x");
  });
  it("of kernels compare by number", () => {
    expect(kernelAtLeast("4.15", [4, 15])).toBe(true);
    expect(kernelAtLeast("10.1-generic", [4, 15])).toBe(true);
    expect(kernelAtLeast("4.9.0", [4, 15])).toBe(false);
    expect(kernelAtLeast("lab", [3, 16])).toBe(false);
  });
});
