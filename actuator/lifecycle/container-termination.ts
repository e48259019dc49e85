import type { ProbeSpec } from "../../api/model/probe-spec.ts";
import type { RuntimeContainer, RuntimePod } from "../containerd/cri.ts";
import type { PodContainer, RunnablePod } from "./pod.ts";
import type { PodEnd } from "./record.ts";

/** The minimum time in seconds between the stop signal and the kill. */
const MIN_SECONDS = 2;

/**
 * A container of a pod that is being killed. All containers are stopped in parallel, each after the containers that
 * it waits for.
 */
export interface StopContainer {
  readonly containerId: string;
  readonly name: string;
  /** Message of the event `Killing`. */
  readonly message: string;
  /** Names of running containers that end first; this container waits for them at most for its own grace period. */
  readonly waitsFor: readonly string[];
  /** The preStop hook; null: the pod no longer has the container, or it has no hook. */
  readonly preStop: PodContainer["preStop"];
}

/**
 * The running containers of a pod in the order in which they may end: sidecars after the regular containers, the last sidecar
 * first. A sidecar waits only for the one right after it; if that one does not run, for no later one.
 * kubelet 1.36: killContainersWithSyncResult, newTerminationOrdering.
 */
export function containersToKill(pod: RunnablePod, runtimePod: RuntimePod): readonly StopContainer[] {
  const running = runtimePod.containers.filter((c) => c.state === "running");
  const runs = new Set(running.map((c) => c.name));
  const sidecars = pod.spec.initContainers.filter((c) => c.isSidecar);
  const own = pod.spec.containers.map((c) => c.name);
  const waitsFor = (name: string): readonly string[] => {
    const place = sidecars.findIndex((c) => c.name === name);
    if (place < 0) return [];
    const behind = sidecars[place + 1];
    return [...own, ...(behind === undefined ? [] : [behind.name])].filter((n) => runs.has(n));
  };
  /** Containers with a higher rank end earlier; containers that are not sidecars end first. */
  const rank = ({ name }: StopContainer): number => {
    const place = sidecars.findIndex((c) => c.name === name);
    return place < 0 ? sidecars.length : place;
  };
  return running.map((c) => stopOf(pod, c, waitsFor(c.name))).sort((a, b) => rank(b) - rank(a));
}

function stopOf(pod: RunnablePod, { id, name }: RuntimeContainer, waitsFor: readonly string[]): StopContainer {
  const container = [...pod.spec.initContainers, ...pod.spec.containers].find((c) => c.name === name);
  return { containerId: id, name, message: stoppingMessage(name), waitsFor, preStop: container?.preStop ?? null };
}

export const stoppingMessage = (container: string): string => `Stopping container ${container}`;

/**
 * Seconds from the beginning of a container's end (its preStop hook) to its kill. Of the grace periods of a deletion and of
 * an ordered end, the shorter one counts; at least 1. kubelet 1.36: calculateEffectiveGracePeriod.
 */
export function effectiveGracePeriod(pod: RunnablePod, end: PodEnd | null): number {
  const asked = [pod.deletion?.graceSeconds, end?.graceSeconds].filter((s) => s !== undefined && s !== null);
  return Math.max(1, asked.length === 0 ? pod.spec.terminationGracePeriodSeconds : Math.min(...asked));
}

/**
 * The grace period in seconds of a container that is killed to be restarted: that of a deletion, of the failed probe, or of the
 * pod. kubelet 1.36: setTerminationGracePeriod.
 */
export const restartGracePeriod = (pod: RunnablePod, failed: ProbeSpec | null = null): number =>
  pod.deletion?.graceSeconds ?? failed?.terminationGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds;

/**
 * Seconds that are left for the runtime's stop after the preStop hook and the wait for other containers, each counted in
 * whole elapsed seconds. The hook and the wait happen only while time is left. kubelet 1.36:
 * killContainer.
 */
export function remainingGracePeriod(graceSeconds: number, hookMs: number, waitedMs: number): number {
  return Math.max(MIN_SECONDS, graceSeconds - Math.trunc(hookMs / 1000) - Math.trunc(waitedMs / 1000));
}
