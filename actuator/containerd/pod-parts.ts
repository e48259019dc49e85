import { byText } from "../../api/base/order.ts";
import {
  POD_NAME,
  POD_NAMESPACE,
  POD_UID,
  type RuntimeContainer,
  type RuntimePod,
  type RuntimePods,
  type RuntimeSandbox,
} from "./cri.ts";
import type { Container, ContainerStatus, Sandbox, SandboxStatus } from "./messages.ts";

/** CRI's nanoseconds since 1970 as milliseconds; 0 means no time. */
export const timeMs = (nanoseconds: string): number | null =>
  nanoseconds.length > 6 && !nanoseconds.startsWith("-") ? Number(nanoseconds.slice(0, -6)) : null;

export const READY = "SANDBOX_READY";

type PodName = Pick<RuntimePod, "namespace" | "name" | "uid">;
export interface PodSandbox {
  readonly pod: PodName;
  readonly sandbox: RuntimeSandbox;
}

/** `network` is null for a sandbox that is not ready: its addresses are no longer its own. */
export function podSandboxOf(listed: Sandbox, network: SandboxStatus["network"], state = listed.state): PodSandbox {
  const { name = "", namespace = "", uid = "", attempt = 0 } = listed.metadata ?? {};
  const { ip = "", additionalIps = [] } = network ?? {};
  return {
    pod: { namespace, name, uid },
    sandbox: {
      id: listed.id,
      attempt,
      isReady: state === READY,
      createdAtMs: timeMs(listed.createdAt) ?? 0,
      ips: [ip, ...additionalIps.map((more) => more.ip)].filter((address) => address !== ""),
      labels: listed.labels,
      annotations: listed.annotations,
    },
  };
}

const STATES: Readonly<Record<string, RuntimeContainer["state"]>> = {
  CONTAINER_CREATED: "created",
  CONTAINER_RUNNING: "running",
  CONTAINER_EXITED: "exited",
};

/** The status is newer than the list, so it wins. kubelet 1.36: toKubeContainerStatus; its imageID is ImageRef. */
export function containerOf(listed: Container, status: ContainerStatus): RuntimeContainer {
  return {
    ...identityOf(listed),
    state: STATES[status.state] ?? "unknown",
    startedAtMs: timeMs(status.startedAt),
    finishedAtMs: timeMs(status.finishedAt),
    exitCode: status.exitCode,
    reason: status.reason,
    message: status.message,
    image: status.image?.image || (listed.image?.image ?? ""),
    imageId: status.imageRef || status.imageId,
    logPath: status.logPath,
  };
}

/**
 * A container whose status the runtime refuses to report: it gets containerd's own 255 and `Unknown`, as for an
 * unobserved end.
 */
export function unreadableContainerOf(listed: Container, refusal: string): RuntimeContainer {
  const state = STATES[listed.state] ?? "unknown";
  const hasEnded = state === "exited";
  return {
    ...identityOf(listed),
    state,
    startedAtMs: null,
    finishedAtMs: null,
    exitCode: hasEnded ? 255 : 0,
    reason: hasEnded ? "Unknown" : "",
    message: refusal,
    image: listed.image?.image ?? "",
    imageId: listed.imageRef || listed.imageId,
    logPath: "",
  };
}

const identityOf = ({ id, metadata, podSandboxId, createdAt, labels, annotations }: Container) => ({
  id,
  name: metadata?.name ?? "",
  attempt: metadata?.attempt ?? 0,
  sandboxId: podSandboxId,
  createdAtMs: timeMs(createdAt) ?? 0,
  labels,
  annotations,
});

type Writable = PodName & { readonly sandboxes: RuntimeSandbox[]; readonly containers: RuntimeContainer[] };

/**
 * Groups by pod, newest first. Containers of no listed sandbox belong to the pod in their labels; without labels they
 * are dropped.
 */
export function podsOf(sandboxes: Iterable<PodSandbox>, containers: Iterable<RuntimeContainer>): RuntimePods {
  const pods = new Map<string, Writable>();
  const bySandbox = new Map<string, Writable>();
  const podOf = ({ namespace, name, uid }: PodName): Writable => {
    const known = pods.get(uid);
    if (known !== undefined) return known;
    const made = { namespace, name, uid, sandboxes: [], containers: [] };
    pods.set(uid, made);
    return made;
  };
  for (const { pod: name, sandbox } of sandboxes) {
    const pod = podOf(name);
    pod.sandboxes.push(sandbox);
    bySandbox.set(sandbox.id, pod);
  }
  for (const container of containers) {
    const pod = bySandbox.get(container.sandboxId);
    const uid = container.labels[POD_UID];
    if (pod !== undefined) pod.containers.push(container);
    else if (uid !== undefined) podOf(labelledName(container, uid)).containers.push(container);
  }
  for (const pod of pods.values()) {
    // a sandbox that never started may have no time, but has a number
    pod.sandboxes.sort((a, b) => b.attempt - a.attempt || newestFirst(a, b));
    pod.containers.sort(newestFirst);
  }
  return pods;
}
const labelledName = ({ labels }: RuntimeContainer, uid: string): PodName => ({
  namespace: labels[POD_NAMESPACE] ?? "",
  name: labels[POD_NAME] ?? "",
  uid,
});

interface CreatedItem {
  readonly id: string;
  readonly attempt: number;
  readonly createdAtMs: number;
}
const newestFirst = (a: CreatedItem, b: CreatedItem): number =>
  b.createdAtMs - a.createdAtMs || b.attempt - a.attempt || byText(a.id, b.id);
