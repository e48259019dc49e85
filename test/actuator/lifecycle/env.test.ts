import { describe, expect, test } from "vitest";
import { type EnvFacts, expandAll, expandSubPath, podAddresses, resolveEnv } from "../../../actuator/lifecycle/env.ts";
import { type Fields, podObject, readPod, withContainer } from "./spec/sample.ts";

const FACTS: EnvFacts = {
  hostIPs: ["10.0.0.7", "fd00::7"],
  podIPs: ["fd00::1:2", "10.1.0.2", "10.1.0.3"],
  allocatable: { cpu: "1900m", memory: "23123516Ki", "ephemeral-storage": "254878031466" },
};
function valuesOf(object: Fields, facts = FACTS): Readonly<Record<string, string>> {
  const pod = readPod(object);
  const env = resolveEnv(pod.spec.containers[0] as never, pod, facts);
  if (!env.ok) throw new Error(env.error);
  return Object.fromEntries(env.value.map(({ key, value }) => [key, value]));
}
const literal = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));
const field = (fieldPath: string) => ({ name: "V", valueFrom: { fieldRef: { fieldPath } } });
const resource = (more: Fields) => ({ name: "V", valueFrom: { resourceFieldRef: more } });

describe("variable references", () => {
  const known = [
    { key: "A", value: "1" },
    { key: "B", value: "$(A)" },
  ];
  test.each([
    ["$(A)", "1"],
    ["x$(A)y$(B)z", "x1y$(A)z"],
    ["$$(A)", "$(A)"],
    ["$$$(A)", "$1"],
    ["$(GONE)", "$(GONE)"],
    ["$A $ {A}", "$A $ {A}"],
    ["$(A", "$(A"],
    ["$()", "$()"],
    ["100$", "100$"],
    ["$$", "$"],
    ["$(A$(A)", "$(A$(A)"],
    ["$😀$(A)", "$😀1"],
  ])("expand %s to %s", (text, expanded) => {
    expect(expandAll([text], known)).toEqual([expanded]);
  });
  test("see only variables defined before them, and the last of two values", () => {
    const env = [...literal({ A: "$(B)", B: "2", C: "$(A)-$(B)" }), { name: "A", value: "3" }];
    expect(valuesOf(withContainer({ env }))).toEqual({ A: "3", B: "2", C: "$(B)-2" });
  });
  test("in a subPathExpr must all be defined", () => {
    expect(expandSubPath("a/$(A)", known)).toEqual({ ok: true, value: "a/1" });
    const missing = [...known, { key: "EMPTY", value: "" }];
    expect(expandSubPath("$(Z)/$(EMPTY)/$(Z)", missing)).toEqual({ ok: false, error: "missing value for EMPTY, Z" });
  });
});

describe("the downward API fieldRef", () => {
  const metadata = { labels: { app: "web" }, annotations: { "example.com/Team": "core" } };
  test.each([
    ["metadata.name", "web"],
    ["metadata.namespace", "default"],
    ["metadata.uid", "3f2b"],
    ["metadata.labels['app']", "web"],
    ["metadata.labels['gone']", ""],
    ["metadata.labels['constructor']", ""],
    ["metadata.annotations['example.com/Team']", "core"],
    ["spec.nodeName", "n1"],
    ["spec.serviceAccountName", "runner"],
    ["status.hostIP", "10.0.0.7"],
    ["status.hostIPs", "10.0.0.7,fd00::7"],
    ["status.podIP", "10.1.0.2"],
    ["status.podIPs", "10.1.0.2,fd00::1:2"],
  ])("%s has the kubelet's value", (path, value) => {
    const container = { name: "c", image: "a:1", env: [field(path)] };
    const account = { serviceAccountName: "runner", automountServiceAccountToken: false };
    const spec = { nodeName: "n1", ...account, containers: [container] };
    expect(valuesOf(podObject(spec, metadata))).toEqual({ V: value });
  });
  test("podAddresses are the node's on the host's network, with the node's IP family first", () => {
    const onHost = readPod(podObject({ hostNetwork: true }));
    expect(podAddresses(onHost, { hostIPs: FACTS.hostIPs, podIPs: [] })).toEqual(["10.0.0.7", "fd00::7"]);
    const pod = readPod(podObject());
    expect(podAddresses(pod, { hostIPs: ["fd00::7"], podIPs: FACTS.podIPs })).toEqual(["fd00::1:2", "10.1.0.2"]);
    expect(podAddresses(pod, { hostIPs: FACTS.hostIPs, podIPs: [] })).toEqual([]);
  });
});

describe("the downward API resourceFieldRef", () => {
  const RESOURCES = {
    requests: { cpu: "250m", "hugepages-2Mi": "4Mi" },
    limits: { memory: "100Mi", "hugepages-2Mi": "4Mi" },
  };
  const ask = (more: Fields, spec: Fields = {}): string | undefined =>
    valuesOf(withContainer({ resources: RESOURCES, env: [resource(more)] }, spec))["V"];
  test.each([
    ["requests.cpu", "1", "1"],
    ["requests.cpu", "1m", "250"],
    ["limits.cpu", "1", "2"],
    ["limits.cpu", "1m", "1900"],
    ["limits.memory", "1Mi", "100"],
    ["limits.memory", "1M", "105"],
    ["limits.memory", "1Ei", "1"],
    ["limits.memory", "0", "104857600"],
    ["requests.memory", "1Ki", "102400"],
    ["limits.ephemeral-storage", "1Gi", "238"],
    ["requests.ephemeral-storage", "1", "0"],
    ["limits.hugepages-2Mi", "1Mi", "4"],
    ["limits.hugepages-1Gi", "1", "0"],
  ])("%s in units of %s is %s", (name, divisor, value) => {
    expect(ask({ resource: name, divisor })).toBe(value);
  });
  test("falls back from the container's limit to the pod's, and then to the node's", () => {
    expect(ask({ resource: "limits.cpu", divisor: "1m" }, { resources: { limits: { cpu: "700m" } } })).toBe("700");
  });
  test("may name another container; an init container gets no node default, as in the kubelet", () => {
    const init = { initContainers: [{ name: "i", image: "a:1" }] };
    expect(ask({ resource: "limits.cpu", containerName: "i" }, init)).toBe("0");
    expect(ask({ resource: "limits.cpu", containerName: "c" }, init)).toBe("2");
  });
  test("fails in the kubelet's words for an unknown container", () => {
    const pod = readPod(withContainer({ env: [resource({ resource: "limits.cpu", containerName: "x" })] }));
    expect(resolveEnv(pod.spec.containers[0] as never, pod, FACTS)).toEqual({
      ok: false,
      error: "container x not found",
    });
  });
});
