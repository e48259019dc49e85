import type { RuntimePod } from "../../containerd/cri.ts";
import type { Problem } from "../../core/interfaces.ts";
import { latestOf } from "../../lifecycle/instances.ts";
import type { ContainerPort, PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import { type Listener, type ListeningPorts, type SocketOwner, shortestIp } from "../../machine/listening-ports.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { PodEventRecorder } from "../records/records.ts";

/** A host port that a container requests, and its place in the pod. */
interface HostPort {
  /** `spec.containers[0].ports[0].hostPort` */
  readonly path: string;
  readonly container: string;
  readonly port: ContainerPort;
}
type ListeningAddress = Pick<ContainerPort, "protocol"> & { readonly ip: string; readonly port: number };

const WILDCARDS: ReadonlySet<string> = new Set(["", "0.0.0.0", "::"]);

/** Lists init containers first. */
function hostPortsOf({ spec }: RunnablePod): readonly HostPort[] {
  const of = (list: "initContainers" | "containers", containers: readonly PodContainer[]): readonly HostPort[] =>
    containers.flatMap(({ name, ports }, c) =>
      ports.flatMap((port, p) =>
        port.hostPort === 0 ? [] : [{ path: `spec.${list}[${c}].ports[${p}].hostPort`, container: name, port }],
      ),
    );
  return [...of("initContainers", spec.initContainers), ...of("containers", spec.containers)];
}

/**
 * Whether a socket excludes another one from the port. `hostIP` has the same form as `ip`. Linux: a specific address and
 * the wildcard address exclude each other.
 */
const isTakenBy = ({ protocol, hostPort, hostIP }: ContainerPort, taken: ListeningAddress): boolean =>
  protocol === taken.protocol &&
  hostPort === taken.port &&
  (WILDCARDS.has(hostIP) || WILDCARDS.has(taken.ip) || hostIP === taken.ip);

/** Changes whenever a pod's ports should be checked: after its admission, and after one of its containers ended. */
function portOccasion(admittedAtMs: number | null, runtimePod: RuntimePod | null): string {
  const ended = runtimePod?.containers.filter(({ state }) => state === "exited").map(({ id }) => id) ?? [];
  return JSON.stringify([admittedAtMs, ended]);
}

const isRunning = (runtimePod: RuntimePod | null, container: string): boolean =>
  runtimePod !== null && latestOf(runtimePod, container)?.state === "running";

const TAKEN = "HostPortTaken";
const NOT_MAPPED_HERE = "HostPortByCNI";

interface Deps {
  readonly eventsOf: PodEventRecorder;
  /** The listening ports; absent: host ports are not checked. */
  readonly listening?: ListeningPorts;
}

/**
 * Host ports that pods request and another process holds. They are checked after a pod's admission and after one of its
 * containers ended, then at each sync until the port is free; as in a kubelet, no pod is refused because of it.
 */
export class HostPorts {
  readonly #deps: Deps;
  readonly #set: PodSet;
  /** The last check by pod uid. */
  readonly #checks = new Map<string, { readonly occasion: string; readonly taken: readonly string[] }>();

  constructor(deps: Deps, set: PodSet) {
    this.#deps = deps;
    this.#set = set;
  }

  /** Current problems. */
  observe(): readonly Problem[] {
    const { listening } = this.#deps;
    if (listening === undefined) return [];
    let listeners: readonly Listener[] | undefined;
    const before = new Map(this.#checks);
    this.#checks.clear();
    const problems: Problem[] = [];
    for (const known of this.#set.living()) {
      const ports = known.record.state === "active" ? hostPortsOf(known.pod) : [];
      if (ports.length === 0) continue;
      const last = before.get(known.uid);
      const occasion = portOccasion(known.record.admittedAtMs, known.runtimePod);
      const isDue = last?.occasion !== occasion || last.taken.length > 0;
      if (isDue) listeners ??= listening.list();
      const taken = isDue ? takenOf(known, ports, listeners ?? [], listening) : [];
      this.#checks.set(known.uid, { occasion, taken });
      const { namespace, name } = known.pod;
      for (const message of taken) {
        if (!last?.taken.includes(message)) this.#deps.eventsOf(known.pod).warning(TAKEN, message);
        problems.push({ from: "pods", message: `${namespace}/${name}: ${message}` });
      }
    }
    return problems;
  }

  /** Reports host ports of a newly admitted pod that only the node's network plugins can open. */
  reportMapped(known: KnownPod): void {
    if (known.pod.spec.hostNetwork) return;
    for (const { path, container, port } of hostPortsOf(known.pod))
      this.#deps
        .eventsOf(known.pod)
        .warning(
          NOT_MAPPED_HERE,
          `${path}: ${port.hostPort} is mapped by the node's CNI plugins (portmap) only; without one nothing listens there`,
          container,
        );
  }
}

function takenOf(
  { uid, runtimePod }: KnownPod,
  ports: readonly HostPort[],
  listeners: readonly Listener[],
  listening: ListeningPorts,
): readonly string[] {
  return ports.flatMap(({ path, container, port }) => {
    const asked = { ...port, hostIP: shortestIp(port.hostIP) };
    for (const listener of listeners.filter((one) => isTakenBy(asked, one))) {
      const owner = listening.ownerOf(listener.inode);
      // if no holder is visible, it may be the container itself
      const isOwn = owner === undefined ? isRunning(runtimePod, container) : isOfPod(owner, uid);
      if (!isOwn) return [`${path}: ${port.hostPort} is taken by ${ownerText(owner, listener)}`];
    }
    return [];
  });
}

/** Whether a process belongs to a pod, by its cgroup; the systemd driver writes `_` for `-`. */
const isOfPod = ({ cgroup }: SocketOwner, uid: string): boolean =>
  cgroup.split(/[/\n]/).some((name) => name === `pod${uid}` || name.endsWith(`-pod${uid.replaceAll("-", "_")}.slice`));

const ownerText = (owner: SocketOwner | undefined, { ip }: Listener): string =>
  owner === undefined ? `a process that cannot be seen, which listens on ${ip}` : `${owner.name} (pid ${owner.pid})`;
