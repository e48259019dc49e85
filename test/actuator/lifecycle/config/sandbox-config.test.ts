import { describe, expect, test } from "vitest";
import { type SandboxConfigRequest, sandboxConfigOf } from "../../../../actuator/lifecycle/config/container-config.ts";
import { hostNameOf, kernelHostName } from "../../../../actuator/lifecycle/config/labels.ts";
import { bytes, cpuShares } from "../../../../api/model/units.ts";
import { type Fields, podObject, readPod, withContainer } from "../spec/sample.ts";

const ASKED: SandboxConfigRequest = {
  owner: "nodewise",
  attempt: 2,
  logDirectory: "/var/log/pods/default_web_3f2b",
  cgroupParent: "/kubepods/burstable/pod3f2b",
  dns: { servers: ["10.0.0.10"], searches: ["default.svc.cluster.local"], options: ["ndots:5"] },
  clusterDomain: "cluster.local",
  values: undefined,
  version: 1,
};
function configOf(object: Fields) {
  const config = sandboxConfigOf(readPod(object), ASKED);
  if (!config.ok) throw new Error(config.error);
  return config.value;
}

test("the sandbox config of a plain pod has the kubelet's fields", () => {
  const metadata = { labels: { app: "web" }, annotations: { a: "b" } };
  expect(configOf(podObject({}, metadata))).toEqual({
    metadata: { name: "web", namespace: "default", uid: "3f2b", attempt: 2 },
    hostname: "web",
    logDirectory: "/var/log/pods/default_web_3f2b",
    dnsConfig: ASKED.dns,
    labels: {
      app: "web",
      "io.kubernetes.pod.name": "web",
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.pod.uid": "3f2b",
      "nodewise.dev/owner": "nodewise",
    },
    annotations: { a: "b" },
    linux: {
      cgroupParent: "/kubepods/burstable/pod3f2b",
      sysctls: {},
      securityContext: {
        namespaceOptions: { network: "POD", pid: "CONTAINER", ipc: "POD" },
        supplementalGroups: [],
        privileged: false,
        seccomp: { profileType: "RuntimeDefault" },
      },
    },
  });
});

test("the pod's own resources and its overhead are separate fields", () => {
  const resources = { cpuShares: cpuShares(204), memory: bytes(2 ** 20) };
  const values = { resources, overhead: { cpuShares: cpuShares(2), memoryOomGroup: true } };
  const config = sandboxConfigOf(readPod(podObject()), { ...ASKED, values, version: 2 });
  expect(config).toMatchObject({
    value: {
      linux: {
        resources: { cpuShares: 204, memoryLimitInBytes: 2 ** 20 },
        overhead: { cpuShares: 2, unified: { "memory.oom.group": "1" } },
      },
    },
  });
});

test("a pod's labels cannot override the owner label", () => {
  const { labels } = configOf(
    podObject({}, { labels: { "nodewise.dev/owner": "other", "io.kubernetes.pod.uid": "x" } }),
  );
  expect(labels).toMatchObject({ "nodewise.dev/owner": "nodewise", "io.kubernetes.pod.uid": "3f2b" });
});

test("host namespaces, privileged init containers, users, groups and sysctls are set", () => {
  const config = configOf(
    podObject({
      hostNetwork: true,
      hostPID: true,
      hostIPC: true,
      initContainers: [{ name: "i", image: "a:1", securityContext: { privileged: true } }],
      containers: [{ name: "c", image: "a:1", ports: [{ containerPort: 80 }] }],
      securityContext: {
        runAsUser: 1000,
        runAsGroup: 3000,
        fsGroup: 2000,
        supplementalGroups: [5, 6],
        sysctls: [{ name: "kernel.shm_rmid_forced.x", value: "1" }],
      },
    }),
  );
  expect(config).not.toHaveProperty("hostname");
  expect(config).not.toHaveProperty("portMappings");
  expect(config.linux).toMatchObject({
    sysctls: { "kernel.shm_rmid_forced.x": "1" },
    securityContext: {
      namespaceOptions: { network: "NODE", pid: "NODE", ipc: "NODE" },
      runAsUser: { value: 1000 },
      runAsGroup: { value: 3000 },
      supplementalGroups: [2000, 5, 6],
      privileged: true,
    },
  });
});

test("shareProcessNamespace sets the pod's PID namespace", () => {
  const { linux } = configOf(podObject({ shareProcessNamespace: true }));
  expect(linux?.securityContext?.namespaceOptions.pid).toBe("POD");
});

test("port mappings are those of regular containers, each once", () => {
  const port = (more: Fields) => ({ containerPort: 80, ...more });
  const ports = [
    port({}),
    port({}),
    port({ hostPort: 8080, hostIP: "127.0.0.1" }),
    port({ protocol: "UDP", name: "dns" }),
  ];
  const init = [{ name: "i", image: "a:1", ports: [{ containerPort: 1, hostPort: 1 }] }];
  expect(configOf(withContainer({ ports }, { initContainers: init })).portMappings).toEqual([
    { protocol: "TCP", containerPort: 80, hostPort: 0, hostIp: "" },
    { protocol: "TCP", containerPort: 80, hostPort: 8080, hostIp: "127.0.0.1" },
    { protocol: "UDP", containerPort: 80, hostPort: 0, hostIp: "" },
  ]);
});

describe("the host name of a pod", () => {
  test("is cut to 63 characters, and never ends with a dot or a dash", () => {
    const name = `${"a".repeat(61)}.-`.replace(/-$/, "b".repeat(9));
    expect(hostNameOf(readPod(podObject({}, { name })), "cluster.local").hostname).toBe(`${"a".repeat(61)}.b`);
    const dotted = `${"a".repeat(62)}.${"b".repeat(9)}`;
    expect(hostNameOf(readPod(podObject({}, { name: dotted })), "cluster.local").hostname).toBe("a".repeat(62));
  });
  test("is fully qualified with a subdomain where that is requested and fits", () => {
    const fields = { hostname: "h", subdomain: "s" };
    expect(hostNameOf(readPod(podObject(fields)), "c.local")).toEqual({
      hostname: "h",
      domain: "s.default.svc.c.local",
    });
    expect(kernelHostName(readPod(podObject(fields)), "c.local")).toEqual({ ok: true, value: "h" });
    const asFqdn = readPod(podObject({ ...fields, setHostnameAsFQDN: true }));
    expect(kernelHostName(asFqdn, "c.local")).toEqual({ ok: true, value: "h.s.default.svc.c.local" });
    expect(kernelHostName(asFqdn, "x".repeat(50))).toEqual({
      ok: false,
      error: `failed to construct FQDN from pod hostname and cluster domain, FQDN h.s.default.svc.${"x".repeat(50)} is too long (64 characters is the max, 66 characters requested)`,
    });
  });
});
