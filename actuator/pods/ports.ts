import type { ContainerConfig, LinuxContainerResources, SandboxConfig } from "../containerd/messages.ts";
import type { Answered } from "../containerd/port.ts";
import type { PodEvent } from "../lifecycle/event.ts";
import type { RuntimePods } from "../lifecycle/runtime-pod.ts";

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
  exec(id: string, command: readonly string[], timeoutSeconds: number): Answered<Exec>;
  /** Null: it is not there. */
  image(name: string): Answered<LocalImage | null>;
  /** The id of what came. */
  pull(name: string): Answered<string>;
  close(): void;
}

/** Of a pod on the machine's own disk. */
export interface PodPlaces {
  readonly podDirectory: string;
  readonly logDirectory: string;
}

export type OnPodEvent = (event: PodEvent) => void;
