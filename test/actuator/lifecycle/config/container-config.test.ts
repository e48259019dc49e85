import { describe, expect, test } from "vitest";
import {
  type ContainerConfigRequest,
  containerConfigOf,
  containerResources,
  withDeviceEnv,
} from "../../../../actuator/lifecycle/config/container-config.ts";
import { containerHash } from "../../../../actuator/lifecycle/config/labels.ts";
import type { DeviceOptions } from "../../../../api/model/devices.ts";
import { type Fields, podObject, readPod, withContainer } from "../spec/sample.ts";

const ASKED: ContainerConfigRequest = {
  owner: "nodewise",
  attempt: 3,
  image: "sha256:abc",
  imageUser: null,
  env: [{ key: "A", value: "1" }],
  mounts: [{ containerPath: "/v", hostPath: "/data/v", readonly: true, propagation: "PROPAGATION_PRIVATE" }],
  devices: null,
  resources: undefined,
  version: 1,
  security: { seccompDefault: false, seccompDirectory: "/var/lib/seccomp/", maskedPaths: ["/sys/x"] },
};
const resultOf = (object: Fields, asked: Partial<ContainerConfigRequest> = {}) => {
  const pod = readPod(object);
  return containerConfigOf(pod, pod.spec.containers[0] as never, { ...ASKED, ...asked });
};
function configOf(object: Fields, asked: Partial<ContainerConfigRequest> = {}) {
  const config = resultOf(object, asked);
  if (!config.ok) throw new Error(config.error);
  return config.value;
}
const securityOf = (object: Fields, asked: Partial<ContainerConfigRequest> = {}) =>
  configOf(object, asked).linux?.securityContext;

test("a container's runtime config has every field that the kubelet sets", () => {
  const object = withContainer(
    {
      command: ["sh", "-c", "echo $(A) $(B)"],
      args: ["$(A)"],
      workingDir: "/w",
      tty: true,
      ports: [{ name: "web", containerPort: 80 }],
      lifecycle: { preStop: { httpGet: { port: 80, scheme: "HTTPS" } } },
    },
    { terminationGracePeriodSeconds: 7 },
  );
  const config = configOf(object, { resources: { cpuShares: 102 } as never });
  expect(config).toMatchObject({
    metadata: { name: "c", attempt: 3 },
    image: { image: "sha256:abc", userSpecifiedImage: "localhost/busybox:1" },
    command: ["sh", "-c", "echo 1 $(B)"],
    args: ["1"],
    workingDir: "/w",
    envs: [{ key: "A", value: "1" }],
    mounts: ASKED.mounts,
    logPath: "c/3.log",
    stdin: false,
    tty: true,
    labels: {
      "io.kubernetes.pod.name": "web",
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.pod.uid": "3f2b",
      "io.kubernetes.container.name": "c",
      "nodewise.dev/owner": "nodewise",
    },
    linux: { resources: { cpuShares: 102 } },
  });
  expect(config.annotations).toEqual({
    "io.kubernetes.container.hash": containerHash(readPod(object), { name: "c", image: "localhost/busybox:1" }),
    "io.kubernetes.container.restartCount": "3",
    "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
    "io.kubernetes.container.terminationMessagePolicy": "File",
    "io.kubernetes.pod.terminationGracePeriod": "7",
    "io.kubernetes.container.preStopHandler": '{"httpGet":{"path":"/","port":80,"scheme":"HTTPS"}}',
    "io.kubernetes.container.ports": '[{"name":"web","containerPort":80,"protocol":"TCP"}]',
  });
});

describe("a container's runtime config for its devices", () => {
  const options: DeviceOptions = {
    envs: [
      { name: "VISIBLE", value: "gpu-1" },
      { name: "A", value: "the plugin's" },
    ],
    mounts: [
      { containerPath: "/lib/gpu", hostPath: "/opt/gpu", readOnly: true },
      { containerPath: "/v", hostPath: "/opt/v", readOnly: false },
    ],
    devices: [
      { pathInContainer: "/dev/gpu0", pathOnHost: "/dev/gpu1", permissions: "rw" },
      { pathInContainer: "/dev/ctl", pathOnHost: "/dev/ctl", permissions: "" },
    ],
    annotations: [
      { name: "example.com/gpu", value: "gpu-1" },
      { name: "io.kubernetes.container.restartCount", value: "99" },
    ],
    cdiDevices: ["example.com/gpu=1", "example.com/gpu=all"],
    conflicts: [],
  };
  const object = withContainer({ command: ["run", "$(VISIBLE)", "$(A)"] });

  test("has device nodes with their permissions, and CDI devices by name", () => {
    const config = configOf(object, { devices: options });
    expect(config.devices).toEqual([
      { containerPath: "/dev/gpu0", hostPath: "/dev/gpu1", permissions: "rw" },
      { containerPath: "/dev/ctl", hostPath: "/dev/ctl", permissions: "" },
    ]);
    expect(config.CDIDevices).toEqual([{ name: "example.com/gpu=1" }, { name: "example.com/gpu=all" }]);
  });
  test("has the plugins' mounts, private, before the pod's own, so that the pod's win", () => {
    expect(configOf(object, { devices: options }).mounts).toEqual([
      { containerPath: "/lib/gpu", hostPath: "/opt/gpu", readonly: true, propagation: "PROPAGATION_PRIVATE" },
      { containerPath: "/v", hostPath: "/opt/v", readonly: false, propagation: "PROPAGATION_PRIVATE" },
      ...ASKED.mounts,
    ]);
  });
  test("lets the kubelet's own annotations win over the plugins'", () => {
    const { annotations } = configOf(object, { devices: options });
    expect(annotations).toMatchObject({
      "example.com/gpu": "gpu-1",
      "io.kubernetes.container.restartCount": "3",
    });
    expect(annotations).toEqual({ ...configOf(object).annotations, "example.com/gpu": "gpu-1" });
  });
  test("lets the container's own variables win over the plugins', and a command may refer to both", () => {
    const env = withDeviceEnv(options, ASKED.env);
    expect(env.toSorted((a, b) => (a.key < b.key ? -1 : 1))).toEqual([
      { key: "A", value: "1" },
      { key: "VISIBLE", value: "gpu-1" },
    ]);
    const config = configOf(object, { devices: options, env });
    expect([config.envs, config.command]).toEqual([env, ["run", "gpu-1", "1"]]);
  });
  test("has no device fields for a container without devices", () => {
    expect(withDeviceEnv(null, ASKED.env)).toBe(ASKED.env);
    expect(configOf(object)).not.toHaveProperty("devices");
    expect(configOf(object)).not.toHaveProperty("CDIDevices");
  });
});

test("containerHash equals the kubelet's, and changes with the image alone", () => {
  // kubelet 1.36: container_hash_test.go
  const pod = readPod(podObject());
  expect(containerHash(pod, { name: "test_container", image: "foo/image:v1" })).toBe("8e45cbd0");
  expect(containerHash(pod, { name: "test_container", image: "foo/image:v2" })).not.toBe("8e45cbd0");
});

describe("the security context", () => {
  test("has the kubelet's defaults when none is set", () => {
    const security = securityOf(podObject());
    expect(security).toMatchObject({
      runAsUser: { value: 0 },
      privileged: false,
      readonlyRootfs: false,
      noNewPrivs: false,
      supplementalGroups: [],
      seccomp: { profileType: "Unconfined" },
      readonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    });
    expect(security?.maskedPaths).toContain("/proc/kcore");
    expect(security?.maskedPaths?.at(-1)).toBe("/sys/x");
    for (const absent of ["runAsGroup", "capabilities", "apparmor"]) expect(security).not.toHaveProperty(absent);
  });
  test("takes the container's settings over the pod's, and those over the node's defaults", () => {
    const ofPod = {
      runAsUser: 1000,
      runAsGroup: 1,
      fsGroup: 2,
      supplementalGroups: [3],
      seccompProfile: { type: "RuntimeDefault" },
    };
    const own = { runAsUser: 5, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true };
    const capabilities = { add: ["NET_ADMIN"], drop: ["ALL"] };
    expect(
      securityOf(withContainer({ securityContext: { ...own, capabilities } }, { securityContext: ofPod })),
    ).toMatchObject({
      runAsUser: { value: 5 },
      runAsGroup: { value: 1 },
      supplementalGroups: [2, 3],
      noNewPrivs: true,
      readonlyRootfs: true,
      capabilities: { addCapabilities: ["NET_ADMIN"], dropCapabilities: ["ALL"] },
      seccomp: { profileType: "RuntimeDefault" },
    });
    const security = { ...ASKED.security, seccompDefault: true };
    expect(securityOf(podObject(), { security })?.seccomp).toEqual({ profileType: "RuntimeDefault" });
  });
  test("refers to seccomp and AppArmor profiles on the node", () => {
    const profile = { type: "Localhost", localhostProfile: "a/b" };
    const object = withContainer(
      { securityContext: { seccompProfile: profile } },
      { securityContext: { appArmorProfile: profile } },
    );
    expect(securityOf(object)).toMatchObject({
      seccomp: { profileType: "Localhost", localhostRef: "/var/lib/seccomp/a/b" },
      apparmor: { profileType: "Localhost", localhostRef: "a/b" },
    });
  });
  test("takes a numeric user from the image, and leaves a name to the runtime", () => {
    expect(securityOf(podObject(), { imageUser: "1001:50" })?.runAsUser).toEqual({ value: 1001 });
    expect(securityOf(podObject(), { imageUser: "www" })).not.toHaveProperty("runAsUser");
  });
});

describe("runAsNonRoot", () => {
  const WHERE = '(pod: "web_default(3f2b)", container: c)';
  const nonRoot = { securityContext: { runAsNonRoot: true } };
  const asked = (own: Fields, imageUser: string | null, spec: Fields = nonRoot) => {
    const result = resultOf(withContainer({ securityContext: own }, spec), { imageUser });
    return result.ok ? null : result.error;
  };
  test.each<[Fields, string | null, string | null]>([
    [{}, null, `container has runAsNonRoot and image will run as root ${WHERE}`],
    [{}, "0:0", `container has runAsNonRoot and image will run as root ${WHERE}`],
    [
      {},
      "www",
      `container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root ${WHERE}`,
    ],
    [
      {},
      "4294967295",
      `container has runAsNonRoot and image has an invalid user id (4294967295). (Must be 1-(2147483647)): must be between 0 and 2147483647, inclusive ${WHERE}`,
    ],
    [{ runAsUser: 0 }, "1000", `container's runAsUser breaks non-root policy ${WHERE}`],
    [{ runAsUser: 7 }, null, null],
    [{}, "1000", null],
    [{ runAsNonRoot: false }, null, null],
  ])("%j with the image's user %s has the kubelet's result", (own, imageUser, error) => {
    expect(asked(own, imageUser)).toBe(error);
  });
  test("can be set by the container alone too", () => {
    expect(asked({ runAsNonRoot: true }, null, {})).toContain("will run as root");
  });
});

describe("cgroup values in a runtime config", () => {
  const values = {
    cpuShares: 102,
    cpuWeight: 4,
    cpuQuota: -1,
    cpuPeriod: 100_000,
    memory: 67_108_864,
    memorySwap: 67_108_864,
    memoryMin: 1024,
    memoryLow: 0,
    memoryHigh: 4096,
    memoryOomGroup: true,
    hugePageLimit: { "2097152": 4_194_304, "1073741824": 0, "65536": 65_536 },
    cpusetCpus: "1-2",
    cpusetMems: "0",
    oomScoreAdj: 985,
  };
  const SAME = {
    cpuShares: 102,
    cpuQuota: -1,
    cpuPeriod: 100_000,
    memoryLimitInBytes: 67_108_864,
    oomScoreAdj: 985,
    cpusetCpus: "1-2",
    cpusetMems: "0",
    hugepageLimits: [
      { pageSize: "64KB", limit: 65_536 },
      { pageSize: "2MB", limit: 4_194_304 },
      { pageSize: "1GB", limit: 0 },
    ],
  };
  test("have a field for swap on v1", () => {
    const { hugepageLimits = [], ...rest } = containerResources(values as never, 1);
    const { hugepageLimits: pages, ...same } = SAME;
    expect(rest).toEqual({ ...same, memorySwapLimitInBytes: 67_108_864 });
    expect(hugepageLimits.toSorted((a, b) => (a.pageSize < b.pageSize ? -1 : 1))).toEqual(
      pages.toSorted((a, b) => (a.pageSize < b.pageSize ? -1 : 1)),
    );
  });
  test("that have no field use the file names on v2", () => {
    expect(containerResources(values as never, 2).unified).toEqual({
      "memory.oom.group": "1",
      "memory.swap.max": "67108864",
      "memory.min": "1024",
      "memory.low": "0",
      "memory.high": "4096",
    });
    expect(containerResources(values as never, 2)).not.toHaveProperty("memorySwapLimitInBytes");
    expect(containerResources({ memorySwap: -1 } as never, 2).unified).toEqual({ "memory.swap.max": "max" });
  });
  test("leave out an unlimited memory, and state an unlimited CPU quota", () => {
    expect(containerResources({ memory: -1, cpuQuota: -1 } as never, 1)).toEqual({ cpuQuota: -1 });
    expect(containerResources({}, 2)).toEqual({});
  });
});
