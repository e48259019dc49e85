import { idsOf, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { Counters } from "../../status/counters.ts";
import type { PodClock } from "../pod-clock.ts";
import { entryOf, withResponse } from "./checkpoint-entries.ts";
import type { DeviceAssignments } from "./device-assignments.ts";
import { deviceRequirements } from "./device-requirements.ts";
import type { PluginSnapshot } from "./plugin-snapshot.ts";
import {
  allocateFailed,
  checkpointNotWritten,
  type DeviceFault,
  goText,
  nothingAllocated,
  WAITING_FOR_PLUGIN,
  waitingForPlugins,
} from "./port.ts";

/** The time after which a plugin's answer is reported as slow. */
const SLOW_MS = 2_000;
const REASONS = { Allocate: "AllocatingDevices", PreStartContainer: "PreparingDevices" } as const;

interface Call {
  readonly podUid: string;
  readonly resource: string;
  readonly name: keyof typeof REASONS;
  readonly sinceMs: number;
}

/** The running calls to plugins for pods. */
export class PluginCalls {
  readonly #clock: Pick<PodClock, "monotonicMs">;
  readonly #calls = new Set<Call>();

  constructor(clock: Pick<PodClock, "monotonicMs">) {
    this.#clock = clock;
  }

  async during<T>(podUid: string, resource: string, name: Call["name"], answer: Promise<T>): Promise<T> {
    const call = { podUid, resource, name, sinceMs: this.#clock.monotonicMs() };
    this.#calls.add(call);
    try {
      return await answer;
    } finally {
      this.#calls.delete(call);
    }
  }

  /** The calls that pods have waited for longer than a moment, by uid. */
  slow(): ReadonlyMap<string, DeviceFault> {
    const nowMs = this.#clock.monotonicMs();
    const slow = [...this.#calls].filter(({ sinceMs }) => nowMs - sinceMs >= SLOW_MS);
    return new Map(
      slow.map(({ podUid, resource, name }) => [
        podUid,
        { reason: REASONS[name], message: `waits for the device plugin of ${resource} to answer ${name}` },
      ]),
    );
  }
}
/** Reasons that no longer apply once the call has ended. */
export const CALL_REASONS: ReadonlySet<string> = new Set(Object.values(REASONS));

interface AllocatorDeps {
  readonly host: Pick<DevicePluginHost, "allocate">;
  readonly assignments: DeviceAssignments;
  readonly plugins: PluginSnapshot;
  readonly waitMs: number;
  readonly calls: PluginCalls;
  readonly counters: Pick<Counters, "deviceAllocated">;
  /**
   * Called for a container without devices that is about to start: they are to be allocated again. Returns the fault
   * for it.
   */
  readonly onMissing: (pod: RunnablePod, container: string, why: string) => DeviceFault;
  /** Called when devices were released after a refusal. */
  readonly onRefused: (pod: RunnablePod, resource: string, fault: DeviceFault) => void;
}
type AllocateResult = Result<null, DeviceFault>;
interface Pending {
  readonly podUid: string;
  readonly containerName: string;
  readonly resourceName: string;
}

/** Makes plugins' Allocate calls for pods. */
export class DeviceAllocator {
  readonly #deps: AllocatorDeps;
  /** Running calls: a call continues when its pod's sync is interrupted, and the next sync waits for it. */
  readonly #calls = new Map<string, Promise<AllocateResult>>();

  constructor(deps: AllocatorDeps) {
    this.#deps = deps;
  }

  /**
   * Calls Allocate for all devices of a pod without an answer, init containers first, then by resource name. An error
   * releases all of the pod's devices, unless it `keeps` them. `starting`: only these containers; absent: all. kubelet
   * 1.36: allocateContainerResources.
   */
  async prepare(pod: RunnablePod, signal: AbortSignal, starting?: ReadonlySet<string>): Promise<AllocateResult> {
    for (const [containerName, amounts] of deviceRequirements(pod)) {
      if (starting?.has(containerName) === false) continue;
      for (const resourceName of amounts.keys()) {
        const named = { podUid: pod.uid, containerName, resourceName };
        const settled = await this.#allocate(pod, named, signal);
        if (settled.ok) continue;
        if (settled.error.keeps !== true) this.#release(pod, resourceName, settled.error);
        return settled;
      }
    }
    return ok(null);
  }

  async #allocate(pod: RunnablePod, named: Pending, signal: AbortSignal): Promise<AllocateResult> {
    const { assignments, plugins, waitMs } = this.#deps;
    const { podUid, containerName, resourceName } = named;
    const entry = entryOf(assignments.now(), named);
    if (entry === undefined) {
      const noRoom = assignments.whyNotShared(named);
      if (noRoom !== undefined) return err(allocateFailed(noRoom));
      const why = nothingAllocated(podUid, containerName, resourceName);
      return err(this.#deps.onMissing(pod, containerName, why));
    }
    if (entry.allocResp !== null) return ok(null);
    if (signal.aborted) return ABORTED;
    if (plugins.isEarly && !plugins.isReady(resourceName)) return err(waitingForPlugins([resourceName], waitMs));
    const why = plugins.whyNot(resourceName, idsOf(entry));
    if (why !== undefined) return err(allocateFailed(why));
    return unlessAborted(this.#call(entry), signal);
  }

  #call(entry: PodDevicesEntry): Promise<AllocateResult> {
    const ids = idsOf(entry);
    const key = JSON.stringify([entry.podUid, entry.containerName, entry.resourceName, ids]);
    const call = this.#calls.get(key) ?? this.#ask(entry, ids).finally(() => this.#calls.delete(key));
    this.#calls.set(key, call);
    return call;
  }

  async #ask(entry: PodDevicesEntry, ids: readonly string[]): Promise<AllocateResult> {
    const { host, assignments, calls } = this.#deps;
    const { podUid, containerName, resourceName } = entry;
    const answer = await calls.during(podUid, resourceName, "Allocate", host.allocate(resourceName, ids));
    this.#deps.counters.deviceAllocated(resourceName, answer.ok);
    if (!answer.ok) return err(allocateFailed(goText(answer.error)));
    const { base64 } = answer.value;
    const noRoom = assignments.shareFault({ ...entry, allocResp: base64 });
    if (noRoom !== undefined) return err(allocateFailed(noRoom));
    const kept = assignments.edit((now) => withResponse(now, entry, base64));
    if (!kept.ok) return err(checkpointNotWritten(kept.error));
    // otherwise the pod's devices were released meanwhile, or replaced
    if (kept.value) return ok(null);
    return err(allocateFailed(nothingAllocated(podUid, containerName, resourceName)));
  }

  #release(pod: RunnablePod, resource: string, fault: DeviceFault): void {
    // if it cannot be written, that is reported as a problem, and the next decision releases them
    this.#deps.assignments.release(pod.uid);
    this.#deps.onRefused(pod, resource, fault);
  }
}

const ABORTED: AllocateResult = err({
  reason: WAITING_FOR_PLUGIN,
  message: "the pod's turn was cut short",
  keeps: true,
});

async function unlessAborted(call: Promise<AllocateResult>, signal: AbortSignal): Promise<AllocateResult> {
  if (signal.aborted) return ABORTED;
  const aborted = Promise.withResolvers<AllocateResult>();
  const cut = (): void => aborted.resolve(ABORTED);
  signal.addEventListener("abort", cut, { once: true });
  const settled = await Promise.race([call, aborted.promise]);
  signal.removeEventListener("abort", cut);
  return settled;
}
