export interface DevicePluginsFigure {
  readonly name: string;
  /** CPU time of the event loop's thread, including its garbage collection, as a fraction of one core. */
  readonly loopShare: number;
  readonly aimShare: number;
  /** CPU time of all threads of the process, as a fraction of one core. */
  readonly processShare: number;
  readonly flipsPerSecond: number;
  readonly listsPerSecond: number;
  /** Growth of resident memory during the measurement. */
  readonly rssGrowthBytes: number;
  /**
   * Growth of used memory during the measurement: for the host after a garbage collection, for the daemon what the
   * kernel accounts to it.
   */
  readonly heldGrowthBytes: number;
  /** Time from the last flip until the host or the daemon reports it. */
  readonly behindMs: number;
}
/** One plugin has many devices, all others have few. */
export const PLUGINS = 64;
export const DEVICES = 4096;
export const DEVICES_OF_OTHERS = 64;
export const FLIPS_PER_SECOND = 1000;
export const AIM_SHARE = 0.1;
