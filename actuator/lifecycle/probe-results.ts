import type { ProbeType, StoredResult } from "../../api/model/probe.ts";

/** What stands of a container by its id, for one type of probe; undefined: nothing yet, or it has no such probe. */
export type ProbeResults = (containerId: string, type: ProbeType) => StoredResult | undefined;

/** What the probes of one pod say of a container that runs and has such a probe. */
export interface PodSays {
  isStarted(container: string, id: string): boolean;
  isReady(container: string, id: string): boolean;
}

/** Nobody probes. */
export const NO_RESULTS: ProbeResults = () => undefined;
export const SAYS_NOTHING: PodSays = { isStarted: () => false, isReady: () => false };
