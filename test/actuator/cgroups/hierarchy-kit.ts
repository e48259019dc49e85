import type { CgroupFs } from "../../../actuator/cgroupfs/files.ts";
import { parseMounts } from "../../../actuator/cgroupfs/files.ts";
import type { Hierarchy } from "../../../actuator/cgroupfs/hierarchy.ts";
import { chooseHierarchy } from "../../../actuator/cgroupfs/open.ts";
import { SimKernel } from "./sim-kernel.ts";
import { mountinfoV1, type SimMachine, v1Rules } from "./sim-v1.ts";
import { mountinfoV2, v2Rules } from "./sim-v2.ts";

export const MACHINE: SimMachine = { cpus: "0-7", mems: "0-1" };
export const BOOT = { bootId: "boot-1", pageSize: 4096 } as const;
export const ROOT = "/nodewise-test";

export function hierarchyOver(fs: CgroupFs, mountinfo: string, mountRoot: string): Hierarchy {
  const hierarchy = chooseHierarchy(fs, parseMounts(mountinfo, mountRoot));
  if (!hierarchy.ok) throw new Error(hierarchy.error.message);
  return hierarchy.value;
}

/** A kernel in memory, and the hierarchy through which the actuator accesses it. */
export function simulated(
  version: 1 | 2,
  machine: SimMachine = MACHINE,
): { readonly kernel: SimKernel; readonly hierarchy: Hierarchy } {
  const kernel = new SimKernel(version === 1 ? v1Rules(machine) : v2Rules(machine));
  const mountinfo = version === 1 ? mountinfoV1("/sim") : mountinfoV2("/sim");
  return { kernel, hierarchy: hierarchyOver(kernel.open(ROOT), mountinfo, "/sim") };
}
