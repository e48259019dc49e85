import type { ProbeSpec, ProbeType } from "../../api/model/probe-spec.ts";

/** A v1.Pod as this daemon runs it: checked, with the defaults that an API server would have filled in. */
export interface RunnablePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: TextMap;
  readonly annotations: TextMap;
  /** The kubelet's static pods: critical, and never evicted. */
  readonly isStatic: boolean;
  /** The requested deletion; null: none. */
  readonly deletion: { readonly atMs: number; readonly graceSeconds: number } | null;
  readonly spec: PodSpec;
  /** The object as it was read, for snapshots and records. */
  readonly object: Readonly<Record<string, unknown>>;
}
export type TextMap = Readonly<Record<string, string>>;

export interface PodSpec {
  readonly containers: readonly PodContainer[];
  /** The init containers in order, including sidecars. */
  readonly initContainers: readonly PodContainer[];
  readonly volumes: readonly PodVolume[];
  readonly restartPolicy: "Always" | "OnFailure" | "Never";
  readonly terminationGracePeriodSeconds: number;
  /** The maximum time from the pod's start to its end; null: none. */
  readonly activeDeadlineSeconds: number | null;
  readonly nodeName: string;
  readonly serviceAccountName: string;
  readonly priority: number | null;
  readonly hostNetwork: boolean;
  readonly hostPID: boolean;
  readonly hostIPC: boolean;
  readonly shareProcessNamespace: boolean;
  readonly hostname: string | null;
  readonly subdomain: string | null;
  readonly setHostnameAsFQDN: boolean;
  readonly hostAliases: readonly { readonly ip: string; readonly hostnames: readonly string[] }[];
  readonly dnsPolicy: "Default" | "ClusterFirst" | "ClusterFirstWithHostNet" | "None";
  readonly dnsConfig: DnsConfig | null;
  readonly securityContext: PodSecurity;
}
export interface DnsConfig {
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly { readonly name: string; readonly value: string | null }[];
}

export interface PodContainer {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly workingDir: string;
  readonly ports: readonly ContainerPort[];
  readonly env: readonly EnvVar[];
  readonly mounts: readonly VolumeMount[];
  readonly imagePullPolicy: "Always" | "IfNotPresent" | "Never";
  readonly terminationMessagePath: string;
  readonly terminationMessagePolicy: "File" | "FallbackToLogsOnError";
  readonly postStart: LifecycleHandler | null;
  readonly preStop: LifecycleHandler | null;
  readonly security: ContainerSecurity;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
  readonly tty: boolean;
  /** An init container that is restarted for ever; the next one starts as soon as it runs. */
  readonly isSidecar: boolean;
  readonly probes: Readonly<Record<ProbeType, ProbeSpec | null>>;
}
export interface ContainerPort {
  readonly name: string;
  readonly containerPort: number;
  /** 0: none. */
  readonly hostPort: number;
  readonly hostIP: string;
  readonly protocol: "TCP" | "UDP" | "SCTP";
}
/** `value` may contain `$(NAME)`; references are resolved when the container starts. */
export type EnvVar = { readonly name: string } & (
  | { readonly value: string }
  | { readonly fieldPath: string }
  | { readonly resource: string; readonly containerName: string; readonly divisor: string }
);
export interface VolumeMount {
  readonly volume: string;
  readonly mountPath: string;
  readonly readOnly: boolean;
  /** Path below the volume, with `$(NAME)` resolved if `isExpression`; empty: the whole volume. */
  readonly subPath: string;
  readonly isExpression: boolean;
  readonly propagation: "None" | "HostToContainer" | "Bidirectional";
}
export type LifecycleHandler =
  | { readonly exec: readonly string[] }
  | { readonly sleepSeconds: number }
  | {
      readonly http: {
        readonly scheme: "http" | "https";
        readonly host: string;
        readonly port: number;
        readonly path: string;
        readonly headers: readonly { readonly name: string; readonly value: string }[];
      };
    };

export type PodVolume = { readonly name: string } & (
  | { readonly emptyDir: { readonly medium: "" | "Memory"; readonly sizeLimitBytes: number | null } }
  | { readonly hostPath: { readonly path: string; readonly type: HostPathType } }
);
export type HostPathType =
  | ""
  | "DirectoryOrCreate"
  | "Directory"
  | "FileOrCreate"
  | "File"
  | "Socket"
  | "CharDevice"
  | "BlockDevice";

export type Profile =
  | { readonly type: "RuntimeDefault" | "Unconfined" }
  | { readonly type: "Localhost"; readonly ref: string };
export interface PodSecurity {
  readonly runAsUser: number | null;
  readonly runAsGroup: number | null;
  readonly runAsNonRoot: boolean;
  readonly supplementalGroups: readonly number[];
  readonly fsGroup: number | null;
  readonly seccomp: Profile | null;
  readonly appArmor: Profile | null;
  readonly sysctls: TextMap;
}
/** Security settings; null: the pod's or the image's. */
export interface ContainerSecurity {
  readonly runAsUser: number | null;
  readonly runAsGroup: number | null;
  readonly runAsNonRoot: boolean | null;
  readonly privileged: boolean;
  readonly readOnlyRootFilesystem: boolean;
  readonly allowPrivilegeEscalation: boolean | null;
  readonly addCapabilities: readonly string[];
  readonly dropCapabilities: readonly string[];
  readonly seccomp: Profile | null;
  readonly appArmor: Profile | null;
}

/** A field that this daemon does not do, or that is wrong: the place in the pod, and what to do about it. */
export interface SpecFault {
  /** `spec.containers[0].livenessProbe` */
  readonly path: string;
  readonly message: string;
}
