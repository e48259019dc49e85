import { type DeviceCheckpoint, idsOf, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { PluginFault } from "../../deviceplugin/fault.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { HealthFlip, PluginState } from "../../deviceplugin/plugins.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { Counters } from "../../status/counters.ts";
import type { PodClock } from "../pod-clock.ts";
import { changesBetween, withEntriesOf, withoutPending } from "./checkpoint-entries.ts";
import type { DeviceAssignments } from "./device-assignments.ts";
import { type DeviceEvent, type DeviceHistory, MAX_NAMED } from "./history.ts";
import type { DeviceFault } from "./port.ts";

interface DeviceEventRecorderDeps {
  readonly host: Pick<DevicePluginHost, "states">;
  readonly assignments: DeviceAssignments;
  readonly history: DeviceHistory;
  readonly counters: Pick<Counters, "devicePluginRegistered">;
  readonly clock: Pick<PodClock, "monotonicMs">;
}
/** The maximum number of removed pods whose names are kept. */
const MAX_NAMES = 1024;
/** The interval at which a resource's health flips are recorded together, so that they do not fill the history. */
const FLIPS_MS = 30_000;
/** The maximum number of faults of unknown plugins per sync. */
const MAX_FAULTS = 16;

/** Observes plugins and the holders of their devices, and records their changes in the history. */
export class DeviceEventRecorder {
  readonly #deps: DeviceEventRecorderDeps;
  /** Uid -> NAMESPACE/NAME. */
  readonly #names = new Map<string, string>();
  /** Uid -> the message of its last refusal, and how often in a row it occurred. */
  readonly #refused = new Map<string, { readonly message: string; readonly times: number }>();
  readonly #faults: DeviceEvent[] = [];
  /** The plugins as last recorded. */
  #plugins: PluginsSeen = new Map();
  /** Resource -> when its flips were last recorded. */
  readonly #flipsMs = new Map<string, number>();
  #held: DeviceCheckpoint;
  #leaks: ReadonlySet<string> | null = null;

  constructor(deps: DeviceEventRecorderDeps) {
    this.#deps = deps;
    this.#held = deps.assignments.now();
  }

  /** Uids of pods that were gone when the daemon started and still hold devices. */
  get leaks(): ReadonlySet<string> {
    return this.#leaks ?? new Set();
  }

  named({ uid, namespace, name }: RunnablePod): void {
    this.#names.delete(uid);
    this.#names.set(uid, `${namespace}/${name}`);
    if (this.#names.size > MAX_NAMES) this.#names.delete([...this.#names.keys()][0] as string);
  }

  /** Called once per sync; `living`: pods that may hold devices. */
  record(living: ReadonlySet<string>): void {
    const { assignments, history } = this.#deps;
    const events = [...this.#pluginEvents(), ...this.#faults.splice(0)];
    const entries = assignments.now().entries ?? [];
    const gone = entries.filter(({ podUid }) => !living.has(podUid));
    if (this.#leaks === null) events.push(...gone.map((entry) => this.#heldEvent("leak", entry)));
    const before = this.#leaks;
    this.#leaks = new Set(gone.flatMap(({ podUid }) => (before === null || before.has(podUid) ? [podUid] : [])));
    history.add([...events, ...this.#heldEvents()]);
  }

  /** Records the changes of who holds which devices. */
  recordAllocations(): void {
    this.#deps.history.add(this.#heldEvents());
  }
  refused(pod: RunnablePod, resource: string, { reason, message }: DeviceFault): void {
    const before = this.#refused.get(pod.uid);
    const times = before?.message === message ? before.times + 1 : 1;
    this.#refused.delete(pod.uid);
    this.#refused.set(pod.uid, { message, times });
    if (this.#refused.size > MAX_NAMES) this.#refused.delete([...this.#refused.keys()][0] as string);
    const count = times === 1 ? {} : { count: times };
    const refused: DeviceEvent = { kind: "refused", resource, ...count, ...this.#podOf(pod.uid), reason, message };
    // the 1st, 2nd, 4th, 8th, ...: so that one pod does not fill the history
    const isReported = Number.isInteger(Math.log2(times));
    this.#deps.history.add([...(isReported ? [refused] : []), ...this.#heldEvents()]);
  }
  /** Records allocations restored from running containers, since the checkpoint was lost or differed. */
  restored(entries: readonly PodDevicesEntry[]): void {
    const before = this.#heldEvents();
    this.#held = withEntriesOf(this.#held, entries);
    const reason = "BookedAgain";
    const message = "from the container that runs with them";
    const events = entries.map((entry) => ({ ...this.#heldEvent("allocated", entry), reason, message }));
    this.#deps.history.add([...before, ...events]);
  }
  /** Records that the checkpoint could not be read. */
  checkpointLost(message: string): void {
    this.#deps.history.add([{ kind: "refused", resource: "", reason: "CheckpointNotRead", message }]);
  }
  /** NAMESPACE/NAME if it is known, otherwise the uid. */
  nameOf(podUid: string): string {
    return this.#names.get(podUid) ?? podUid;
  }
  /** Records a refused plugin; registrations and ends of plugins are observed by `record`. */
  registrationFailed({ resource, endpoint, call, code, message }: PluginFault): void {
    if (call !== "Register") return;
    this.#deps.counters.devicePluginRegistered(false);
    if (this.#faults.length >= MAX_FAULTS) return;
    this.#faults.push({ kind: "refused", resource, endpoint, reason: code, message });
  }

  #pluginEvents(): readonly DeviceEvent[] {
    const nowMs = this.#deps.clock.monotonicMs();
    const due = this.#deps.host.states().filter((now) => {
      const was = this.#plugins.get(now.resource);
      const isSamePlugin = was?.generation === now.generation && was.state === now.state;
      return !isSamePlugin || nowMs - (this.#flipsMs.get(now.resource) ?? Number.NEGATIVE_INFINITY) >= FLIPS_MS;
    });
    const events = pluginEvents(this.#plugins, due);
    for (const { kind, resource } of events) {
      if (kind === "flips") this.#flipsMs.set(resource, nowMs);
      if (kind === "registered") this.#deps.counters.devicePluginRegistered(true);
    }
    this.#plugins = new Map([...this.#plugins, ...due.map((state) => [state.resource, state] as const)]);
    return events;
  }
  #heldEvents(): readonly DeviceEvent[] {
    // a pod whose plugin has not answered yet may still release everything
    const now = withoutPending(this.#deps.assignments.now(), this.#held);
    if (now === this.#held) return [];
    const { allocated, givenBack } = changesBetween(this.#held, now);
    this.#held = now;
    for (const { podUid } of allocated) this.#refused.delete(podUid);
    return [
      ...givenBack.map((entry) => this.#heldEvent("given-back", entry)),
      ...allocated.map((entry) => this.#heldEvent("allocated", entry)),
    ];
  }
  #heldEvent(kind: "allocated" | "given-back" | "leak", entry: PodDevicesEntry): DeviceEvent {
    const { podUid, containerName: container, resourceName: resource } = entry;
    const ids = idsOf(entry);
    const devices = ids.slice(0, MAX_NAMED);
    return { kind, resource, count: ids.length, devices, ...this.#podOf(podUid), container };
  }
  #podOf(podUid: string): { readonly podUid: string; readonly pod?: string } {
    const pod = this.#names.get(podUid);
    return pod === undefined ? { podUid } : { podUid, pod };
  }
}

/** Resource -> its plugin at the last look. */
type PluginsSeen = ReadonlyMap<string, PluginState>;

/** Changes of the plugins since the last look, by resource; all health flips of one plugin together. */
export function pluginEvents(before: PluginsSeen, states: readonly PluginState[]): readonly DeviceEvent[] {
  return states.flatMap((now) => {
    const was = before.get(now.resource);
    return was === now
      ? []
      : [...registrationEvents(was, now), ...healthEvents(was, now), ...unregisteredEvents(was, now)];
  });
}

function registrationEvents(
  was: PluginState | undefined,
  { resource, generation, endpoint, listed, devices }: PluginState,
) {
  if (was?.generation === generation) return [];
  return [
    { kind: "registered", resource, endpoint, ...(listed ? { count: devices.length } : {}) } satisfies DeviceEvent,
  ];
}

function unregisteredEvents(was: PluginState | undefined, now: PluginState): readonly DeviceEvent[] {
  const { resource, endpoint, state, generation } = now;
  const before = was?.generation === generation ? was.state : "registered";
  const ended = { kind: "ended", resource, endpoint } as const;
  const removed = { kind: "removed", resource } as const;
  if (before === state || state === "registered") return [];
  if (state === "stopped") return [ended];
  return before === "registered" ? [ended, removed] : [removed];
}

/** Changes of health; a plugin's first list is not a change. */
function healthEvents(was: PluginState | undefined, now: PluginState): readonly DeviceEvent[] {
  if (was === undefined || was.history === now.history) return [];
  const isFirst = was.devices.length === 0 && !was.listed;
  const fresh = since(was.history, now.history).filter(({ from }) => !(isFirst && from === null));
  const unlisted = fresh.filter(({ from, to }) => from === null || to === null).length;
  const count = Math.max(now.flips - was.flips + unlisted, fresh.length);
  if (count === 0) return [];
  const named = fresh.slice(-MAX_NAMED).map(({ id, from, to }) => ({ id, from, to }));
  return [{ kind: "flips", resource: now.resource, count, flips: named }];
}

/** The flips after the last one in `before`; all of them if that one was dropped. */
function since(before: readonly HealthFlip[], now: readonly HealthFlip[]): readonly HealthFlip[] {
  const last = before.at(-1);
  return last === undefined ? now : now.slice(now.lastIndexOf(last) + 1);
}
