import type { Exec, RuntimeContainer, RuntimeFault, RuntimePod, RuntimePods } from "../../actuator/containerd/cri.ts";
import type { ContainerConfig, SandboxConfig } from "../../actuator/containerd/messages.ts";

/** The behaviour of a container after its start. */
export interface Program {
  /** The time until it exits by itself; null: it never does. */
  readonly runsMs: number | null;
  readonly exitCode: number;
  /**
   * The time from the stop signal to its exit; null: it ignores the signal and is killed when its grace period is over.
   */
  readonly stopsMs: number | null;
  /** The error with which its start fails. */
  readonly startFault?: string;
  readonly exec?: (command: readonly string[]) => Partial<Exec> & { readonly takesMs?: number };
}
export const SERVES: Program = { runsMs: null, exitCode: 0, stopsMs: 0 };

export interface FakePodImage {
  readonly id: string;
  readonly user?: string | null;
  readonly sizeBytes?: number;
}
/** An image in a registry, or the registry's refusal. */
export interface Pullable extends FakePodImage {
  readonly takesMs?: number;
  readonly fault?: RuntimeFault;
}
export interface FakePodSandbox {
  readonly id: string;
  readonly config: SandboxConfig;
  readonly createdAtMs: number;
  readonly ip: string | null;
  isReady: boolean;
}
export interface FakePodContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly config: ContainerConfig;
  readonly sandbox: SandboxConfig;
  readonly createdAtMs: number;
  state: RuntimeContainer["state"];
  startedAtMs: number | null;
  finishedAtMs: number | null;
  exitCode: number;
  reason: string;
  /** Called when the container exits for any reason. */
  onExit: (() => void)[];
}

export interface FakeCall {
  /** The CRI method. */
  readonly call: string;
  /** The id of the sandbox, container or image; its name if it has no id yet. */
  readonly id: string;
  readonly count: number;
}
/** A failure of a call. `effect`: whether the call nevertheless takes effect. */
export interface Trouble {
  readonly effect: boolean;
  /**
   * `dies`: the runtime is down until `restart()`; `hangs`: there is no response before the client's deadline of two
   * minutes; `never`: there is no response at all, as for a daemon that was killed while it waited.
   */
  readonly answer: RuntimeFault | "dies" | "hangs" | "never";
}

export const sandboxName = ({ metadata: m }: SandboxConfig): string => `${m.name}_${m.namespace}_${m.uid}_${m.attempt}`;
export const containerName = ({ metadata }: ContainerConfig, { metadata: m }: SandboxConfig): string =>
  `${metadata.name}_${m.name}_${m.namespace}_${m.uid}_${metadata.attempt}`;

/** The pods as a PodRuntime lists them. */
export function podsOf(sandboxes: Iterable<FakePodSandbox>, containers: Iterable<FakePodContainer>): RuntimePods {
  const pods = new Map<string, { -readonly [K in keyof RuntimePod]: RuntimePod[K] }>();
  const podOf = ({ metadata: { namespace, name, uid } }: SandboxConfig) => {
    const pod = pods.get(uid) ?? { namespace, name, uid, sandboxes: [], containers: [] };
    pods.set(uid, pod);
    return pod;
  };
  for (const { id, config, createdAtMs, ip, isReady } of sandboxes) {
    const pod = podOf(config);
    const { labels = {}, annotations = {}, metadata } = config;
    const listed = { id, attempt: metadata.attempt, isReady, createdAtMs, ips: ip === null ? [] : [ip] };
    pod.sandboxes = [{ ...listed, labels, annotations }, ...pod.sandboxes];
  }
  for (const one of containers) {
    const pod = podOf(one.sandbox);
    pod.containers = [listedContainer(one), ...pod.containers];
  }
  return pods;
}

function listedContainer(one: FakePodContainer): RuntimeContainer {
  const { id, sandboxId, config, sandbox, state, createdAtMs, startedAtMs, finishedAtMs, exitCode, reason } = one;
  const { metadata, image, labels = {}, annotations = {}, logPath = "" } = config;
  return {
    id,
    name: metadata.name,
    attempt: metadata.attempt,
    sandboxId,
    state,
    createdAtMs,
    startedAtMs,
    finishedAtMs,
    exitCode,
    reason,
    message: "",
    image: image.userSpecifiedImage ?? image.image,
    imageId: image.image,
    logPath: `${sandbox.logDirectory}/${logPath}`,
    labels,
    annotations,
  };
}
