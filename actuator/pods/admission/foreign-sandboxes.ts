import { join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { Problem } from "../../core/interfaces.ts";
import {
  FOREIGN_SANDBOX,
  type ForeignSandbox,
  foreignSandboxReason,
  sandboxText,
} from "../../lifecycle/foreign-sandbox.ts";
import { mayRun } from "../../lifecycle/instances.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { machineFiles } from "../../machine/files.ts";
import { checkpointOf, DEVICE_CHECKPOINT } from "../devices/checkpoint-entries.ts";
import { requiredResources } from "../devices/device-requirements.ts";
import type { PodClock } from "../pod-clock.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { PodEventRecorder } from "../records/records.ts";

interface TakenName {
  readonly why: string;
  /** When the foreign sandbox was last seen. */
  readonly seenMs: number;
}
/**
 * How long to wait after a foreign sandbox ends, in case it is started again: a kubelet does that within two seconds.
 */
const SETTLE_MS = 5000;
const SETTLES = `it ran in another program's sandbox, which is gone: it is admitted unless it is started there again within ${SETTLE_MS / 1000} s`;

interface Deps {
  readonly clock: PodClock;
  readonly eventsOf: PodEventRecorder;
}

/** Finds pods of this daemon that also run, or would run, in another process's sandbox, and blocks them. */
export class ForeignSandboxes {
  readonly #deps: Deps;
  readonly #set: PodSet;
  /** The blocked pods by uid, as last observed. */
  #holds: ReadonlyMap<string, TakenName> = new Map();

  constructor(deps: Deps, set: PodSet) {
    this.#deps = deps;
    this.#set = set;
  }

  /** Why nothing of the pod may be started; null: it may be. */
  whyHeld(uid: string): string | null {
    const hold = this.#holds.get(uid);
    return hold === undefined || this.#deps.clock.monotonicMs() - hold.seenMs >= SETTLE_MS ? null : hold.why;
  }

  /**
   * Current problems, with an event when one begins; called before pending pods are admitted. Nothing that runs is ended
   * because of them.
   */
  observe(): readonly Problem[] {
    const { foreign } = this.#set;
    const nowMs = this.#deps.clock.monotonicMs();
    const holds = new Map<string, TakenName>();
    const held: string[] = [];
    const twice: string[] = [];
    for (const known of this.#set.all()) {
      const { uid, pod, record } = known;
      const before = this.#holds.get(uid);
      const why = record.state === "terminated" ? null : foreignSandboxReason(pod, foreign);
      const hold = why === null ? leftOf(known, before, nowMs) : { why, seenMs: nowMs };
      if (hold === null) continue;
      holds.set(uid, hold);
      if (why !== null && before === undefined) this.#deps.eventsOf(pod).warning(FOREIGN_SANDBOX, why);
      const name = `${pod.namespace}/${pod.name}`;
      const runs = record.state !== "pending" && known.runtimePod !== null && mayRun(known.runtimePod);
      if (runs && why !== null) twice.push(`${name} runs twice: ${why}`);
      else if (!runs && nowMs - hold.seenMs < SETTLE_MS) held.push(name);
    }
    this.#holds = holds;
    return [...twice, ...(held.length === 0 ? [] : [joinedNames(held)])].map((message) => ({ from: "pods", message }));
  }
}

/** Joins the names; each contains its sandbox. */
function joinedNames(names: readonly string[]): string {
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
  const named = names.slice(0, MAX_NAMED).join(", ");
  return `held, since sandboxes that this daemon did not make run pods of these names: ${named}${more}: see \`nodewise takeover\``;
}
const MAX_NAMED = 5;

/** The remaining hold on the name of a pod that now runs nowhere else; null: none. The previous daemon may have seen the other sandbox. */
function leftOf({ record }: KnownPod, before: TakenName | undefined, nowMs: number): TakenName | null {
  const wasRefused = record.refusal?.reason === FOREIGN_SANDBOX;
  if (before === undefined) return wasRefused ? { why: SETTLES, seenMs: nowMs } : null;
  return wasRefused || nowMs - before.seenMs < SETTLE_MS ? { why: SETTLES, seenMs: before.seenMs } : null;
}

/** Reason of a pod that requests devices of which a kubelet's running pods hold some. */
export const DEVICES_HELD = "DevicesHeldElsewhere";

/** A device that a kubelet assigned to a container. */
export interface KubeletDevices {
  readonly podUid: string;
  readonly resourceName: string;
}

/**
 * Devices and their holders, from the checkpoint that a kubelet left beside its plugins; empty if there is no checkpoint. Error:
 * why it cannot be read.
 */
export function kubeletsDevices(pluginsDirectory: string): Result<readonly KubeletDevices[], string> {
  const path = join(pluginsDirectory, DEVICE_CHECKPOINT);
  const files = machineFiles("/");
  const text = files.optionalText(path);
  const [unread] = files.missing;
  if (unread !== undefined) return err(`${unread.path}: ${unread.why}`);
  if (text === undefined) return ok([]);
  const read = checkpointOf(text);
  return read.ok ? ok(read.value.entries ?? []) : err(`${path}: ${read.error.message}`);
}

/**
 * Why a pod that requests devices waits: foreign pods that still run may hold the same devices, and only their kubelet's
 * checkpoint lists them. Null: none does.
 */
export function whyDevicesHeld(
  pod: RunnablePod,
  foreign: readonly ForeignSandbox[],
  given: () => Result<readonly KubeletDevices[], string>,
): string | null {
  const required = foreign.length === 0 ? [] : requiredResources(pod);
  if (required.length === 0) return null;
  const read = given();
  if (!read.ok)
    return `waits for ${required.join(", ")}: what a kubelet's pods hold that still run is not known (${read.error}): end them, then delete it`;
  for (const { podUid, resourceName } of read.value) {
    const holder = required.includes(resourceName) ? foreign.find(({ uid }) => uid === podUid) : undefined;
    if (holder === undefined) continue;
    const name = `${holder.namespace}/${holder.name}`;
    return `waits for ${resourceName}: a kubelet gave devices of it to ${name}, which runs in ${sandboxText(holder)}: see \`nodewise takeover\``;
  }
  return null;
}
