import arm64OneSocket from "../../machines/arm64-1s.json" with { type: "json" };
import arm64TwoSockets from "../../machines/arm64-2s.json" with { type: "json" };
import desktopHybrid from "../../machines/desktop-hybrid.json" with { type: "json" };
import epycNps1 from "../../machines/epyc-2s-nps1.json" with { type: "json" };
import epycNps4 from "../../machines/epyc-2s-nps4.json" with { type: "json" };
import epycUncore from "../../machines/epyc-uncore-split.json" with { type: "json" };
import { expandLayout, type MachineLayout } from "../../machines/layout.ts";
import vmSmall from "../../machines/vm-small.json" with { type: "json" };
import xeon from "../../machines/xeon-2s.json" with { type: "json" };
import xeonSnc2 from "../../machines/xeon-2s-snc2.json" with { type: "json" };
import type { Machine } from "../../model/machine.ts";

/** The machines of `nodewise machines`, as a platform without a disk has them. */
const LAYOUTS: Readonly<Record<string, MachineLayout>> = {
  "arm64-1s": arm64OneSocket,
  "arm64-2s": arm64TwoSockets,
  "desktop-hybrid": desktopHybrid,
  "epyc-2s-nps1": epycNps1,
  "epyc-2s-nps4": epycNps4,
  "epyc-uncore-split": epycUncore,
  "vm-small": vmSmall,
  "xeon-2s": xeon,
  "xeon-2s-snc2": xeonSnc2,
};
export const MACHINES: readonly { readonly name: string; readonly description: string }[] = Object.entries(LAYOUTS).map(
  ([name, { description }]) => ({ name, description }),
);

/** Undefined for a name that is not in the library. */
export const machineNamed = (name: string): Machine | undefined => {
  const layout = Object.hasOwn(LAYOUTS, name) ? LAYOUTS[name] : undefined;
  return layout === undefined ? undefined : expandLayout(layout);
};
