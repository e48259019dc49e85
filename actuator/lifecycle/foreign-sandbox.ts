import {
  OWNER,
  type RuntimeContainer,
  type RuntimePod,
  type RuntimePods,
  type RuntimeSandbox,
} from "../containerd/cri.ts";
import type { PodActions, StartContainer } from "./actions.ts";
import { mayRun } from "./instances.ts";
import type { RunnablePod } from "./pod.ts";

/** Reason of a pod whose name runs in a sandbox that this daemon did not create: nothing of it is started meanwhile. */
export const FOREIGN_SANDBOX = "ForeignSandbox";

/** A sandbox that this daemon did not make, and in which something may run. */
export interface ForeignSandbox {
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly createdAtMs: number;
  readonly isReady: boolean;
  /** Addresses of its pod; none on the host's network. */
  readonly ips: readonly string[];
  /** Containers of all states, newest first. */
  readonly containers: readonly RuntimeContainer[];
  /** The cgroup root of another Nodewise daemon that made it; null: none did. */
  readonly otherOwner: string | null;
  /** The pod's source. `file` or `http`: a kubelet's static pod; `api`; empty: not known. */
  readonly configSource: string;
}

/** Lists sandboxes in a runtime that `owner` does not own, if they are ready or have a container that may run. */
export function foreignSandboxes(held: RuntimePods, owner: string): readonly ForeignSandbox[] {
  return [...held.values()].flatMap((pod) => {
    const own = new Set(pod.sandboxes.filter(({ labels }) => labels[OWNER] === owner).map(({ id }) => id));
    const containers = Map.groupBy(
      pod.containers.filter(({ sandboxId, labels }) => !own.has(sandboxId) && labels[OWNER] !== owner),
      ({ sandboxId }) => sandboxId,
    );
    const unlisted = new Map([...containers].map(([id, of]) => [id, unlistedSandbox(id, of)]));
    for (const { id } of pod.sandboxes) unlisted.delete(id);
    return [...pod.sandboxes.filter(({ id }) => !own.has(id)), ...unlisted.values()]
      .filter((sandbox) => mayRun({ ...pod, sandboxes: [sandbox], containers: containers.get(sandbox.id) ?? [] }))
      .map((sandbox) => foreignOf(pod, sandbox, containers.get(sandbox.id) ?? []));
  });
}

/** A sandbox that the runtime does not list although it lists its containers. */
const unlistedSandbox = (id: string, [first]: readonly RuntimeContainer[]): RuntimeSandbox => ({
  id,
  attempt: 0,
  isReady: false,
  createdAtMs: first?.createdAtMs ?? 0,
  ips: [],
  labels: first?.labels ?? {},
  annotations: {},
});

const foreignOf = (
  { namespace, name, uid }: RuntimePod,
  { id, createdAtMs, isReady, ips, labels, annotations }: RuntimeSandbox,
  containers: readonly RuntimeContainer[],
): ForeignSandbox => ({
  id,
  namespace,
  name,
  uid,
  createdAtMs,
  isReady,
  ips,
  containers,
  otherOwner: labels[OWNER] ?? null,
  configSource: annotations["kubernetes.io/config.source"] ?? "",
});

export const runningIn = ({ containers }: ForeignSandbox): readonly RuntimeContainer[] =>
  containers.filter(({ state }) => state === "running" || state === "unknown");

/**
 * The node name under which a kubelet runs the same manifest; null: it does not seem so. A kubelet appends its node's name to a
 * static pod's name, so with another node name the same manifest is a pod with another name.
 */
export function otherNodeOf(pod: RunnablePod, foreign: ForeignSandbox): string | null {
  const { nodeName, containers, initContainers } = pod.spec;
  const end = `-${nodeName.toLowerCase()}`;
  const isStatic = foreign.configSource === "file" || foreign.configSource === "http";
  if (!isStatic || foreign.namespace !== pod.namespace || nodeName === "") return null;
  if (!pod.name.endsWith(end) || foreign.name.endsWith(end)) return null;
  const start = pod.name.slice(0, pod.name.length - end.length + 1);
  const names = new Set([...containers, ...initContainers].map(({ name }) => name));
  const isSame = foreign.containers.length > 0 && foreign.containers.every(({ name }) => names.has(name));
  return isSame && foreign.name.startsWith(start) ? foreign.name.slice(start.length) : null;
}

/**
 * Why nothing of a pod may be started beside a foreign sandbox of the same pod; null: there is none. The name counts, not the
 * uid: a kubelet gives the same manifest another uid.
 */
export function foreignSandboxReason(pod: RunnablePod, foreign: readonly ForeignSandbox[]): string | null {
  const same = foreign.find(({ namespace, name }) => namespace === pod.namespace && name === pod.name);
  if (same !== undefined)
    return `its name runs in ${sandboxText(same)}: ${whatToDo(same)}; it is admitted once that is gone`;
  for (const one of foreign) {
    const nodeName = otherNodeOf(pod, one);
    if (nodeName !== null)
      return (
        `a kubelet of the node name \`${nodeName}\` seems to run its manifest as ${one.name} in ${sandboxText(one)}: ` +
        `give this daemon the same name with nodeName, or stop that sandbox`
      );
  }
  return null;
}

const whatToDo = ({ otherOwner }: ForeignSandbox): string =>
  otherOwner === null
    ? "see `nodewise takeover`, which stops it when asked to"
    : `let the Nodewise daemon of cgroup root ${otherOwner} end it`;

/** `sandbox 0123456789abc (uid U, since 2026-11-23T06:00:00.000Z, 2 containers running) that this daemon did not make`. */
export function sandboxText(sandbox: ForeignSandbox): string {
  const { id, uid, createdAtMs } = sandbox;
  const count = runningIn(sandbox).length;
  const running = `${count} ${count === 1 ? "container" : "containers"} running`;
  const since = new Date(createdAtMs).toISOString();
  return `sandbox ${id.slice(0, SHORT_ID)} (uid ${uid}, since ${since}, ${running}) that this daemon did not make`;
}

/** The length to which crictl shortens ids, and which it accepts. */
export const SHORT_ID = 13;

/**
 * Actions whose attempt numbers follow those of foreign sandboxes and containers with the same uid: a runtime accepts
 * each number once, and their logs share a directory. `held`: everything that the runtime has under that uid.
 */
export function afterForeign(actions: PodActions, held: RuntimePod | undefined, owner: string): PodActions {
  if (held === undefined) return actions;
  const next = (list: readonly { readonly attempt: number; readonly labels: RuntimeSandbox["labels"] }[]): number =>
    Math.max(-1, ...list.filter(({ labels }) => labels[OWNER] !== owner).map(({ attempt }) => attempt)) + 1;
  const later = (start: StartContainer): StartContainer => ({
    ...start,
    attempt: Math.max(start.attempt, next(held.containers.filter(({ name }) => name === start.name))),
  });
  const attempt = actions.createSandbox ? Math.max(actions.attempt, next(held.sandboxes)) : actions.attempt;
  return {
    ...actions,
    attempt,
    initToStart: actions.initToStart.map(later),
    toStart: actions.toStart.map(later),
  };
}
