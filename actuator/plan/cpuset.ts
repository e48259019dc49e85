/** A set of CPUs or memory nodes: bit n is member n. */
export type CpuSet = bigint;
export const NONE: CpuSet = 0n;

/** Above what any kernel is built for (NR_CPUS is at most 8192). */
const MAX_ID = 8191;
const PART = /^(\d{1,5})(?:-(\d{1,5}))?$/;

/** `0-3,7`; an empty text is the empty set; null when it is no list. */
export function parseCpuset(text: string): CpuSet | null {
  const trimmed = text.trim();
  if (trimmed === "") return NONE;
  let set = NONE;
  for (const part of trimmed.split(",")) {
    const found = PART.exec(part.trim());
    if (found === null) return null;
    const first = Number(found[1]);
    const last = Number(found[2] ?? found[1]);
    if (last < first || last > MAX_ID) return null;
    set |= ((1n << BigInt(last - first + 1)) - 1n) << BigInt(first);
  }
  return set;
}

/** As the kernel prints it: ascending, runs joined by a dash. */
export function formatCpuset(set: CpuSet): string {
  const parts: string[] = [];
  let start = -1;
  const bits = set.toString(2);
  for (let id = 0; id <= bits.length; id++) {
    const inside = bits[bits.length - 1 - id] === "1";
    if (inside && start < 0) start = id;
    if (inside || start < 0) continue;
    parts.push(start === id - 1 ? `${start}` : `${start}-${id - 1}`);
    start = -1;
  }
  return parts.join(",");
}

export const overlaps = (a: CpuSet, b: CpuSet): boolean => (a & b) !== NONE;
export const without = (a: CpuSet, b: CpuSet): CpuSet => a & ~b;
