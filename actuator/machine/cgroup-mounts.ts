import { dirname } from "node:path";
import type { CgroupMounts } from "./facts.ts";
import type { MachineFiles } from "./files.ts";

const MOUNTINFO = "/proc/self/mountinfo";

interface Mount {
  readonly point: string;
  readonly isWhole: boolean;
  readonly type: string;
  readonly controllers: readonly string[];
}

/**
 * Which cgroup version governs cpu and memory, from what is mounted: a v1 hierarchy of either makes it 1, also beside a
 * cgroup2 mount (hybrid); 2 needs a cgroup2 mount whose root has both controllers.
 */
export function readCgroupMounts(files: MachineFiles): CgroupMounts {
  const lines = (files.text(MOUNTINFO) ?? "").split("\n");
  // a node has a few of these among the many mounts of its containers
  const mounts = lines.filter((line) => line.includes(" - cgroup")).flatMap((line) => parseMount(line) ?? []);
  const v1 = mounts.filter((m) => m.type === "cgroup");
  const carrying = (controller: string): Mount | undefined =>
    preferred(v1.filter((m) => m.controllers.includes(controller)));
  const legacy = carrying("memory") ?? carrying("cpu");
  if (legacy !== undefined) {
    const memory = carrying("memory")?.point;
    return { version: 1, root: dirname(legacy.point), memory, hugetlb: carrying("hugetlb") !== undefined };
  }
  const unified = preferred(mounts.filter((m) => m.type === "cgroup2"));
  if (unified === undefined) return none(files, "mounts neither a cgroup cpu or memory hierarchy nor cgroup2");
  const controllers = (files.text(`${unified.point}/cgroup.controllers`) ?? "").split(/\s+/);
  if (!controllers.includes("cpu") || !controllers.includes("memory")) {
    return none(files, `cgroup2 at ${unified.point} carries no cpu and memory controller`);
  }
  return { version: 2, root: unified.point, memory: unified.point, hugetlb: controllers.includes("hugetlb") };
}

function none(files: MachineFiles, why: string): CgroupMounts {
  files.note(MOUNTINFO, why);
  return { version: undefined, root: undefined, memory: undefined, hugetlb: false };
}

/** A bind mount of one group shows less than the hierarchy does. */
const preferred = (mounts: readonly Mount[]): Mount | undefined => mounts.find((m) => m.isWhole) ?? mounts[0];

/** A line of proc_pid_mountinfo(5): optional fields end at ` - `, blanks in paths are octal escapes. */
function parseMount(line: string): Mount | undefined {
  const [left, right] = line.split(" - ");
  const [, , , root, point] = left?.split(" ") ?? [];
  const [type, , options] = right?.split(" ") ?? [];
  if (root === undefined || point === undefined || type === undefined) return undefined;
  return { point: withoutEscapes(point), isWhole: root === "/", type, controllers: options?.split(",") ?? [] };
}
const withoutEscapes = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
