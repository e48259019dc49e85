import { curveWeight, linearWeight } from "../../../api/decide/resources/cpu-convert.ts";
import type { CgroupPlan, CgroupsDecision } from "../../../api/model/cgroups.ts";

/** 2^62, as the kubelet writes "no limit" for huge pages. */
const NO_PAGES = "4611686018427387904";
type Read = (path: string, file: string) => string;

/**
 * Every file in the kernel whose content differs from the decided value, except where a runtime's own formula explains
 * the difference.
 */
export function differences({ cgroups }: CgroupsDecision, read: Read): readonly string[] {
  const there = cgroups.filter(({ level, containerId }) => level !== "container" || containerId !== null);
  return there.flatMap((plan) =>
    plan.files.flatMap(({ path: file, value }) => {
      const actual = read(plan.path, file);
      return isAs(plan, file, value, actual) ? [] : [`${plan.path} ${file}: wanted ${value}, found ${actual}`];
    }),
  );
}

function isAs({ level, values }: CgroupPlan, file: string, wanted: string, actual: string): boolean {
  if (wanted === actual) return true;
  if (file.startsWith("hugetlb.")) return wanted === NO_PAGES && actual === "max";
  if (file !== "cpu.weight" || level !== "container" || values.cpuShares === undefined) return false;
  return [linearWeight(values.cpuShares), curveWeight(values.cpuShares)].map(String).includes(actual);
}
