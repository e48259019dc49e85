import { NO_RESULTS, type PodSays, type ProbeResults, SAYS_NOTHING } from "../lifecycle/probe-results.ts";
import type { PodStatus } from "../lifecycle/status/status.ts";
import type { KnownPod } from "./pod-set.ts";

/** What probes say, as whoever keeps pods sees it. */
export interface PodProbes {
  readonly resultOf: ProbeResults;
  saysOf(podUid: string): PodSays;
  /** Grows with each change of what stands of a pod's containers. */
  versionOf(podUid: string): number;
  /** Once a turn: the pods that are on the node. `statusOf`: asked of those that have probes. */
  look(pods: readonly KnownPod[], statusOf: (known: KnownPod) => PodStatus): void;
}
export const NOT_PROBED: PodProbes = {
  resultOf: NO_RESULTS,
  saysOf: () => SAYS_NOTHING,
  versionOf: () => 0,
  look() {},
};
