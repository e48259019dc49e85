import { join } from "node:path";
import type { MethodDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { describe, expect, test } from "vitest";
import type {
  CriAnswer,
  CriMethod,
  CriRequest,
  FileSystemUsage,
  Image,
  MountPropagation,
  NamespaceMode,
  SecurityProfile,
} from "../../../actuator/containerd/messages.ts";

/** Makes every field required, so that a field that is added to a message breaks the build here. */
type Full<T> = T extends readonly (infer U)[]
  ? readonly Full<U>[]
  : T extends Uint8Array
    ? T
    : T extends object
      ? { readonly [K in keyof T]-?: Full<T[K]> }
      : T;
type Requests = { readonly [M in CriMethod]: Full<CriRequest<M>> };
type Answers = { readonly [M in CriMethod]: Full<CriAnswer<M>> };

const TEXTS = { "a.example/key": "value" };
const BIG = 2 ** 53 - 1;
const sandboxContext = {
  namespaceOptions: { network: "NODE", pid: "CONTAINER", ipc: "NODE" },
  runAsUser: { value: 1000 },
  runAsGroup: { value: 3000 },
  readonlyRootfs: true,
  supplementalGroups: [4000, 5000],
  privileged: true,
  seccomp: { profileType: "Localhost", localhostRef: "/profiles/a.json" },
  apparmor: { profileType: "Unconfined", localhostRef: "none" },
} as const;
const resources = {
  cpuPeriod: 100_000,
  cpuQuota: -1,
  cpuShares: 512,
  memoryLimitInBytes: BIG,
  oomScoreAdj: -997,
  cpusetCpus: "0-1",
  cpusetMems: "0",
  hugepageLimits: [{ pageSize: "2MB", limit: BIG }],
  unified: { "memory.high": "1024" },
  memorySwapLimitInBytes: BIG - 1,
} as const;
const imageSpec = { image: "sha256:a", runtimeHandler: "kata", userSpecifiedImage: "app:1" } as const;
const sandboxConfig: Requests["RunPodSandbox"]["config"] = {
  metadata: { name: "web", uid: "u", namespace: "n", attempt: 3 },
  hostname: "web",
  logDirectory: "/logs",
  dnsConfig: { servers: ["10.0.0.1"], searches: ["example"], options: ["ndots:5"] },
  portMappings: [{ protocol: "SCTP", containerPort: 80, hostPort: 8080, hostIp: "127.0.0.1" }],
  labels: TEXTS,
  annotations: TEXTS,
  linux: {
    cgroupParent: "/pods/u",
    securityContext: sandboxContext,
    sysctls: { "net.core.somaxconn": "9" },
    overhead: { ...resources, cpuShares: 2 },
    resources,
  },
};
const REQUESTS: Requests = {
  Version: {},
  Status: { verbose: true },
  RunPodSandbox: { config: sandboxConfig, runtimeHandler: "kata" },
  StopPodSandbox: { podSandboxId: "s" },
  RemovePodSandbox: { podSandboxId: "s" },
  PodSandboxStatus: { podSandboxId: "s", verbose: true },
  ListPodSandbox: {},
  CreateContainer: {
    podSandboxId: "s",
    sandboxConfig,
    config: {
      metadata: { name: "app", attempt: 2 },
      image: imageSpec,
      command: ["/bin/a"],
      args: ["-b"],
      workingDir: "/work",
      envs: [{ key: "NAME", value: "väl=ue\n" }],
      mounts: [
        {
          containerPath: "/data",
          hostPath: "/host",
          readonly: true,
          propagation: "PROPAGATION_BIDIRECTIONAL",
        },
        { containerPath: "/model", image: imageSpec, readonly: true, propagation: "PROPAGATION_HOST_TO_CONTAINER" },
      ],
      devices: [{ containerPath: "/dev/gpu0", hostPath: "/dev/gpu1", permissions: "rw" }],
      CDIDevices: [{ name: "example.com/gpu=1" }],
      labels: TEXTS,
      annotations: TEXTS,
      logPath: "app/2.log",
      stdin: true,
      stdinOnce: true,
      tty: true,
      linux: {
        resources,
        securityContext: {
          ...sandboxContext,
          capabilities: { addCapabilities: ["NET_ADMIN"], dropCapabilities: ["ALL"] },
          noNewPrivs: true,
          maskedPaths: ["/proc/kcore"],
          readonlyPaths: ["/proc/sys"],
        },
      },
    },
  },
  StartContainer: { containerId: "c" },
  StopContainer: { containerId: "c", timeout: 30 },
  RemoveContainer: { containerId: "c" },
  ListContainers: { filter: { id: "c" } },
  ContainerStatus: { containerId: "c", verbose: true },
  UpdateContainerResources: { containerId: "c", linux: resources },
  ReopenContainerLog: { containerId: "c" },
  Exec: { containerId: "c", cmd: ["a", ""], tty: true, stdin: true, stdout: true, stderr: true },
  ExecSync: { containerId: "c", cmd: ["a", ""], timeout: 9 },
  ListContainerStats: {},
  ListImages: {},
  ImageStatus: { image: imageSpec },
  PullImage: { image: imageSpec },
  RemoveImage: { image: imageSpec },
  ImageFsInfo: {},
};

const spec = { image: "app:1", runtimeHandler: "kata" };
const image: Full<Image> = {
  id: "sha256:a",
  repoTags: ["app:1"],
  repoDigests: ["app@sha256:b"],
  size: "18446744073709551615",
  uid: { value: "-1" },
  username: "nobody",
  spec,
  pinned: true,
};
const usage: Full<FileSystemUsage> = {
  timestamp: "1700000000000000001",
  fsId: { mountpoint: "/images" },
  usedBytes: { value: "7" },
  inodesUsed: { value: "8" },
};
const sandbox = {
  id: "s",
  metadata: sandboxConfig.metadata,
  state: "SANDBOX_NOTREADY",
  createdAt: "1700000000000000001",
  labels: TEXTS,
  annotations: TEXTS,
};
const container = {
  id: "c",
  metadata: { name: "app", attempt: 2 },
  image: spec,
  imageRef: "sha256:ref",
  imageId: "sha256:id",
  state: "CONTAINER_EXITED",
  createdAt: "1700000000000000001",
  labels: TEXTS,
  annotations: TEXTS,
};
const ANSWERS: Answers = {
  Version: { runtimeName: "containerd", runtimeVersion: "2.1.4", runtimeApiVersion: "v1" },
  Status: {
    status: { conditions: [{ type: "NetworkReady", status: true, reason: "why", message: "words" }] },
    info: TEXTS,
  },
  RunPodSandbox: { podSandboxId: "s" },
  StopPodSandbox: {},
  RemovePodSandbox: {},
  PodSandboxStatus: {
    status: { ...sandbox, network: { ip: "10.0.0.7", additionalIps: [{ ip: "fd00::7" }] } },
    info: TEXTS,
  },
  ListPodSandbox: { items: [sandbox] },
  CreateContainer: { containerId: "c" },
  StartContainer: {},
  StopContainer: {},
  RemoveContainer: {},
  ListContainers: { containers: [{ ...container, podSandboxId: "s" }] },
  ContainerStatus: {
    status: {
      ...container,
      startedAt: "1700000000000000002",
      finishedAt: "1700000000000000003",
      exitCode: -1,
      reason: "OOMKilled",
      message: "words",
      mounts: [{ containerPath: "/data", hostPath: "/host", image: spec }],
      logPath: "/logs/app/2.log",
    },
    info: TEXTS,
  },
  UpdateContainerResources: {},
  ReopenContainerLog: {},
  Exec: { url: "http://127.0.0.1:1/exec/a" },
  ExecSync: { stdout: Buffer.from([0xff, 10]), stderr: Buffer.from("e"), exitCode: 126 },
  ListContainerStats: { stats: [{ attributes: { id: "c" }, writableLayer: usage }] },
  ListImages: { images: [image] },
  ImageStatus: { image },
  PullImage: { imageRef: "sha256:a" },
  RemoveImage: {},
  ImageFsInfo: { imageFilesystems: [usage], containerFilesystems: [usage] },
};

const PROTO = join(import.meta.dirname, "../../../actuator/containerd/runtime.proto");
type Loaded = MethodDefinition<unknown, unknown>;
function methodsWith(options: object): ReadonlyMap<string, Loaded> {
  const services = Object.values(loadSync(PROTO, { enums: String, ...options })).filter((one) => !("format" in one));
  return new Map(services.flatMap((service) => Object.entries(service as unknown as Record<string, Loaded>)));
}
const plain = methodsWith({ longs: Number });
const asTheClient = methodsWith({ longs: String, defaults: true });
const METHODS = Object.keys(REQUESTS) as CriMethod[];

describe("every CRI message survives encoding and decoding:", () => {
  test.each(METHODS)("the request of %s", (name) => {
    const method = plain.get(name) as Loaded;
    expect(method.requestDeserialize(method.requestSerialize(REQUESTS[name]))).toEqual(REQUESTS[name]);
  });
  test.each(METHODS)("the response of %s", (name) => {
    const method = asTheClient.get(name) as Loaded;
    expect(method.responseDeserialize(method.responseSerialize(ANSWERS[name]))).toMatchObject(ANSWERS[name]);
  });
  test("the calls of the .proto file are exactly those with a type", () => {
    expect([...plain.keys()].toSorted()).toEqual(METHODS.toSorted());
  });

  const words = {
    network: ["POD", "CONTAINER", "NODE"] satisfies NamespaceMode[],
    propagation: [
      "PROPAGATION_PRIVATE",
      "PROPAGATION_HOST_TO_CONTAINER",
      "PROPAGATION_BIDIRECTIONAL",
    ] satisfies MountPropagation[],
    profileType: ["RuntimeDefault", "Unconfined", "Localhost"] satisfies SecurityProfile["profileType"][],
    protocol: ["TCP", "UDP", "SCTP"],
  };
  test.each(Object.entries(words))("each value of %s has its own number", (field, values) => {
    const create = plain.get("CreateContainer") as Loaded;
    for (const value of values) {
      const given = {
        network: { config: { linux: { securityContext: { namespaceOptions: { network: value } } } } },
        propagation: { config: { mounts: [{ propagation: value }] } },
        profileType: { config: { linux: { securityContext: { seccomp: { profileType: value } } } } },
        protocol: { sandboxConfig: { portMappings: [{ protocol: value }] } },
      }[field];
      expect(create.requestDeserialize(create.requestSerialize(given))).toEqual(given);
    }
  });
  test("an unset field is decoded as empty, and an unset message as null", () => {
    const method = asTheClient.get("ImageStatus") as Loaded;
    const reportOf = (image: object) =>
      method.responseDeserialize(method.responseSerialize({ image })) as { image: Image };
    expect(reportOf({ id: "a" }).image).toMatchObject({ uid: null, username: "", repoTags: [], size: "0" });
    // the uid of root is reported, which differs from a missing uid
    expect(reportOf({ uid: { value: 0 } }).image.uid).toEqual({ value: "0" });
  });
});
