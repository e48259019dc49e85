import { describe, expect, test } from "vitest";
import { dnsOf, type NodeDns, parseResolvConf } from "../../../actuator/pods/networking/dns.ts";
import { runnable } from "../../kit/runnable-pods.ts";

const HOST = { servers: ["9.9.9.9"], searches: ["example.org"], options: ["attempts:2"] };
const nodeDns = (more: Partial<NodeDns> = {}): NodeDns => ({
  clusterDNS: [],
  clusterDomain: "",
  host: HOST,
  nodeIps: ["10.1.1.1"],
  ...more,
});
const CLUSTER = { clusterDNS: ["10.96.0.10"], clusterDomain: "cluster.local" };
const FELL_BACK = {
  reason: "MissingClusterDNS",
  message:
    'pod: "web_default(uid-1)". kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.',
};

test("parseResolvConf reads a resolv.conf as the resolver does", () => {
  const text =
    "# nameserver 1.1.1.1\nnameserver 9.9.9.9 \nnameserver\nsearch old.org\n  search  a.org. . b.org\noptions ndots:2 rotate\noptions ndots:5\nnameserver 8.8.8.8\nsortlist 1\n";
  expect(parseResolvConf(text)).toEqual({
    conf: { servers: ["9.9.9.9", "8.8.8.8"], searches: ["a.org", "b.org"], options: ["ndots:5", "rotate"] },
    errors: ["nameserver list is empty "],
  });
});

describe("a pod's resolv.conf", () => {
  test("names the cluster DNS server, and the pod's namespace first among the search domains", () => {
    expect(dnsOf(runnable(), nodeDns(CLUSTER))).toEqual({
      conf: {
        servers: ["10.96.0.10"],
        searches: ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.org"],
        options: ["ndots:5"],
      },
      events: [],
    });
  });
  test("is the node's when there is no cluster DNS server, with an event, and by dnsPolicy", () => {
    expect(dnsOf(runnable(), nodeDns())).toEqual({ conf: HOST, events: [FELL_BACK] });
    expect(dnsOf(runnable({ dnsPolicy: "Default" }), nodeDns(CLUSTER))).toEqual({ conf: HOST, events: [] });
    expect(dnsOf(runnable({ hostNetwork: true }), nodeDns(CLUSTER))).toEqual({ conf: HOST, events: [] });
    expect(
      dnsOf(runnable({ hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" }), nodeDns(CLUSTER)).conf.servers,
    ).toEqual(["10.96.0.10"]);
  });
  test("is localhost when the node has none", () => {
    const asked = runnable({ dnsPolicy: "Default" });
    expect(dnsOf(asked, nodeDns({ host: null })).conf).toEqual({
      servers: ["127.0.0.1"],
      searches: ["."],
      options: [],
    });
    expect(dnsOf(asked, nodeDns({ host: null, nodeIps: ["fd00::1"] })).conf.servers).toEqual(["::1"]);
    expect(dnsOf(asked, nodeDns({ host: null, nodeIps: [] })).conf.servers).toEqual(["127.0.0.1"]);
  });
  test("adds the pod's dnsConfig, or consists of it alone with dnsPolicy None", () => {
    const dnsConfig = {
      nameservers: ["1.1.1.1", "9.9.9.9"],
      searches: ["my.org"],
      options: [
        { name: "attempts", value: "3" },
        { name: "edns0", value: null },
      ],
    };
    const own = { servers: ["1.1.1.1", "9.9.9.9"], searches: ["my.org"], options: ["attempts:3", "edns0"] };
    expect(dnsOf(runnable({ dnsPolicy: "None", dnsConfig }), nodeDns()).conf).toEqual(own);
    expect(dnsOf(runnable({ dnsPolicy: "Default", dnsConfig }), nodeDns()).conf).toEqual({
      servers: ["9.9.9.9", "1.1.1.1"],
      searches: ["example.org", "my.org"],
      options: ["attempts:3", "edns0"],
    });
  });
  test("has at most three name servers, and no more search domains than a resolver takes", () => {
    const long = (n: number) => Array.from({ length: n }, (_, i) => `${i}${"x".repeat(80)}.org`);
    const dnsConfig = { nameservers: ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"], searches: long(33), options: [] };
    const { conf, events } = dnsOf(runnable({ dnsPolicy: "None", dnsConfig }), nodeDns());
    expect(conf.servers).toEqual(["1.1.1.1", "1.1.1.2", "1.1.1.3"]);
    expect(conf.searches).toEqual(long(33).slice(0, 23));
    expect(events.map(({ message }) => message.split(": ")[0])).toEqual([
      "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is",
      "Search Line limits were exceeded, some search paths have been omitted, the applied search line is",
    ]);
    const tooLong = { nameservers: [], searches: ["y".repeat(254), "ok.org"], options: [] };
    expect(dnsOf(runnable({ dnsPolicy: "None", dnsConfig: tooLong }), nodeDns()).conf.searches).toEqual(["ok.org"]);
  });
});
