export interface DevicePluginsFigure {
  readonly name: string;
  /** CPU time of the thread that the event loop runs in, with its part of collecting garbage, as a part of one core. */
  readonly loopShare: number;
  readonly aimShare: number;
  /** The same of all threads of its process. */
  readonly processShare: number;
  readonly flipsPerSecond: number;
  readonly listsPerSecond: number;
  /** While it was measured. */
  readonly rssGrowthBytes: number;
  /** The same of what is in use: of the host after a collection, of the daemon what the kernel has given it. */
  readonly heldGrowthBytes: number;
  /** From the last flip until it is known. */
  readonly behindMs: number;
}
/** One with many devices, and others with few. */
export const PLUGINS = 64;
export const DEVICES = 4096;
export const DEVICES_OF_OTHERS = 64;
export const FLIPS_PER_SECOND = 1000;
export const AIM_SHARE = 0.1;
