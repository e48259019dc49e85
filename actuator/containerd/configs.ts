import type { ImageSpec, SandboxMetadata, TextMap } from "./messages.ts";

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
/** What a container's cgroup gets; 0 and empty texts are not set. */
export interface LinuxContainerResources {
  readonly cpuPeriod?: number;
  readonly cpuQuota?: number;
  readonly cpuShares?: number;
  readonly memoryLimitInBytes?: number;
  readonly oomScoreAdj?: number;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  readonly hugepageLimits?: readonly { readonly pageSize: string; readonly limit: number }[];
  /** Of cgroup v2, a file's name and its text. */
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
  };
}
export interface ContainerConfig {
  readonly metadata: { readonly name: string; readonly attempt: number };
  readonly image: AskedImage;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly envs?: readonly { readonly key: string; readonly value: string }[];
  readonly mounts?: readonly AskedMount[];
  readonly devices?: readonly AskedDevice[];
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
  /** By their qualified names. */
  readonly CDIDevices?: readonly { readonly name: string }[];
}
/** A device node of the machine. */
export interface AskedDevice {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Of the cgroup: some of `r`, `w` and `m`. */
  readonly permissions: string;
}
export type MountPropagation = "PROPAGATION_PRIVATE" | "PROPAGATION_HOST_TO_CONTAINER" | "PROPAGATION_BIDIRECTIONAL";
/** Either of the machine, or of an image, which must be read only. */
export type AskedMount = {
  readonly containerPath: string;
  readonly readonly?: boolean;
  readonly propagation?: MountPropagation;
} & ({ readonly hostPath: string } | { readonly image: AskedImage });
export type AskedImage = Readonly<Pick<ImageSpec, "image"> & Partial<ImageSpec>> & {
  /** As the pod names it, where `image` is the id. */
  readonly userSpecifiedImage?: string;
};
