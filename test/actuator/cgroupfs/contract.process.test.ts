import { existsSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import type { Hierarchy } from "../../../actuator/cgroupfs/hierarchy.ts";
import { openHierarchy } from "../../../actuator/cgroupfs/open.ts";
import { CONTRACT } from "../cgroups/contract.ts";
import { removeAll } from "../cgroups/contract-kit.ts";
import { BOOT, hierarchyOver, ROOT, simulated } from "../cgroups/hierarchy-kit.ts";
import { tempTree } from "../cgroups/temp-tree.ts";

interface Opened {
  readonly hierarchy: Hierarchy;
  close(): Promise<void> | void;
}

const OWN_ROOT = `/nodewise-contract-${process.pid}`;

function overTemp(version: 1 | 2): Opened {
  const tree = tempTree(version, ROOT);
  return { hierarchy: hierarchyOver(tree.fs, tree.mountinfo, tree.mountRoot), close: tree.remove };
}

function overKernel(): Opened {
  const opened = openHierarchy({ root: OWN_ROOT });
  if (!opened.ok) throw new Error(opened.error.message);
  return { hierarchy: opened.value, close: () => removeAll(opened.value) };
}

const hasKernelV1 = existsSync("/sys/fs/cgroup/cpu/cpu.shares") && process.getuid?.() === 0;
if (!hasKernelV1)
  console.warn("skipped the contract over the kernel's cgroup v1: it is not mounted here, or this is not root");

const GROUNDS: Readonly<Record<string, () => Opened>> = {
  "plain directories in v1 form": () => overTemp(1),
  "plain directories in v2 form": () => overTemp(2),
  "the v1 kernel in memory": () => ({ ...simulated(1), close: () => undefined }),
  "the v2 kernel in memory": () => ({ ...simulated(2), close: () => undefined }),
  ...(hasKernelV1 ? { "this machine's cgroup v1": overKernel } : {}),
};

/** Allows for a loaded machine; an idle one needs one second for all checks. */
const TIMEOUT_MS = 180_000;

describe.each(Object.entries(GROUNDS))("a hierarchy over %s", { timeout: TIMEOUT_MS }, (_name, open) => {
  let opened: Opened | null = null;
  afterEach(async () => {
    await opened?.close();
    opened = null;
  });

  test.each(CONTRACT.map((check) => [check.name, check] as const))("%s", async (_check, { run }) => {
    opened = open();
    await run({ hierarchy: opened.hierarchy, ...BOOT });
  });
});

test("the contract has test cases", () => expect(CONTRACT.length).toBeGreaterThan(8));
