import { applyPlan } from "../../actuator/apply/apply.ts";
import { openHierarchy } from "../../actuator/cgroupfs/open.ts";
import { planFor, reopen, stopping } from "../actuator/cgroups/contract-kit.ts";
import { bigTree } from "../actuator/cgroups/contract-trees.ts";
import { BOOT } from "../actuator/cgroups/hierarchy-kit.ts";

// Applies the big tree to this machine's cgroup v1 and stops before one of its changes, where the parent process kills
// it. Arguments: the root, the journal file, and the number of changes to make before the stop.
const [root = "", journalFile = "", after = "0"] = process.argv.slice(2);
const opened = openHierarchy({ root });
if (!opened.ok) throw new Error(opened.error.message);
const hierarchy = stopping(opened.value, Number(after), () => {
  process.stdout.write("stopped\n");
  setInterval(() => undefined, 1_000_000);
  return new Promise<never>(() => undefined);
});
const plan = planFor({ hierarchy, ...BOOT }, bigTree(1));
await applyPlan({
  plan,
  hierarchy,
  journal: reopen(journalFile, BOOT.bootId),
  decisionId: "d",
  bootId: BOOT.bootId,
  dryRun: false,
});
