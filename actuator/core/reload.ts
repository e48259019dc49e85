import { isDeepStrictEqual } from "node:util";
import { type ActuatorConfig, faultsTogether, LIVE_SETTINGS, SETTINGS } from "./config.ts";

/** The result of reading the settings again. */
export interface Reloaded {
  /** In force from the next turn on. */
  readonly taken: readonly SettingChange[];
  /** They wait for the daemon's next start. */
  readonly left: readonly SettingChange[];
}
/** Undefined: it is not set. */
export interface SettingChange {
  readonly setting: keyof ActuatorConfig;
  readonly from: unknown;
  readonly to: unknown;
}

/**
 * Writes into `config`, which everything in the daemon reads at each turn, what of `next` may change while it runs.
 * INVARIANT: what is in force goes together: where it would not with what is left, nothing is taken.
 */
export function takeOver(config: ActuatorConfig, next: ActuatorConfig): Reloaded {
  const changes = SETTINGS.filter((setting) => !isDeepStrictEqual(config[setting], next[setting])).map(
    (setting): SettingChange => ({ setting, from: config[setting], to: next[setting] }),
  );
  const live = changes.filter(isLive);
  const merged = { ...config, ...Object.fromEntries(live.map(({ setting, to }) => [setting, to])) };
  const taken = faultsTogether(merged).length === 0 ? live : [];
  for (const { setting, to } of taken) Object.assign(config, { [setting]: to });
  return { taken, left: changes.filter((change) => !taken.includes(change)) };
}

const LIVE: ReadonlySet<string> = new Set(LIVE_SETTINGS);
/** Having an API or not decides what is stored for it, so it cannot change while the daemon runs. */
const isLive = ({ setting, from, to }: SettingChange): boolean =>
  LIVE.has(setting) && (setting !== "api" || (from !== undefined && to !== undefined));
