import type { PreferredQuestion } from "../../api/decide/devices/preferred.ts";
import type { DevicesDecision } from "../../api/model/device-decision.ts";
import { isExtendedResource } from "../../api/model/resource-name.ts";
import type { Problem } from "../ports.ts";
import type { DeviceDesk } from "./devices/port.ts";
import type { Vanished } from "./devices/vanished.ts";
import { keepNext } from "./keep-next.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import type { NodeLook } from "./node-look.ts";
import { PodEvents } from "./pod-events.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";
import type { Tries } from "./tries.ts";

/** Puts right what pods that live hold of devices. kubelet 1.36: needsReAllocate of GetDeviceRunContainerOptions. */
export class DeviceRepair {
  readonly #ports: ManagerPorts;
  readonly #set: PodSet;
  readonly #look: NodeLook;
  readonly #tries: Tries;
  /** What was told of devices that vanished, while it is so. */
  #told: ReadonlySet<string> = new Set();

  constructor(ports: ManagerPorts, set: PodSet, look: NodeLook, tries: Tries) {
    this.#ports = ports;
    this.#set = set;
    this.#look = look;
    this.#tries = tries;
  }

  /** Once a turn. */
  look(): void {
    const { devices } = this.#ports;
    if (devices === undefined) return;
    const vanished = devices.vanished();
    for (const one of vanished) if (!this.#told.has(keyOf(one))) this.#tell(one);
    this.#told = new Set(vanished.map(keyOf));
  }

  /** Decides about devices of containers that are to start in pods that live, and hold none. Answers what is in the way. */
  async run(room: number, sequence: number): Promise<readonly Problem[]> {
    const { devices } = this.#ports;
    if (devices === undefined) return [];
    const problems: Problem[] = [];
    for (const [uid, containers] of devices.lacking()) {
      const known = this.#set.get(uid);
      if (known?.record.state !== "lives") devices.decidedAnew(uid, null);
      else if (this.#tries.isDue(known, room)) {
        const waits = devices.whyWaits(known.pod);
        if (waits !== null) devices.decidedAnew(uid, waits.message);
        else problems.push(...(await this.#decide(devices, known, containers, room, sequence)));
      }
    }
    return problems;
  }

  async #decide(
    devices: DeviceDesk,
    { uid, record }: KnownPod,
    containers: ReadonlySet<string>,
    room: number,
    sequence: number,
  ): Promise<readonly Problem[]> {
    const snapshot = await this.#look.snapshot(this.#set.living(), sequence, uid);
    if (!snapshot.ok) return [snapshot.error];
    const pod = withDevicesOf(record.pod, containers);
    const answer = await this.#ports.client.decide("devices", snapshot.value, { pod });
    if (!answer.ok) return [answer.error];
    this.#tries.note(uid, room);
    const { refusal, unanswered } = answer.value.decision as DevicesDecision;
    if (unanswered.length > 0 && devices.ask(uid, unanswered as readonly PreferredQuestion[])) return [];
    if (refusal !== null) {
      devices.decidedAnew(uid, refusal.message);
      return [];
    }
    const kept = keepNext(this.#ports, answer.value.next);
    if (!kept.ok) return [{ from: "state-files", message: kept.error }];
    await this.#ports.client.settle(answer.value);
    devices.forget(uid);
    devices.decidedAnew(uid, null);
    return [];
  }

  #tell({ podUid, container, message }: Vanished): void {
    const known = this.#set.get(podUid);
    if (known === null) return;
    const events = new PodEvents(known.pod, this.#ports.clock, this.#ports.onEvent);
    events.warning("DeviceVanished", message, container);
  }
}
const keyOf = ({ podUid, message }: Vanished): string => `${podUid} ${message}`;

type Loose = Readonly<Record<string, unknown>>;

/** A v1.Pod that wants devices for these containers only: what the others hold, or held once, is not given again. */
function withDevicesOf(pod: Loose, names: ReadonlySet<string>): Loose {
  const { status: _, ...rest } = pod;
  const spec = (pod["spec"] ?? {}) as Loose;
  const of = (list: unknown): object =>
    Array.isArray(list) ? list.map((one: Loose) => (names.has(String(one["name"])) ? one : withoutDevices(one))) : [];
  const init = spec["initContainers"] === undefined ? {} : { initContainers: of(spec["initContainers"]) };
  return { ...rest, spec: { ...spec, ...init, containers: of(spec["containers"]) } };
}
function withoutDevices(container: Loose): Loose {
  const resources = (container["resources"] ?? {}) as Loose;
  const bare = (amounts: unknown) =>
    Object.fromEntries(Object.entries((amounts ?? {}) as Loose).filter(([name]) => !isExtendedResource(name)));
  const kept = { ...resources, limits: bare(resources["limits"]), requests: bare(resources["requests"]) };
  return { ...container, resources: kept };
}
