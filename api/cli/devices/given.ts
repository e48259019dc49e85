import type { Form } from "../output.ts";
import type { SourceGiven } from "../pods/given.ts";

export interface DevicesGiven extends SourceGiven {
  /** Seconds; absent: once. */
  readonly watch?: number;
  readonly output: Form;
}
export interface DeviceHistoryGiven {
  readonly stateDir?: string;
  readonly resource?: string;
  readonly limit: number;
  readonly output: Form;
}
/** Where device plugins are, and what is kept of who has which device. */
interface PlaceGiven {
  readonly stateDir?: string;
  readonly cgroupRoot?: string;
  readonly output: Form;
}
export interface AllocateGiven extends PlaceGiven {
  readonly pod: string;
  /** Seconds. */
  readonly wait: number;
  readonly devicePluginsDirectory?: string;
  readonly pluginsRegistryDirectory?: string;
  readonly kubeletConfig?: string;
  readonly nodeName?: string;
  readonly api?: string;
  readonly apiTokenFile?: string;
}
export type FreeGiven = PlaceGiven;
