import type { Result } from "../../api/base/result.ts";
import type { ContainerConfig, LinuxContainerResources, SandboxConfig, TextMap } from "./messages.ts";

/**
 * Everything that a runtime has of one pod, from CRI's lists and statuses. Times are milliseconds since 1970; null: not yet.
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
  /** The pod's addresses; empty on the host's network. */
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

/** Labels on every sandbox and container, by which the kubelet and crictl identify them. */
export const POD_NAME = "io.kubernetes.pod.name";
export const POD_NAMESPACE = "io.kubernetes.pod.namespace";
export const POD_UID = "io.kubernetes.pod.uid";
export const CONTAINER_NAME = "io.kubernetes.container.name";
/** An annotation of containers, as the kubelet sets it. */
export const CONTAINER_HASH = "io.kubernetes.container.hash";
export const CONTAINER_RESTART_COUNT = "io.kubernetes.container.restartCount";
export const TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath";
export const TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy";
export const POD_GRACE_PERIOD = "io.kubernetes.pod.terminationGracePeriod";
/** INVARIANT: the daemon never stops or removes anything that does not have this label with the daemon's own name. */
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
  /** The size; absent: the runtime does not report it. */
  readonly sizeBytes?: number;
}

/** A container runtime as pods need it; over CRI v1, and a fake one for simulations. */
export interface PodRuntime {
  /** Lists everything at one moment. Ended objects are read once and remembered. */
  pods(): RuntimeResult<RuntimePods>;
  runSandbox(config: SandboxConfig): RuntimeResult<string>;
  stopSandbox(id: string): RuntimeResult<null>;
  removeSandbox(id: string): RuntimeResult<null>;
  createContainer(sandboxId: string, config: ContainerConfig, sandbox: SandboxConfig): RuntimeResult<string>;
  startContainer(id: string): RuntimeResult<null>;
  /** Sends the stop signal, and kills after `graceSeconds`. A container that is gone counts as stopped. */
  stopContainer(id: string, graceSeconds: number): RuntimeResult<null>;
  removeContainer(id: string): RuntimeResult<null>;
  updateContainer(id: string, resources: LinuxContainerResources): RuntimeResult<null>;
  /** Reopens the container's log file at its path. */
  reopenLog(id: string): RuntimeResult<null>;
  exec(id: string, command: readonly string[], timeoutSeconds: number): RuntimeResult<Exec>;
  /** Returns an image; null: it does not exist. */
  image(name: string): RuntimeResult<LocalImage | null>;
  /** Returns the id of the pulled image. */
  pull(name: string): RuntimeResult<string>;
  close(): void;
}

/** A failed call to the runtime: gRPC's code name, and the runtime's message. */
export interface RuntimeFault {
  readonly call: string;
  readonly code: string;
  readonly message: string;
}
export type RuntimeResult<T> = Promise<Result<T, RuntimeFault>>;

/** `runtime` of a NodeSnapshot as plain JSON, all lists of one moment. */
export type RuntimeLists = Readonly<Record<string, unknown>>;

export interface ListedImage {
  readonly id: string;
  /** The image's tags and digests. */
  readonly names: readonly string[];
  readonly pinned: boolean;
  readonly sizeBytes: number | null;
}
export interface ListedContainer {
  readonly id: string;
  readonly state: string;
  readonly createdAt: string;
  readonly imageId: string | null;
  readonly imageRef: string | null;
  readonly sandboxId: string;
  readonly logPath: string | null;
}
export interface ListedSandbox {
  readonly id: string;
  readonly state: string;
  readonly createdAt: string;
}

/** A container runtime as the collection needs it; over CRI v1, and a fake one for simulations. Null: it is not there. */
export interface Runtime {
  /** Returns all lists, or the fault of the first one that failed, since partial lists are misleading. */
  list(): RuntimeResult<RuntimeLists>;
  imageNow(id: string, runtimeHandler: string): RuntimeResult<ListedImage | null>;
  containerNow(id: string): RuntimeResult<ListedContainer | null>;
  sandboxNow(id: string): RuntimeResult<ListedSandbox | null>;
  /** Containers in every state: id -> its own image, and mounted images as far as known. */
  imagesInUse(): RuntimeResult<ReadonlyMap<string, readonly string[]>>;
  removeImage(id: string, runtimeHandler: string): RuntimeResult<null>;
  stopContainer(id: string, timeoutSeconds: number): RuntimeResult<null>;
  removeContainer(id: string): RuntimeResult<null>;
  stopSandbox(id: string): RuntimeResult<null>;
  removeSandbox(id: string): RuntimeResult<null>;
  close(): void;
}
