import type { ManagerSettings } from "../../../../actuator/pods/manager.ts";
import { CRASH_LOOP_BACK_OFF } from "../../../../api/decide/probes/back-off.ts";
import { v1_36 } from "../../../../api/profiles/v1_36.ts";
import { ROOT } from "../../cgroups/hierarchy-kit.ts";

/** Settings of a node with a kernel, a runtime and a clock in memory. */
export const SIM_SETTINGS: ManagerSettings = {
  nodeName: "sim",
  profile: v1_36,
  owner: ROOT,
  hostIPs: ["192.168.0.1"],
  cgroupMount: "/sim",
  cgroupRoot: ROOT,
  removeOrphans: true,
  intervalMs: 60_000,
  evictionMs: 10_000,
  retryMs: 30_000,
  backOff: CRASH_LOOP_BACK_OFF,
  maxAtOnce: 8,
};
