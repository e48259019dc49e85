import { openHierarchy } from "../../actuator/cgroupfs/open.ts";
import { machineFiles } from "../../actuator/machine/files.ts";
import { readSystem } from "../../actuator/machine/observe.ts";
import { readMemory } from "../../actuator/machine/proc-files.ts";
import { CONTRACT } from "../actuator/cgroups/contract.ts";
import { removeAll } from "../actuator/cgroups/contract-kit.ts";
import { KERNEL_CHECKS, type KernelFixture } from "./cgroup-enforcement.ts";
import { SIM_CHECK } from "./cgroup-sim-check.ts";

// Runs without a test framework, bundled into one file: does the actuator keep its contract on a real cgroup v2?
// Argument: the mount point of cgroup2 (default /sys/fs/cgroup). Prints one line per check, then the number of checks;
// exits with 1 if a check failed. Uses its own root cgroup, which is removed after every check.
const mountRoot = process.argv[2] ?? "/sys/fs/cgroup";
const root = `/nodewise-job-${process.pid}`;
const checks = [...CONTRACT, ...KERNEL_CHECKS, SIM_CHECK];

function openGround(): KernelFixture {
  const opened = openHierarchy({ mountRoot, root });
  if (!opened.ok) throw new Error(opened.error.message);
  if (opened.value.version !== 2) throw new Error(`cgroup v${opened.value.version} is mounted at ${mountRoot}, not v2`);
  const files = machineFiles("/");
  return {
    hierarchy: opened.value,
    bootId: readSystem(files).bootID ?? "",
    pageSize: readMemory(files).pageSizeBytes ?? 0,
    directory: (_, path) => `${mountRoot}${root}${path}`,
  };
}

const ground = openGround();
for (const { name, run } of checks) {
  try {
    await run(ground);
    console.log(`ok   ${name}`);
  } catch (error) {
    console.log(`FAIL ${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  } finally {
    await removeAll(ground.hierarchy);
  }
}
console.log(`${checks.length} checks ran`);
