import type { CgroupValues } from "../../api/model/decision.ts";
import type { PodActions } from "../lifecycle/actions.ts";
import { stoppingMessage, stopsOf } from "../lifecycle/ending.ts";
import { podAddresses } from "../lifecycle/env.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { RuntimePod } from "../lifecycle/runtime-pod.ts";
import type { PodClock } from "./clock.ts";
import type { DeviceFault, DeviceHands } from "./devices/port.ts";
import { type Forgotten, forgetPod, forgetVolumes } from "./forget.ts";
import { goErrorText } from "./go-error.ts";
import type { ContainerFault, Images } from "./images.ts";
import type { LogLinks } from "./log-link.ts";
import { type LostFound, sweepLost } from "./lost-directory.ts";
import type { Mounter } from "./mounter.ts";
import { OwnedRuntime, ownPartOf } from "./owned-runtime.ts";
import { type PodIdentity, type PodRoots, placesOf } from "./places.ts";
import { PodEvents } from "./pod-events.ts";
import type { PodNode } from "./pod-node.ts";
import type { OnPodEvent, PodRuntime } from "./ports.ts";
import { stopPod } from "./stop.ts";
import { syncPod } from "./sync.ts";

export interface WorkerPorts {
  readonly runtime: PodRuntime;
  /** One for all workers of a runtime. */
  readonly images: Images;
  readonly mounter: Mounter;
  /** Absent: this daemon serves no device plugins. */
  readonly devices?: DeviceHands;
  /** Where log collectors look; absent: nothing is linked. */
  readonly logLinks?: LogLinks;
  readonly clock: PodClock;
  readonly onEvent: OnPodEvent;
  /** This daemon's own name: label OWNER. */
  readonly owner: string;
  readonly roots: PodRoots;
  /** Asked for each turn, since it changes. */
  readonly node: () => PodNode;
  /** The pod's cgroup, absolute. */
  readonly cgroupParentOf: (pod: RunnablePod) => string;
  /** Of volumes in memory: a pod's limit, or what the node has for pods; null: none. */
  readonly memoryBytes: (pod: RunnablePod) => number | null;
}
export interface SyncAsked {
  readonly pod: RunnablePod;
  /** What the actions were computed from; null: the runtime holds nothing of it. */
  readonly seen: RuntimePod | null;
  readonly actions: PodActions;
  /** Null: not decided yet; the container is not started. */
  readonly valuesOf: (container: string) => CgroupValues | null;
  readonly signal: AbortSignal;
}
/** How a turn went. */
export interface Synced {
  readonly sandboxId: string | null;
  readonly started: readonly string[];
  /** Container's name -> why this turn did not start it. */
  readonly faults: Readonly<Record<string, ContainerFault>>;
  /** Not started for want of values. */
  readonly undecided: readonly string[];
  /** What ended the turn for the whole pod; null: nothing. */
  readonly error: string | null;
  /** The pod did not get its devices and holds none of them any more: it is to come in anew; null: not so. */
  readonly refusal: DeviceFault | null;
  /** The turn was cut short by its signal. */
  readonly isCut: boolean;
}
export interface EndAsked {
  /** Null: only what the runtime holds is known of it; then no hook is run. */
  readonly pod: RunnablePod | null;
  readonly seen: RuntimePod;
  readonly graceSeconds: number;
  readonly signal: AbortSignal;
}
export interface Ended {
  /** Nothing of it that is this daemon's own runs any more. */
  readonly isEnded: boolean;
  readonly error: string | null;
}

/** Carries out what pods need, one turn at a time each. Nothing here throws: what goes wrong is an event and a sentence. */
export class PodWorker {
  readonly #ports: WorkerPorts;

  constructor(ports: WorkerPorts) {
    this.#ports = ports;
  }

  /** The kubelet's order: kill, remove, devices, volumes, sandbox, init containers, containers. kubelet 1.36: SyncPod. */
  async sync(asked: SyncAsked): Promise<Synced> {
    const nothing = { sandboxId: null, started: [], faults: {}, undecided: [], refusal: null, isCut: false };
    const places = placesOf(this.#ports.roots, asked.pod);
    if (!places.ok) return { ...nothing, error: places.error };
    const { events, runtime } = this.#of(asked.pod, asked.seen);
    try {
      return await syncPod(this.#ports, asked, { places: places.value, runtime, events });
    } catch (error) {
      return { ...nothing, error: unexpected(error) };
    }
  }

  /** Stops all of a pod that is this daemon's own. May be asked again at any time, after a crash as well. */
  async end({ pod, seen, graceSeconds, signal }: EndAsked): Promise<Ended> {
    const { clock, owner, node } = this.#ports;
    const { events, runtime } = this.#of(pod ?? seen, seen);
    const own = ownPartOf(seen, owner);
    const podIPs = own.sandboxes[0]?.ips ?? [];
    const stops = pod === null ? bareStops(own) : stopsOf(pod, own);
    try {
      const podIps = pod === null ? podIPs : podAddresses(pod, { hostIPs: node().hostIPs, podIPs });
      const turn = { pod, runtime, events, clock, signal, podIps };
      const errors = await stopPod(turn, stops, own.sandboxes, graceSeconds);
      if (errors.length === 0) return { isEnded: !signal.aborted, error: null };
      const error = `error killing pod: ${errors.length === 1 ? errors[0] : `[${errors.join(", ")}]`}`;
      if (!signal.aborted) events.warning("FailedKillPod", error);
      return { isEnded: false, error };
    } catch (error) {
      return { isEnded: false, error: unexpected(error) };
    }
  }

  /**
   * Removes what is left of a pod that has ended: containers, sandboxes, logs, directory. While something of it runs, or
   * is somebody else's, or cannot be removed from the runtime, its files stay.
   */
  async forget(pod: PodIdentity, seen: RuntimePod | null, signal: AbortSignal): Promise<Forgotten> {
    const { runtime } = this.#of(pod, seen);
    return forgotten(pod, forgetPod(this.#ports, { pod, seen, runtime, signal, isRecorded: true }));
  }

  /** The same of one that nobody has a record of: its directory stays where a volume holds something. */
  async forgetLost(seen: RuntimePod, signal: AbortSignal): Promise<Forgotten> {
    const { runtime } = this.#of(seen, seen);
    return forgotten(seen, forgetPod(this.#ports, { pod: seen, seen, runtime, signal, isRecorded: false }));
  }

  /** Removes the volumes of a pod that has ended, and nothing else of it. INVARIANT: asked when nothing of it runs. */
  forgetVolumes(pod: PodIdentity): Promise<Forgotten> {
    return forgotten(pod, forgetVolumes(this.#ports, pod));
  }

  /** Removes the directories that this daemon made of all pods but the known. `recorded`: those of them with records. */
  async clear(known: ReadonlySet<string>, recorded: ReadonlySet<string>): Promise<LostFound> {
    const { roots, mounter, owner } = this.#ports;
    try {
      return await sweepLost({ podsDirectory: roots.podsDirectory, owner, known, recorded }, mounter);
    } catch (error) {
      return { removed: [], stays: [{ path: roots.podsDirectory, why: goErrorText(error) }], foreign: [] };
    }
  }

  #of(pod: PodIdentity, seen: RuntimePod | null) {
    const { runtime, owner, clock, onEvent } = this.#ports;
    return {
      events: new PodEvents(pod, clock, onEvent),
      runtime: new OwnedRuntime(runtime, owner, pod.uid, seen),
    };
  }
}

const forgotten = (pod: PodIdentity, work: Promise<Forgotten>): Promise<Forgotten> =>
  work.catch((error: unknown) => ({
    isGone: false,
    leftOvers: [{ path: `${pod.namespace}/${pod.name}`, why: unexpected(error) }],
  }));

const bareStops = (own: RuntimePod) =>
  own.containers
    .filter(({ state }) => state === "running")
    .map(({ id, name }) => ({
      containerId: id,
      name,
      message: stoppingMessage(name),
      waitsFor: [],
      preStop: null,
    }));

/** A mistake in the code ends one pod's turn, not the daemon that runs the others. */
const unexpected = (error: unknown): string => `unexpected: ${(error as Error).message}`;
