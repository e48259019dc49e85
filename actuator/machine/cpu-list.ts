import { LIMITS } from "../../api/model/limits.ts";

/**
 * The kernel's list format (`0-3,8`): CPU numbers in rising order. `undefined` when the text is no such list or names
 * more CPUs than a snapshot may hold.
 */
export function parseCpuList(text: string): readonly number[] | undefined {
  if (text === "") return [];
  const cpus = new Set<number>();
  for (const part of text.split(",")) {
    const range = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part.trim());
    if (range === null) return undefined;
    const first = Number(range[1]);
    const last = Number(range[2] ?? range[1]);
    if (last < first || last - first >= LIMITS.cpus) return undefined;
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
    if (cpus.size > LIMITS.cpus) return undefined;
  }
  return [...cpus].sort((a, b) => a - b);
}
