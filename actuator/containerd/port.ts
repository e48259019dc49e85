import type { Result } from "../../api/model/result.ts";
import type { ContainerConfig, LinuxContainerResources, SandboxConfig, TextMap } from "./messages.ts";

/**
 * Everything that a runtime holds of one pod, from CRI's lists and statuses. Times are milliseconds since 1970; null: not yet.
 */
export interface RuntimePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Newest first. */
  readonly sandboxes: readonly RuntimeSandbox[];
  /** All attempts, newest first. */
  readonly containers: readonly RuntimeContainer[];
}
export interface RuntimeSandbox {
  readonly id: string;
  readonly attempt: number;
  readonly isReady: boolean;
  readonly createdAtMs: number;
  /** Empty on the host's network. */
  readonly ips: readonly string[];
  readonly labels: TextMap;
  readonly annotations: TextMap;
}
export interface RuntimeContainer {
  readonly id: string;
  readonly name: string;
  /** The number of earlier starts. */
  readonly attempt: number;
  readonly sandboxId: string;
  readonly state: "created" | "running" | "exited" | "unknown";
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly exitCode: number;
  /** `OOMKilled`, `Error`, `Completed`. */
  readonly reason: string;
  readonly message: string;
  readonly image: string;
  readonly imageId: string;
  readonly logPath: string;
  readonly labels: TextMap;
  readonly annotations: TextMap;
}
/** All pods of a runtime, by uid. */
export type RuntimePods = ReadonlyMap<string, RuntimePod>;

/** On every sandbox and container: by these the kubelet and crictl know them. */
export const POD_NAME = "io.kubernetes.pod.name";
export const POD_NAMESPACE = "io.kubernetes.pod.namespace";
export const POD_UID = "io.kubernetes.pod.uid";
export const CONTAINER_NAME = "io.kubernetes.container.name";
/** On a container, as the kubelet annotates it. */
export const CONTAINER_HASH = "io.kubernetes.container.hash";
export const CONTAINER_RESTART_COUNT = "io.kubernetes.container.restartCount";
export const TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath";
export const TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy";
export const POD_GRACE_PERIOD = "io.kubernetes.pod.terminationGracePeriod";
/** INVARIANT: what does not have this label, with the daemon's own name, is never stopped or removed by it. */
export const OWNER = "nodewise.dev/owner";

export interface Exec {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface LocalImage {
  readonly id: string;
  /** The name or number of the image's user; null: root. */
  readonly user: string | null;
  /** Absent: the runtime does not tell. */
  readonly sizeBytes?: number;
}

/** A container runtime as pods need it; over CRI v1, and a fake one for simulations. */
export interface PodRuntime {
  /** Everything that it holds, of one moment. What has ended is asked about once, and remembered. */
  pods(): Answered<RuntimePods>;
  runSandbox(config: SandboxConfig): Answered<string>;
  stopSandbox(id: string): Answered<null>;
  removeSandbox(id: string): Answered<null>;
  createContainer(sandboxId: string, config: ContainerConfig, sandbox: SandboxConfig): Answered<string>;
  startContainer(id: string): Answered<null>;
  /** The stop signal, and the kill after so many seconds. Gone already: it is stopped. */
  stopContainer(id: string, graceSeconds: number): Answered<null>;
  removeContainer(id: string): Answered<null>;
  updateContainer(id: string, resources: LinuxContainerResources): Answered<null>;
  /** The container's log is begun anew at its place. */
  reopenLog(id: string): Answered<null>;
  exec(id: string, command: readonly string[], timeoutSeconds: number): Answered<Exec>;
  /** Null: it is not there. */
  image(name: string): Answered<LocalImage | null>;
  /** The id of what came. */
  pull(name: string): Answered<string>;
  close(): void;
}

/** A failed call to the runtime: gRPC's code by name, and the runtime's words. */
export interface RuntimeFault {
  readonly call: string;
  readonly code: string;
  readonly message: string;
}
export type Answered<T> = Promise<Result<T, RuntimeFault>>;

/** `runtime` of a NodeSnapshot as plain JSON, all lists of one moment. */
export type RuntimeLists = Readonly<Record<string, unknown>>;

export interface ImageNow {
  readonly id: string;
  /** Its tags and its digests. */
  readonly names: readonly string[];
  readonly pinned: boolean;
  readonly sizeBytes: number | null;
}
export interface ContainerNow {
  readonly id: string;
  readonly state: string;
  readonly createdAt: string;
  readonly imageId: string | null;
  readonly imageRef: string | null;
  readonly sandboxId: string;
  readonly logPath: string | null;
}
export interface SandboxNow {
  readonly id: string;
  readonly state: string;
  readonly createdAt: string;
}

/** A container runtime as the collection needs it; over CRI v1, and a fake one for simulations. Null: it is not there. */
export interface Runtime {
  /** Every list, or the fault of the first that failed: half of the truth is none. */
  list(): Answered<RuntimeLists>;
  imageNow(id: string, runtimeHandler: string): Answered<ImageNow | null>;
  containerNow(id: string): Answered<ContainerNow | null>;
  sandboxNow(id: string): Answered<SandboxNow | null>;
  /** Containers of every state: id -> the images that it holds (its own, and those that it mounts where that is told). */
  imagesInUse(): Answered<ReadonlyMap<string, readonly string[]>>;
  removeImage(id: string, runtimeHandler: string): Answered<null>;
  stopContainer(id: string, timeoutSeconds: number): Answered<null>;
  removeContainer(id: string): Answered<null>;
  stopSandbox(id: string): Answered<null>;
  removeSandbox(id: string): Answered<null>;
  close(): void;
}
