import type { CgroupLevel, CgroupPlan, CgroupsDecision, CgroupValues } from "../../../api/model/cgroups.ts";

/** One cgroup of a decision; the level follows from the depth and the name of its path. */
export function cgroup(path: string, files: Readonly<Record<string, string>>, values: CgroupValues = {}): CgroupPlan {
  const level = levelOf(path);
  const pod = level === "pod" || level === "container" ? { namespace: "default", name: "p", uid: "1" } : null;
  return {
    path,
    level,
    pod,
    container: level === "container" ? path.slice(path.lastIndexOf("/") + 1) : null,
    containerId: null,
    values,
    files: Object.entries(files).map(([file, value]) => ({ path: file, value })),
  };
}

function levelOf(path: string): CgroupLevel {
  const parts = path.split("/").slice(1);
  const last = parts.at(-1) ?? "";
  if (parts.length === 1) return "node";
  if (last === "burstable" || last === "besteffort") return "qos";
  return last.startsWith("pod") ? "pod" : "container";
}

export const decide = (
  version: 1 | 2,
  cgroups: readonly CgroupPlan[],
  driver: "cgroupfs" | "systemd" = "cgroupfs",
): CgroupsDecision => ({ version, driver, cgroups });
