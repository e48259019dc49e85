import type { PreferredQuestion } from "../../../api/decide/devices/preferred.ts";
import type { DevicesDecision } from "../../../api/model/managers.ts";
import { isExtendedResource } from "../../../api/model/resource-name.ts";
import type { Result } from "../../../api/model/result.ts";
import type { Problem } from "../../core/ports.ts";
import type { Vanished } from "../devices/booked-devices.ts";
import { NOTHING_HELD, withResponsesOf } from "../devices/checkpoint-entries.ts";
import type { DeviceDesk } from "../devices/port.ts";
import { withCheckpoint } from "../devices/redacted-checkpoint.ts";
import type { DecisionPorts } from "../manager-ports.ts";
import { type ManagerFiles, readDeviceCheckpoint } from "../records/manager-files.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { PodEventRecorder } from "../records/records.ts";
import type { AdmissionBackoff } from "./admission-backoff.ts";
import type { NodeSnapshotter } from "./node-snapshotter.ts";

/**
 * Keeps the state files that a decision has the next one be told. Plugins answer while decisions are asked, and decisions
 * are not told what they answered: neither is lost by it. True: something changed.
 */
export const persistNext = (
  { files, devices }: Pick<DecisionPorts, "files" | "devices">,
  next: unknown,
): Result<boolean, string> => files.persist(devices === undefined ? answered(files, next) : devices.merged(next));

/** Where no plugins are served, what is held was left by a daemon that did. */
function answered(files: ManagerFiles, next: unknown): unknown {
  const now = readDeviceCheckpoint(files);
  return withCheckpoint(next, (told) => withResponsesOf(told, (now.ok ? now.value : undefined) ?? NOTHING_HELD));
}

type Ports = Pick<DecisionPorts, "client" | "files" | "devices"> & { readonly eventsOf: PodEventRecorder };

/** Puts right what active pods hold of devices. kubelet 1.36: needsReAllocate of GetDeviceRunContainerOptions. */
export class DeviceRepair {
  readonly #ports: Ports;
  readonly #set: PodSet;
  readonly #snapshotter: NodeSnapshotter;
  readonly #backOff: AdmissionBackoff;
  /** What was told of devices that vanished, while it is so. */
  #told: ReadonlySet<string> = new Set();

  constructor(ports: Ports, set: PodSet, snapshotter: NodeSnapshotter, backOff: AdmissionBackoff) {
    this.#ports = ports;
    this.#set = set;
    this.#snapshotter = snapshotter;
    this.#backOff = backOff;
  }

  /** Once a turn. */
  look(): void {
    const { devices } = this.#ports;
    if (devices === undefined) return;
    const vanished = devices.vanished();
    for (const one of vanished) if (!this.#told.has(keyOf(one))) this.#tell(one);
    this.#told = new Set(vanished.map(keyOf));
  }

  /** Decides about devices of containers that are to start in active pods, and hold none. Answers what is in the way. */
  async run(sequence: number): Promise<readonly Problem[]> {
    const { devices } = this.#ports;
    if (devices === undefined) return [];
    const problems: Problem[] = [];
    for (const [uid, containers] of devices.lacking()) {
      const known = this.#set.get(uid);
      if (known?.record.state !== "active") devices.decidedAnew(uid, null);
      else if (this.#backOff.isDue(known)) {
        const waits = devices.whyWaits(known.pod);
        if (waits !== null) devices.decidedAnew(uid, waits.message);
        else problems.push(...(await this.#decide(devices, known, containers, sequence)));
      }
    }
    return problems;
  }

  async #decide(
    devices: DeviceDesk,
    { uid, record }: KnownPod,
    containers: ReadonlySet<string>,
    sequence: number,
  ): Promise<readonly Problem[]> {
    const snapshot = await this.#snapshotter.snapshot(this.#set.living(), sequence, uid);
    if (!snapshot.ok) return [snapshot.error];
    const pod = withDevicesOf(record.pod, containers);
    const answer = await this.#ports.client.decide("devices", snapshot.value, { pod });
    if (!answer.ok) return [answer.error];
    this.#backOff.update(uid);
    const { refusal, unanswered } = answer.value.decision as DevicesDecision;
    if (unanswered.length > 0 && devices.ask(uid, unanswered as readonly PreferredQuestion[])) return [];
    if (refusal !== null) {
      devices.decidedAnew(uid, refusal.message);
      return [];
    }
    const kept = persistNext(this.#ports, answer.value.next);
    if (!kept.ok) return [{ from: "state-files", message: kept.error }];
    await this.#ports.client.settle(answer.value);
    devices.forget(uid);
    devices.decidedAnew(uid, null);
    return [];
  }

  #tell({ podUid, container, message }: Vanished): void {
    const known = this.#set.get(podUid);
    if (known === null) return;
    this.#ports.eventsOf(known.pod).warning("DeviceVanished", message, container);
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
