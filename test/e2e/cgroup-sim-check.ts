// Does the kernel in memory, on which the property tests run, behave like the real kernel? Uses only node:assert,
// because the check also runs in the virtual machine.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { draws } from "../actuator/cgroups/draws.ts";
import { SimKernel } from "../actuator/cgroups/sim-kernel.ts";
import { v1Rules } from "../actuator/cgroups/sim-v1.ts";
import { v2Rules } from "../actuator/cgroups/sim-v2.ts";
import type { KernelCheck, KernelFixture } from "./cgroup-enforcement.ts";

const WRITES = 2000;
const PATHS = ["/", "/a", "/a/b", "/a/c"];
const CPUSETS = ["0", "1", "0-1", "0,1", "", "99999", "1-0"];
// The kernel charges an empty cgroup for its records of the children: lower limits may fail with EBUSY.
const AMOUNTS = ["8388609", "16777216", "33554432", "9223372036854775807", "x"];

const FILES: Readonly<Record<1 | 2, Readonly<Record<string, readonly string[]>>>> = {
  1: {
    "cpu.shares": ["0", "2", "1024", "262145", "-1", "x"],
    "cpu.cfs_quota_us": ["-1", "0", "999", "1000", "20000", "50000", "100000", "400000", "x"],
    "cpu.cfs_period_us": ["999", "1000", "50000", "100000", "1000000", "1000001"],
    "cpuset.cpus": CPUSETS,
    "cpuset.mems": ["0", ""],
    "memory.limit_in_bytes": ["-1", ...AMOUNTS],
    "memory.memsw.limit_in_bytes": ["-1", ...AMOUNTS],
    "pids.max": ["max", "0", "5", "-1", "4194304", "4194305"],
  },
  2: {
    "cpu.weight": ["0", "1", "39", "10000", "10001", "-1", "x"],
    "cpu.max": ["max", "max 50000", "999 100000", "1000", "20000 100000", "400000 100000", "1000 999", "x"],
    "cpuset.cpus": CPUSETS,
    "memory.min": ["0", "max", ...AMOUNTS],
    "memory.low": ["0", "max", ...AMOUNTS],
    "memory.high": ["max", ...AMOUNTS],
    "memory.max": ["max", ...AMOUNTS],
    "memory.swap.max": ["0", "max", ...AMOUNTS],
    "memory.oom.group": ["0", "1", "2"],
    "pids.max": ["max", "0", "5", "-1", "4194304", "4194305"],
    "hugetlb.2MB.max": ["0", "max", "3145728", "4611686018427387904", "-1"],
  },
};

const controllerOf = (file: string): string => file.slice(0, file.indexOf("."));
const full = (root: string, path: string): string => (path === "/" ? root : root + path);

/** Creates the real hierarchy's cgroups in the simulated kernel, with the same values. */
async function mirrored({ hierarchy, directory }: KernelFixture): Promise<SimKernel> {
  const { version, root } = hierarchy;
  const { controllers } = hierarchy.support();
  const top = (file: string): string => {
    const text = hierarchy.readAbove(version === 1 ? file : `${file}.effective`);
    return text.ok ? text.value : "0";
  };
  const machine = { cpus: top("cpuset.cpus"), mems: top("cpuset.mems") };
  const kernel = new SimKernel(version === 1 ? v1Rules(machine) : v2Rules(machine));
  for (const path of PATHS) {
    const made = await hierarchy.create(path, controllers);
    assert.ok(made.ok, made.ok ? "" : made.error.message);
    for (const mount of kernel.tops.keys()) kernel.mkdir(mount, full(root, path));
    for (const file of version === 1 ? ["cpuset.cpus", "cpuset.mems"] : []) {
      kernel.write("cpuset", full(root, path), file, readFileSync(`${directory("cpuset", path)}/${file}`, "utf8"));
    }
  }
  if (version === 2) {
    for (const path of ["/", "/a"])
      kernel.write("", full(root, path), "cgroup.subtree_control", controllers.map((c) => `+${c}`).join(" "));
  }
  return kernel;
}

export const SIM_CHECK: KernelCheck = {
  name: "the kernel in memory returns the same errno for every write and keeps the same text",
  async run(ground) {
    const { hierarchy, directory } = ground;
    const { version, root } = hierarchy;
    const kernel = await mirrored(ground);
    const names = Object.keys(FILES[version]).filter((file) =>
      hierarchy.support().controllers.includes(controllerOf(file)),
    );
    const met = new Map<string, number>();
    const d = draws(7);
    for (let i = 0; i < WRITES; i++) {
      const [path, file] = [d.pick(PATHS), d.pick(names)];
      const value = d.pick(FILES[version][file] ?? []);
      const mount = version === 1 ? controllerOf(file) : "";
      const real = await hierarchy.write(path, file, value);
      const sim = kernel.write(mount, full(root, path), file, value);
      const what = `write ${i}: ${path} ${file} \`${value}\``;
      assert.equal(sim, real.ok ? null : real.error.errno, what);
      const held = readFileSync(`${directory(controllerOf(file), path)}/${file}`, "utf8").trim();
      assert.equal(kernel.find(mount, full(root, path))?.files.get(file), held, what);
      met.set(sim ?? "ok", (met.get(sim ?? "ok") ?? 0) + 1);
    }
    for (const errno of ["ok", "EINVAL", "ERANGE", ...(version === 1 ? ["EACCES", "EBUSY"] : [])]) {
      assert.ok((met.get(errno) ?? 0) >= 10, `${errno} was hardly met: ${JSON.stringify([...met])}`);
    }
  },
};
