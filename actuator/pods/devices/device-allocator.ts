import { err, ok, type Result } from "../../../api/base/result.ts";
import { idsOf, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { AnsweredRequest, PreferredAllocationRequest } from "../../../api/decide/devices/preferred.ts";
import type { DevicePlugin } from "../../../api/model/machine.ts";
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
  message: "the pod's turn was interrupted",
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

/** Each answer may lead to new questions; after this many rounds the natural order of ids decides. */
const MAX_ROUNDS = 3;
/** The maximum number of pods; the oldest are dropped. */
const MAX_PODS = 1024;
/** The maximum number of answers for one resource in a snapshot. */
const MAX_ANSWERS = 1024;

/** The questions about a pod for one admission. */
interface PodRequests {
  rounds: number;
  open: number;
  /** True: questions were asked since the last decision; otherwise the next try starts over. */
  isAsked: boolean;
  /** The answers by question; null: the question is open. */
  readonly answers: Map<string, AnsweredRequest | null>;
}
const keyOf = (q: PreferredAllocationRequest): string =>
  JSON.stringify([q.resource, q.size, q.available, q.mustInclude]);

/**
 * Plugins' preferences, asked in the background and kept until the pod is admitted. kubelet 1.36:
 * callGetPreferredAllocationIfAvailable.
 */
export class PreferredAllocationRequests {
  readonly #host: Pick<DevicePluginHost, "preferred">;
  readonly #pods = new Map<string, PodRequests>();
  readonly #failed = new Set<string>();
  /** Called when all open questions about a pod are answered. */
  readonly #onAnswered: () => void;

  constructor(host: Pick<DevicePluginHost, "preferred">, onAnswered: () => void) {
    this.#host = host;
    this.#onAnswered = onAnswered;
  }

  /** Asks each question once per try. False: nothing is open, and nothing new is asked. */
  ask(podUid: string, questions: readonly PreferredAllocationRequest[]): boolean {
    const pod = this.#pods.get(podUid) ?? { rounds: 0, open: 0, isAsked: false, answers: new Map() };
    this.#pods.set(podUid, pod);
    if (this.#pods.size > MAX_PODS) this.#pods.delete([...this.#pods.keys()][0] as string);
    const fresh = questions.filter((question) => !pod.answers.has(keyOf(question)));
    if (fresh.length > 0 && pod.rounds < MAX_ROUNDS) {
      pod.rounds++;
      for (const question of fresh) void this.#put(pod, question);
    }
    pod.isAsked = pod.open > 0;
    return pod.isAsked;
  }

  forget(podUid: string): void {
    this.#pods.delete(podUid);
    this.#failed.delete(podUid);
  }
  /** Whether the last question about the pod failed. */
  hasFailed(podUid: string): boolean {
    return this.#failed.has(podUid);
  }

  /** `devicePlugins` of a snapshot, with the answers about the pod. */
  withPreferred(plugins: readonly DevicePlugin[], podUid: string | undefined): readonly DevicePlugin[] {
    const pod = podUid === undefined ? undefined : this.#pods.get(podUid);
    if (podUid !== undefined && pod === undefined) this.#failed.delete(podUid);
    if (podUid === undefined || pod === undefined) return plugins;
    // a new try asks again: other devices may be free by now, and a failed call may succeed
    if (!pod.isAsked && pod.open === 0) this.#pods.delete(podUid);
    const answers = pod.isAsked ? [...pod.answers.values()].filter((answer) => answer !== null) : [];
    pod.isAsked = false;
    if (answers.some(({ error }) => error !== undefined)) this.#failed.add(podUid);
    else this.#failed.delete(podUid);
    if (this.#failed.size > MAX_PODS) this.#failed.delete([...this.#failed][0] as string);
    if (answers.length === 0) return plugins;
    return plugins.map((plugin) => {
      const its = answers.filter(({ resource }) => resource === plugin.resource).slice(0, MAX_ANSWERS);
      return its.length === 0 ? plugin : { ...plugin, preferred: its.map(preferredOf) };
    });
  }

  async #put(pod: PodRequests, question: PreferredAllocationRequest): Promise<void> {
    const { resource, available, mustInclude, size } = question;
    const key = keyOf(question);
    if (pod.answers.has(key)) return;
    pod.answers.set(key, null);
    pod.open++;
    const answer = await this.#host.preferred(resource, { available, mustInclude, size });
    // a plugin without the option has no preference
    const said = answer.ok ? { deviceIds: answer.value ?? [] } : { error: goText(answer.error) };
    pod.answers.set(key, { ...question, ...said });
    pod.open--;
    if (pod.open === 0) this.#onAnswered();
  }
}

type Preferred = NonNullable<DevicePlugin["preferred"]>[number];
const preferredOf = ({ available, mustInclude, size, deviceIds, error }: AnsweredRequest): Preferred => ({
  available: [...available],
  mustInclude: [...mustInclude],
  size,
  ...(deviceIds === undefined ? {} : { deviceIds: [...deviceIds] }),
  ...(error === undefined ? {} : { error }),
});
