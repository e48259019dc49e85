import { aggregateContainers } from "../../model/aggregate.ts";
import type { Pod } from "../../model/pod.ts";
import type { HintProvider, NumaNodes } from "../topology/hint.ts";
import { allocateContainer, type GivenDevices, reusableDevices } from "./allocate.ts";
import type { DeviceCheckpoint } from "./checkpoint.ts";
import { type DeviceState, deviceState } from "./device-state.ts";
import { type Inventories, isKnown } from "./inventory.ts";
import { toEntries } from "./pod-devices.ts";
import type { PreferredAllocation, PreferredQuestion } from "./preferred.ts";
import { hintsOf } from "./resource-hints.ts";
import { limitsOf, uidOf } from "./wire.ts";

export interface DeviceManagerInput {
  readonly inventories: Inventories;
  /** Undefined: the kubelet has no checkpoint, or could not read it. */
  readonly checkpoint: DeviceCheckpoint | undefined;
  readonly nodes: NumaNodes;
  /** True: every source of pods has been heard since the kubelet started. */
  readonly sourcesReady: boolean;
  /** The uids of the pods that are not finished. One that is asked about joins them, unless it is refused its devices. */
  readonly activePods: ReadonlySet<string>;
  /**
   * True: the runtime had the container running when the kubelet started, so only the kubelet restarted. After a reboot of the
   * node no container was running.
   */
  readonly runningAtStart: (podUid: string, container: string) => boolean;
  readonly prefer: PreferredAllocation;
}

export interface DeviceManager extends HintProvider {
  readonly state: DeviceState;
  readonly inventories: Inventories;
  readonly given: readonly GivenDevices[];
  /** The questions to plugins whose answers were not known; the natural order decided. */
  readonly unanswered: readonly PreferredQuestion[];
  /** The uids of the pods that were purged so far. */
  readonly purged: readonly string[];
  /**
   * Frees what pods hold that are not active any more, the asking one apart; nothing before sources are ready. The kubelet does so
   * when it is asked for hints or devices, and not else. kubelet 1.36: UpdateAllocatedDevices.
   */
  purge(asking?: Pod): void;
  /** Returns what the kubelet writes once the containers that asked have their devices. */
  checkpoint(): DeviceCheckpoint;
}

/** INVARIANT: every pod that is asked about has a uid. kubelet 1.36: devicemanager.ManagerImpl. */
export function deviceManager(input: DeviceManagerInput): DeviceManager {
  const { inventories, nodes, sourcesReady } = input;
  const active = new Set(input.activePods);
  const state = deviceState(inventories, input.checkpoint);
  const reusable = reusableDevices();
  const given: GivenDevices[] = [];
  const unanswered: PreferredQuestion[] = [];
  const prefer: PreferredAllocation = (question) => {
    const answer = input.prefer(question);
    if (answer === undefined) unanswered.push(question);
    return answer;
  };
  const purged: string[] = [];
  const purge = (asking?: Pod): void => {
    const uid = asking === undefined ? undefined : uidOf(asking);
    const gone = sourcesReady ? [...state.pods.keys()].filter((pod) => pod !== uid && !active.has(pod)) : [];
    if (gone.length === 0) return;
    state.removePods(gone);
    purged.push(...gone);
  };
  return {
    state,
    inventories,
    given,
    unanswered,
    purged,
    purge,
    containerHints: (pod, container) => {
      purge(pod);
      const held = (resource: string) => state.holding(uidOf(pod), container.name, resource)?.ids;
      const left = (resource: string) => reusable.of(uidOf(pod), resource);
      return hintsOf({ state, inventories, nodes }, limitsOf(container), held, left);
    },
    podHints: (pod) => {
      purge(pod);
      const held = (resource: string) => state.podHolds(uidOf(pod), resource);
      return hintsOf({ state, inventories, nodes }, aggregateContainers(pod, "limits"), held, () => NONE);
    },
    allocate: (pod, container, affinity) => {
      reusable.begin(uidOf(pod));
      active.add(uidOf(pod));
      const result = allocateContainer({ ...input, prefer, state, reusable, purge, given }, pod, container, affinity);
      if (result.ok) reusable.settle(pod, container, state);
      else active.delete(uidOf(pod));
      return result;
    },
    checkpoint: () => ({ entries: toEntries(state.pods), registered: registeredOf(inventories) }),
  };
}
const NONE: ReadonlySet<string> = new Set();

/** The healthy devices of every resource that is known. kubelet 1.36: writeCheckpoint. */
const registeredOf = (inventories: Inventories): ReadonlyMap<string, readonly string[]> =>
  new Map([...inventories].filter(([, i]) => isKnown(i)).map(([name, i]) => [name, [...i.healthy]]));
