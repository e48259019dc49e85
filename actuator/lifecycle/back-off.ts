import { parseDuration } from "../../api/base/duration.ts";
import { isObject } from "../../api/base/own.ts";
import { type BackOff, type BackOffLimits, isOver, raised, restartBackOff } from "../../api/decide/probes/back-off.ts";
import { effectiveDocument } from "../../api/profiles/effective.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { CONTAINER_HASH, type RuntimeContainer, type RuntimePod } from "../containerd/cri.ts";
import type { ContainerBackOff } from "./actions.ts";
import { latestExitedOf } from "./instances.ts";
import type { PodContainer, RunnablePod } from "./pod.ts";
import type { PodRecord } from "./record.ts";

/** The limits of a KubeletConfiguration, as a file or /configz has it. */
export function backOffLimits(profile: Profile, configuration: unknown): BackOffLimits {
  const { crashLoopBackOff, featureGates } = effectiveDocument(profile, configuration);
  const named = isObject(featureGates) ? (featureGates as Readonly<Record<string, boolean>>) : {};
  const period = parseDuration(String(crashLoopBackOff?.maxContainerRestartPeriod));
  return restartBackOff(profile, named, period.ok ? period.value.millis : undefined);
}

type HashOf = (container: PodContainer) => string;
interface BackOffOptions {
  readonly nowMs: number;
  readonly backOff: PodRecord["backOff"];
  readonly hashOf: HashOf;
  readonly limits: BackOffLimits;
}

/**
 * The time until which a container may not be started again; null: it may start now. It counts from the end of the newest dead
 * instance; an instance of another definition does not count. An end in the future means that the clock was set back, and
 * does not count either. kubelet 1.36: doBackOff, flowcontrol.Backoff.IsInBackOffSince.
 */
export function inBackOff(
  container: PodContainer,
  runtimePod: RuntimePod,
  { nowMs, backOff, hashOf, limits }: BackOffOptions,
): ContainerBackOff | null {
  const dead = latestExitedOf(runtimePod, container.name);
  const entry = backOff[container.name];
  if (dead === undefined || entry === undefined || isChanged(container, dead, hashOf)) return null;
  const finishedAtMs = dead.finishedAtMs ?? 0;
  if (finishedAtMs > nowMs || isOver(entry, finishedAtMs, limits)) return null;
  const untilMs = finishedAtMs + entry.delayMs;
  return nowMs < untilMs ? { name: container.name, untilMs, delayMs: entry.delayMs } : null;
}

/**
 * The back-offs to record before containers of these names are started; `runtimePod` is what the actions were computed from.
 * Nothing changes for one that never ended.
 */
export function backOffOfStarts(
  pod: RunnablePod,
  runtimePod: RuntimePod | null,
  names: readonly string[],
  { nowMs, backOff, hashOf, limits }: BackOffOptions,
): PodRecord["backOff"] {
  const next: Record<string, BackOff> = { ...backOff };
  if (runtimePod === null) return next;
  for (const container of [...pod.spec.initContainers, ...pod.spec.containers]) {
    const dead = names.includes(container.name) ? latestExitedOf(runtimePod, container.name) : undefined;
    if (dead === undefined) continue;
    const known = isChanged(container, dead, hashOf) ? undefined : backOff[container.name];
    next[container.name] = raised(known, dead.finishedAtMs ?? 0, { nowMs, limits });
  }
  return next;
}

/**
 * Whether an instance was made from another definition than the current one. An instance without a hash counts as
 * unchanged.
 */
export function isChanged(container: PodContainer, instance: RuntimeContainer, hashOf: HashOf): boolean {
  const hash = instance.annotations[CONTAINER_HASH];
  return hash !== undefined && hash !== hashOf(container);
}

/** `name_namespace(uid)`, as the kubelet's messages name a pod. kubelet 1.36: format.Pod. */
export const podWords = ({ namespace, name, uid }: RunnablePod): string => `${name}_${namespace}(${uid})`;

/** Message of the waiting reason CrashLoopBackOff. */
export const backOffMessage = (pod: RunnablePod, { name, delayMs }: ContainerBackOff): string =>
  `back-off ${goSeconds(delayMs / 1000)} restarting failed container=${name} pod=${podWords(pod)}`;

/** Message of the event BackOff, a warning. */
export const backOffEventMessage = (pod: RunnablePod, container: string): string =>
  `Back-off restarting failed container ${container} in pod ${podWords(pod)}`;

/** A duration of whole seconds, below an hour, as Go writes it. */
const goSeconds = (seconds: number): string =>
  seconds < 60 ? `${seconds}s` : `${Math.trunc(seconds / 60)}m${seconds % 60}s`;
