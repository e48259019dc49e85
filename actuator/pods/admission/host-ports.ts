import type { Problem } from "../../core/ports.ts";
import { type HostPort, hostPortsOf, isRunning, isTakenBy, portOccasion } from "../../lifecycle/host-ports.ts";
import { type Listener, type ListeningPorts, type SocketOwner, shortestIp } from "../../machine/listening-ports.ts";
import type { NodePorts } from "../manager-ports.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { PodEventRecorder } from "../records/records.ts";

const TAKEN = "HostPortTaken";
const NOT_MAPPED_HERE = "HostPortByCNI";

type Ports = Pick<NodePorts, "listening"> & { readonly eventsOf: PodEventRecorder };

/**
 * Ports of the host that pods ask for and somebody else has. It is looked when a pod was let in and when a container of it
 * has ended, then at each turn until the port is free; no pod is refused for it, as no kubelet does.
 */
export class HostPorts {
  readonly #ports: Ports;
  readonly #set: PodSet;
  /** By uid, of the last look. */
  readonly #looks = new Map<string, { readonly occasion: string; readonly taken: readonly string[] }>();

  constructor(ports: Ports, set: PodSet) {
    this.#ports = ports;
    this.#set = set;
  }

  /** Current problems. */
  observe(): readonly Problem[] {
    const { listening } = this.#ports;
    if (listening === undefined) return [];
    let listeners: readonly Listener[] | undefined;
    const before = new Map(this.#looks);
    this.#looks.clear();
    const problems: Problem[] = [];
    for (const known of this.#set.living()) {
      const wanted = known.record.state === "active" ? hostPortsOf(known.pod) : [];
      if (wanted.length === 0) continue;
      const last = before.get(known.uid);
      const occasion = portOccasion(known.record.admittedAtMs, known.runtimePod);
      const isDue = last?.occasion !== occasion || last.taken.length > 0;
      if (isDue) listeners ??= listening.list();
      const taken = isDue ? takenOf(known, wanted, listeners ?? [], listening) : [];
      this.#looks.set(known.uid, { occasion, taken });
      const { namespace, name } = known.pod;
      for (const message of taken) {
        if (!last?.taken.includes(message)) this.#ports.eventsOf(known.pod).warning(TAKEN, message);
        problems.push({ from: "pods", message: `${namespace}/${name}: ${message}` });
      }
    }
    return problems;
  }

  /** Reports host ports of a newly admitted pod that only the node's network plugins can open. */
  reportMapped(known: KnownPod): void {
    if (known.pod.spec.hostNetwork) return;
    for (const { path, container, port } of hostPortsOf(known.pod))
      this.#ports
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
  wanted: readonly HostPort[],
  listeners: readonly Listener[],
  listening: ListeningPorts,
): readonly string[] {
  return wanted.flatMap(({ path, container, port }) => {
    const asked = { ...port, hostIP: shortestIp(port.hostIP) };
    for (const listener of listeners.filter((one) => isTakenBy(asked, one))) {
      const owner = listening.ownerOf(listener.inode);
      // it may be the container's own where nobody can be seen to have it
      const isOwn = owner === undefined ? isRunning(runtimePod, container) : isOfPod(owner, uid);
      if (!isOwn) return [`${path}: ${port.hostPort} is taken by ${ownerText(owner, listener)}`];
    }
    return [];
  });
}

/** By its cgroup, in which systemd's driver writes `_` for `-`. */
const isOfPod = ({ cgroup }: SocketOwner, uid: string): boolean =>
  cgroup.split(/[/\n]/).some((name) => name === `pod${uid}` || name.endsWith(`-pod${uid.replaceAll("-", "_")}.slice`));

const ownerText = (owner: SocketOwner | undefined, { ip }: Listener): string =>
  owner === undefined ? `a process that cannot be seen, which listens on ${ip}` : `${owner.name} (pid ${owner.pid})`;
