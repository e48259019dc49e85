/**
 * CRI v1 as TypeScript: the messages of `runtime.proto` with protobuf's JSON names. The loader silently drops unknown
 * keys of a request, so every request is typed. Answers have all fields: unset texts, lists and maps are empty, unset
 * messages are null, 64-bit numbers are strings of digits.
 */
type Digits = string;
export type TextMap = Readonly<Record<string, string>>;

export interface ImageSpec {
  readonly image: string;
  readonly runtimeHandler: string;
}
export interface Image {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
  readonly size: Digits;
  /** The user that it runs as, by number or by name; neither: root. */
  readonly uid: { readonly value: Digits } | null;
  readonly username: string;
  readonly spec: ImageSpec | null;
  readonly pinned: boolean;
}
interface SandboxMetadata {
  readonly name: string;
  readonly uid: string;
  readonly namespace: string;
  readonly attempt: number;
}
export interface Sandbox {
  readonly id: string;
  readonly metadata: SandboxMetadata | null;
  readonly state: string;
  readonly createdAt: Digits;
  readonly labels: TextMap;
  readonly annotations: TextMap;
}
export interface SandboxStatus extends Sandbox {
  /** The pod's network; empty on the host's network. */
  readonly network: { readonly ip: string; readonly additionalIps: readonly { readonly ip: string }[] } | null;
}
interface ContainerBase {
  readonly id: string;
  readonly metadata: { readonly name: string; readonly attempt: number } | null;
  readonly image: ImageSpec | null;
  readonly imageRef: string;
  readonly imageId: string;
  readonly state: string;
  readonly createdAt: Digits;
  readonly labels: TextMap;
  readonly annotations: TextMap;
}
export interface Container extends ContainerBase {
  readonly podSandboxId: string;
}
export interface Mount {
  readonly containerPath: string;
  readonly hostPath: string;
  /** The image of an image volume. */
  readonly image: ImageSpec | null;
}
export interface ContainerStatus extends ContainerBase {
  readonly startedAt: Digits;
  readonly finishedAt: Digits;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  readonly mounts: readonly Mount[];
  readonly logPath: string;
}
export interface FileSystemUsage {
  readonly timestamp: Digits;
  readonly fsId: { readonly mountpoint: string } | null;
  readonly usedBytes: { readonly value: Digits } | null;
  readonly inodesUsed: { readonly value: Digits } | null;
}
interface ContainerStats {
  readonly attributes: { readonly id: string } | null;
  readonly writableLayer: FileSystemUsage | null;
}
/** A condition of the runtime, such as `RuntimeReady` or `NetworkReady`. */
interface RuntimeCondition {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}

interface Call<Request, Answer> {
  readonly request: Request;
  readonly answer: Answer;
}
type EmptyMessage = Readonly<Record<string, never>>;
interface SandboxIdMessage {
  readonly podSandboxId: string;
}
interface ContainerIdMessage {
  readonly containerId: string;
}

interface CriCalls {
  Version: Call<
    EmptyMessage,
    { readonly runtimeName: string; readonly runtimeVersion: string; readonly runtimeApiVersion: string }
  >;
  Status: Call<
    { readonly verbose: boolean },
    { readonly status: { readonly conditions: readonly RuntimeCondition[] } | null; readonly info: TextMap }
  >;
  RunPodSandbox: Call<{ readonly config: SandboxConfig; readonly runtimeHandler?: string }, SandboxIdMessage>;
  StopPodSandbox: Call<SandboxIdMessage, EmptyMessage>;
  RemovePodSandbox: Call<SandboxIdMessage, EmptyMessage>;
  PodSandboxStatus: Call<
    SandboxIdMessage & { readonly verbose?: boolean },
    { readonly status: SandboxStatus | null; readonly info: TextMap }
  >;
  ListPodSandbox: Call<EmptyMessage, { readonly items: readonly Sandbox[] }>;
  CreateContainer: Call<
    SandboxIdMessage & { readonly config: ContainerConfig; readonly sandboxConfig: SandboxConfig },
    ContainerIdMessage
  >;
  StartContainer: Call<ContainerIdMessage, EmptyMessage>;
  StopContainer: Call<ContainerIdMessage & { readonly timeout: number }, EmptyMessage>;
  RemoveContainer: Call<ContainerIdMessage, EmptyMessage>;
  ListContainers: Call<{ readonly filter?: { readonly id: string } }, { readonly containers: readonly Container[] }>;
  ContainerStatus: Call<
    ContainerIdMessage & { readonly verbose?: boolean },
    { readonly status: ContainerStatus | null; readonly info: TextMap }
  >;
  UpdateContainerResources: Call<ContainerIdMessage & { readonly linux: LinuxContainerResources }, EmptyMessage>;
  ReopenContainerLog: Call<ContainerIdMessage, EmptyMessage>;
  Exec: Call<
    ContainerIdMessage & {
      readonly cmd: readonly string[];
      readonly tty: boolean;
      readonly stdin: boolean;
      readonly stdout: boolean;
      readonly stderr: boolean;
    },
    { readonly url: string }
  >;
  ExecSync: Call<
    ContainerIdMessage & { readonly cmd: readonly string[]; readonly timeout: number },
    { readonly stdout: Uint8Array; readonly stderr: Uint8Array; readonly exitCode: number }
  >;
  ListContainerStats: Call<EmptyMessage, { readonly stats: readonly ContainerStats[] }>;
  ListImages: Call<EmptyMessage, { readonly images: readonly Image[] }>;
  ImageStatus: Call<{ readonly image: ImageConfig }, { readonly image: Image | null }>;
  PullImage: Call<{ readonly image: ImageConfig }, { readonly imageRef: string }>;
  RemoveImage: Call<{ readonly image: ImageConfig }, EmptyMessage>;
  ImageFsInfo: Call<
    EmptyMessage,
    { readonly imageFilesystems: readonly FileSystemUsage[]; readonly containerFilesystems: readonly FileSystemUsage[] }
  >;
}
export type CriMethod = keyof CriCalls;
export type CriRequest<M extends CriMethod> = CriCalls[M]["request"];
export type CriAnswer<M extends CriMethod> = CriCalls[M]["answer"];

/** A blob of containerd's content store. */
export interface Blob {
  readonly digest: string;
  readonly size: Digits;
  readonly labels: TextMap;
}

export type NamespaceMode = "POD" | "CONTAINER" | "NODE";
export interface NamespaceOptions {
  readonly network: NamespaceMode;
  readonly pid?: NamespaceMode;
  readonly ipc?: NamespaceMode;
}
interface Int64Value {
  readonly value: number;
}
export interface SecurityProfile {
  readonly profileType: "RuntimeDefault" | "Unconfined" | "Localhost";
  readonly localhostRef?: string;
}
interface SecurityContext {
  readonly namespaceOptions: NamespaceOptions;
  readonly runAsUser?: Int64Value;
  readonly runAsGroup?: Int64Value;
  readonly readonlyRootfs?: boolean;
  readonly supplementalGroups?: readonly number[];
  readonly privileged?: boolean;
  readonly seccomp?: SecurityProfile;
  readonly apparmor?: SecurityProfile;
}
export interface ContainerSecurityContext extends SecurityContext {
  readonly capabilities?: { readonly addCapabilities: readonly string[]; readonly dropCapabilities: readonly string[] };
  readonly noNewPrivs?: boolean;
  readonly maskedPaths?: readonly string[];
  readonly readonlyPaths?: readonly string[];
}
/** Resources of a container's cgroup; 0 and empty texts are unset. */
export interface LinuxContainerResources {
  readonly cpuPeriod?: number;
  readonly cpuQuota?: number;
  readonly cpuShares?: number;
  readonly memoryLimitInBytes?: number;
  readonly oomScoreAdj?: number;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  readonly hugepageLimits?: readonly { readonly pageSize: string; readonly limit: number }[];
  /** cgroup v2: a file's name and its text. */
  readonly unified?: TextMap;
  readonly memorySwapLimitInBytes?: number;
}
export interface SandboxConfig {
  readonly metadata: SandboxMetadata;
  readonly hostname?: string;
  readonly logDirectory?: string;
  readonly dnsConfig?: {
    readonly servers: readonly string[];
    readonly searches: readonly string[];
    readonly options: readonly string[];
  };
  readonly portMappings?: readonly {
    readonly protocol: "TCP" | "UDP" | "SCTP";
    readonly containerPort: number;
    readonly hostPort: number;
    readonly hostIp: string;
  }[];
  readonly labels?: TextMap;
  readonly annotations?: TextMap;
  readonly linux?: {
    readonly cgroupParent?: string;
    readonly securityContext?: SecurityContext;
    readonly sysctls?: TextMap;
    readonly overhead?: LinuxContainerResources;
    readonly resources?: LinuxContainerResources;
  };
}
export interface ContainerConfig {
  readonly metadata: { readonly name: string; readonly attempt: number };
  readonly image: ImageConfig;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly envs?: readonly { readonly key: string; readonly value: string }[];
  readonly mounts?: readonly MountConfig[];
  readonly devices?: readonly DeviceConfig[];
  readonly labels?: TextMap;
  readonly annotations?: TextMap;
  /** Below the sandbox's `logDirectory`. */
  readonly logPath?: string;
  readonly stdin?: boolean;
  readonly stdinOnce?: boolean;
  readonly tty?: boolean;
  readonly linux?: {
    readonly resources?: LinuxContainerResources;
    readonly securityContext?: ContainerSecurityContext;
  };
  /** The devices by their qualified names. */
  readonly CDIDevices?: readonly { readonly name: string }[];
}
/** A device node of the machine. */
interface DeviceConfig {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Permissions in the devices cgroup: some of `r`, `w` and `m`. */
  readonly permissions: string;
}
export type MountPropagation = "PROPAGATION_PRIVATE" | "PROPAGATION_HOST_TO_CONTAINER" | "PROPAGATION_BIDIRECTIONAL";
/** Either of the machine, or of an image, which must be read only. */
export type MountConfig = {
  readonly containerPath: string;
  readonly readonly?: boolean;
  readonly propagation?: MountPropagation;
} & ({ readonly hostPath: string } | { readonly image: ImageConfig });
type ImageConfig = Readonly<Pick<ImageSpec, "image"> & Partial<ImageSpec>> & {
  /** The image as the pod names it, if `image` is the id. */
  readonly userSpecifiedImage?: string;
};
