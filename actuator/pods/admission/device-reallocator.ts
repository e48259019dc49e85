import type { Fields } from "../../../api/base/own.ts";
import type { Result } from "../../../api/base/result.ts";
import type { PreferredAllocationRequest } from "../../../api/decide/devices/preferred.ts";
import type { DevicesDecision } from "../../../api/model/devices.ts";
import { isExtendedResource } from "../../../api/model/resource-name.ts";
import type { DecisionClient, Problem } from "../../core/interfaces.ts";
import { EMPTY_CHECKPOINT, withCheckpoint, withResponsesOf } from "../devices/checkpoint-entries.ts";
import { type ManagerFiles, readDeviceCheckpoint } from "../devices/manager-files.ts";
import type { NodeDevices, VanishedDevices } from "../devices/port.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { PodEventRecorder } from "../records/records.ts";
import type { AdmissionBackoff } from "./admission-backoff.ts";
import type { NodeSnapshotter } from "./node-snapshotter.ts";

/**
 * Stores the state files for the next decision, merged with plugins' responses that arrived meanwhile, which decisions
 * do not contain. True: something changed.
 */
export const persistNext = (
  { files, devices }: Pick<Deps, "files" | "devices">,
  next: unknown,
): Result<boolean, string> =>
  files.persist(devices === undefined ? withStoredResponses(files, next) : devices.withResponses(next));

/** If no plugins are served, the held devices come from an earlier daemon's plugins. */
function withStoredResponses(files: ManagerFiles, next: unknown): unknown {
  const now = readDeviceCheckpoint(files);
  return withCheckpoint(next, (decided) =>
    withResponsesOf(decided, (now.ok ? now.value : undefined) ?? EMPTY_CHECKPOINT),
  );
}

interface Deps {
  readonly client: DecisionClient;
  readonly files: ManagerFiles;
  readonly devices?: NodeDevices;
  readonly eventsOf: PodEventRecorder;
}

/** Assigns devices again that active pods have lost. kubelet 1.36: needsReAllocate of GetDeviceRunContainerOptions. */
export class DeviceReallocator {
  readonly #deps: Deps;
  readonly #set: PodSet;
  readonly #snapshotter: NodeSnapshotter;
  readonly #backOff: AdmissionBackoff;
  /** Devices whose loss was reported, while it lasts. */
  #reported: ReadonlySet<string> = new Set();

  constructor(deps: Deps, set: PodSet, snapshotter: NodeSnapshotter, backOff: AdmissionBackoff) {
    this.#deps = deps;
    this.#set = set;
    this.#snapshotter = snapshotter;
    this.#backOff = backOff;
  }

  /** Called once per sync. */
  reportVanished(): void {
    const { devices } = this.#deps;
    if (devices === undefined) return;
    const vanished = devices.vanished();
    for (const one of vanished) if (!this.#reported.has(keyOf(one))) this.#report(one);
    this.#reported = new Set(vanished.map(keyOf));
  }

  /** Decides about devices for containers of active pods that are to start and hold none. Returns the problems. */
  async run(sequence: number): Promise<readonly Problem[]> {
    const { devices } = this.#deps;
    if (devices === undefined) return [];
    const problems: Problem[] = [];
    for (const [uid, containers] of devices.toReallocate()) {
      const known = this.#set.get(uid);
      if (known?.record.state !== "active") devices.reallocated(uid, null);
      else if (this.#backOff.isDue(known)) {
        const waits = devices.whyPending(known.pod);
        if (waits !== null) devices.reallocated(uid, waits.message);
        else problems.push(...(await this.#decide(devices, known, containers, sequence)));
      }
    }
    return problems;
  }

  async #decide(
    devices: NodeDevices,
    { uid, record }: KnownPod,
    containers: ReadonlySet<string>,
    sequence: number,
  ): Promise<readonly Problem[]> {
    const snapshot = await this.#snapshotter.snapshot(this.#set.living(), sequence, uid);
    if (!snapshot.ok) return [snapshot.error];
    const pod = withDevicesOf(record.pod, containers);
    const answer = await this.#deps.client.decide("devices", snapshot.value, { pod });
    if (!answer.ok) return [answer.error];
    this.#backOff.update(uid);
    const { refusal, unanswered } = answer.value.decision as DevicesDecision;
    if (unanswered.length > 0 && devices.askPreferred(uid, unanswered as readonly PreferredAllocationRequest[]))
      return [];
    if (refusal !== null) {
      devices.reallocated(uid, refusal.message);
      return [];
    }
    const kept = persistNext(this.#deps, answer.value.next);
    if (!kept.ok) return [{ from: "state-files", message: kept.error }];
    await this.#deps.client.commit(answer.value);
    devices.forget(uid);
    devices.reallocated(uid, null);
    return [];
  }

  #report({ podUid, container, message }: VanishedDevices): void {
    const known = this.#set.get(podUid);
    if (known === null) return;
    this.#deps.eventsOf(known.pod).warning("DeviceVanished", message, container);
  }
}
const keyOf = ({ podUid, message }: VanishedDevices): string => `${podUid} ${message}`;

/** A v1.Pod that requests devices only for these containers: the others keep theirs, or get none again. */
function withDevicesOf(pod: Fields, names: ReadonlySet<string>): Fields {
  const { status: _, ...rest } = pod;
  const spec = (pod["spec"] ?? {}) as Fields;
  const of = (list: unknown): object =>
    Array.isArray(list) ? list.map((one: Fields) => (names.has(String(one["name"])) ? one : withoutDevices(one))) : [];
  const init = spec["initContainers"] === undefined ? {} : { initContainers: of(spec["initContainers"]) };
  return { ...rest, spec: { ...spec, ...init, containers: of(spec["containers"]) } };
}
function withoutDevices(container: Fields): Fields {
  const resources = (container["resources"] ?? {}) as Fields;
  const bare = (amounts: unknown) =>
    Object.fromEntries(Object.entries((amounts ?? {}) as Fields).filter(([name]) => !isExtendedResource(name)));
  const kept = { ...resources, limits: bare(resources["limits"]), requests: bare(resources["requests"]) };
  return { ...container, resources: kept };
}
