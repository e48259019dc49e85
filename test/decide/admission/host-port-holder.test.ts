import { describe, expect, it } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { admitted, boundPod, readyNode } from "./admission-kit.ts";

const MESSAGE = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
const with80 = (...hosts: readonly Json[]): Json => ({
  containers: [{ name: "c", ports: hosts.map((host) => ({ containerPort: 80, hostPort: 80, ...host })) }],
});
const asking80 = (host: Json): Json => boundPod("asking", {}, with80(host));
const holdersOf = (asking: Json, ...pods: readonly Json[]) => {
  const { decision, reasons } = admitted(readyNode({ pods }), asking);
  const reported = reasons.flatMap(({ because }) => because).filter(({ code }) => code === "host_port_taken");
  return { admit: decision.admit, message: decision.message, holders: reported.map(({ numbers }) => numbers) };
};

describe("a refusal for a host port in use", () => {
  it("names the pod that holds the port and its address, and keeps the kubelet's message", () => {
    const web = boundPod("web", {}, with80({}));
    const other = boundPod("other", {}, with80({ hostPort: 81 }));
    expect(holdersOf(asking80({ hostIP: "127.0.0.1" }), other, web)).toEqual({
      admit: false,
      message: MESSAGE,
      holders: [{ ip: "0.0.0.0", protocol: "TCP", port: 80, by: "default/web" }],
    });
  });
  it("names the holder on each address when the pod asks for the port on all addresses", () => {
    const web = boundPod("web", {}, with80({ hostIP: "10.0.0.1" }, { hostIP: "10.0.0.2" }, { protocol: "UDP" }));
    const dns = boundPod("dns", {}, with80({ hostIP: "10.0.0.3" }));
    expect(holdersOf(asking80({}), web, dns).holders).toEqual([
      { ip: "10.0.0.1", protocol: "TCP", port: 80, by: "default/web" },
      { ip: "10.0.0.2", protocol: "TCP", port: 80, by: "default/web" },
      { ip: "10.0.0.3", protocol: "TCP", port: 80, by: "default/dns" },
    ]);
  });
  it("covers containerPorts of hostNetwork pods that were never created, those of sidecars too", () => {
    const agent = boundPod("agent", {}, with80({}));
    const holders = [{ ip: "0.0.0.0", protocol: "TCP", port: 80, by: "default/agent" }];
    const ports = [{ containerPort: 80 }];
    const app = { name: "c", ports };
    const sidecar = { name: "s", ports, restartPolicy: "Always" };
    for (const lists of [{ containers: [app] }, { containers: [{ name: "c" }], initContainers: [sidecar] }]) {
      const asking = { metadata: { name: "asking" }, spec: { hostNetwork: true, ...lists } };
      expect(holdersOf(asking, agent)).toEqual({ admit: false, message: MESSAGE, holders });
      const inItsOwn = { ...asking, spec: { ...asking.spec, hostNetwork: false } };
      expect(holdersOf(inItsOwn, agent).holders).toEqual([]);
    }
  });
  it("names no process when the port is free", () => {
    expect(holdersOf(asking80({}), boundPod("udp", {}, with80({ protocol: "UDP" })))).toEqual({
      admit: true,
      message: "",
      holders: [],
    });
  });
});
