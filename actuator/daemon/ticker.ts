import type { Notices, Pace } from "../core/pace.ts";
import type { OpenMetrics } from "./open-metrics.ts";

/** The hooks that the starter of a daemon gives its turns. */
export interface Turns {
  readonly pace: Pace;
  readonly notices: Notices;
  readonly metrics: OpenMetrics;
}
