import type { Notices } from "./notices.ts";
import type { Pace } from "./pace.ts";
import type { OpenMetrics } from "./status/open-metrics.ts";

/** What the turns of a daemon have from who started it. */
export interface Turns {
  readonly pace: Pace;
  readonly notices: Notices;
  readonly metrics: OpenMetrics;
}
