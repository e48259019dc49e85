import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import { usageV1 } from "./cgroup-usage-v1.ts";
import { usageV2 } from "./cgroup-usage-v2.ts";
import type { CgroupText } from "./counters.ts";
import type { CgroupLook, CgroupUsage } from "./usage.ts";

/**
 * Reads what each cgroup uses, by its path. Blocks for about 60 microseconds a cgroup; changes nothing, never throws: what
 * cannot be read is null, all of it where the cgroup is gone.
 */
export function readUsages(hierarchy: Hierarchy, looks: readonly CgroupLook[]): ReadonlyMap<string, CgroupUsage> {
  const usageOf = hierarchy.version === 1 ? usageV1 : usageV2;
  const absent = new Set<string>();
  return new Map(looks.map(({ path, level }) => [path, usageOf(level, textOf(hierarchy, path, absent))]));
}

/**
 * `absent`: files that a living cgroup was seen without. Where one lacks them the kernel does, and failing to open a file
 * costs more than reading it.
 */
function textOf(hierarchy: Hierarchy, path: string, absent: Set<string>): CgroupText {
  let isThere = false;
  const read = (file: string): string | null => {
    const text = hierarchy.read(path, file);
    isThere ||= text.ok;
    return text.ok ? text.value : null;
  };
  const readOptional = (file: string): string | null => {
    if (!isThere || absent.has(file)) return null;
    const text = read(file);
    if (text === null) absent.add(file);
    return text;
  };
  return { read, readOptional };
}
