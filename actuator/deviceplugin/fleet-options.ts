import type { EpochMs } from "../../api/model/units.ts";
import type { PluginTimeouts } from "./endpoint.ts";
import type { IsInUse } from "./fair-share.ts";
import type { PluginFault } from "./fault.ts";

/** What the plugins that are connected are kept by, and who is told of them. */
export interface FleetOptions {
  readonly timeouts: PluginTimeouts;
  /** From the end of a stream until its resource has no devices any more. */
  readonly graceMs?: number;
  /** From the first list of a stream until it counts as one that lives. */
  readonly livesMs?: number;
  readonly isInUse: IsInUse;
  readonly now: () => EpochMs;
  readonly onChange: () => void;
  readonly onFault: (fault: PluginFault) => void;
}
