/** A CPU number above that of any machine. */
const LARGEST_CPU = 65_535;

/** The form of every text that `parseCpuSet` takes. */
export const CPU_LIST = /^(?:\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*)?$/;
/** CPUs of a list such as `0-3,8`, ascending; undefined for what is no list. kubernetes 1.36: cpuset.Parse. */
export function parseCpuSet(text: string, largest = LARGEST_CPU): readonly number[] | undefined {
  if (text === "") return [];
  let listed = 0;
  const cpus = new Set<number>();
  for (const part of text.split(",")) {
    const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    // bounds the size of the list: no person or kernel names CPUs again and again
    listed += last - first + 1;
    if (last < first || last > largest || listed > 2 * largest) return undefined;
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}
export const countCpus = (text: string): number | undefined => parseCpuSet(text)?.length;

/** Why `parseCpuSet` refuses a text: the end of a sentence that begins with the text. */
export function cpuSetFault(text: string): string {
  const isList = /^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$/.test(text);
  if (!isList) return "is not a CPU list such as 0-1,4";
  const ranges = text.split(",").map((part) => part.split("-").map(Number));
  const ofNone = ranges.find(([first = 0, last = first]) => last < first);
  if (ofNone !== undefined) return `has a range that ends before it begins, ${ofNone.join("-")}`;
  const highest = ranges.flat().reduce((a, b) => Math.max(a, b), 0);
  if (highest > LARGEST_CPU) return `names CPUs above ${LARGEST_CPU}, which no machine has`;
  return "is too long a CPU list: it names the same CPUs again and again";
}

/** The shortest list of ascending CPUs: [0,1,2,8] -> `0-2,8`. */
export function formatCpuSet(cpus: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < cpus.length; ) {
    let end = i;
    while (end + 1 < cpus.length && cpus[end + 1] === (cpus[end] as number) + 1) end++;
    parts.push(end === i ? `${cpus[i]}` : `${cpus[i]}-${cpus[end]}`);
    i = end + 1;
  }
  return parts.join(",");
}

/** CPUs that a list lacks below its highest: [0,1,4] -> [2,3]. */
export function gapsIn(cpus: readonly number[]): readonly number[] {
  const known = new Set(cpus);
  return Array.from({ length: cpus.reduce((a, b) => Math.max(a, b), -1) + 1 }, (_, cpu) => cpu).filter(
    (cpu) => !known.has(cpu),
  );
}
