import type { ProbeType, StoredResult } from "../../api/model/probe-spec.ts";

/** The result of one type of probe for a container id; undefined: none yet, or it has no such probe. */
export type ProbeResults = (containerId: string, type: ProbeType) => StoredResult | undefined;

/** Results of a pod's probes for a running container that has such a probe. */
export interface PodProbeResults {
  isStarted(container: string, id: string): boolean;
  isReady(container: string, id: string): boolean;
}

/** The results if nothing is probed. */
export const NO_RESULTS: ProbeResults = () => undefined;
export const NO_POD_RESULTS: PodProbeResults = { isStarted: () => false, isReady: () => false };

/** Actions that a pod needs now, in the kubelet's order: kill, create a sandbox, start. kubelet 1.36: podActions. */
export interface PodActions {
  /** Everything of it is stopped first, its sandbox too. */
  readonly killPod: boolean;
  readonly createSandbox: boolean;
  /** The one to start containers in; null: it is yet to be made. */
  readonly sandboxId: string | null;
  /** Attempt of the sandbox to be created. */
  readonly attempt: number;
  /** Init containers to start, in order. */
  readonly initToStart: readonly StartContainer[];
  readonly toStart: readonly StartContainer[];
  readonly toKill: readonly KillContainer[];
  /** Ids of dead instances that are no longer needed. */
  readonly toRemove: readonly string[];
  /** Containers that would start if their back-off had passed. */
  readonly heldBack: readonly ContainerBackOff[];
}
export interface StartContainer {
  readonly name: string;
  /** The instance's restart count. */
  readonly attempt: number;
}
export interface KillContainer {
  readonly containerId: string;
  readonly name: string;
  /** Message of the event `Killing`. */
  readonly message: string;
  /** The failed probe, whose own grace period applies; absent: no probe failed. */
  readonly probe?: "liveness" | "startup";
}
export interface ContainerBackOff {
  readonly name: string;
  readonly untilMs: number;
  readonly delayMs: number;
}
