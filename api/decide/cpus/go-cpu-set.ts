import { err, ok, type Result } from "../../model/result.ts";
import { parseWhole, quote } from "../go/strconv.ts";
import { type CpuSet, NO_CPUS } from "./sets.ts";

/** No machine has a CPU of a higher number, and a list that goes far beyond fills the memory of the kubelet that reads it. */
const MOST_CPU = 65_535;

/** A CPU list, read as the kubelet reads it and refused in its words. kubernetes 1.36: cpuset.Parse. */
export function parseCpus(text: string): Result<CpuSet, string> {
  if (text === "") return ok(NO_CPUS);
  const cpus = new Set<number>();
  let listed = 0;
  for (const part of text.split(",")) {
    const range = rangeOf(part);
    if (!range.ok) return range;
    const { first, last } = range.value;
    if (last > MOST_CPU) return err(`CPU ${last} is above ${MOST_CPU}`);
    listed += last - first + 1;
    if (listed > 2 * MOST_CPU) return err(`lists more than ${2 * MOST_CPU} CPUs`);
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return ok(cpus);
}

/** The same for the lists of one file, bounded together; a kubelet would read on. */
export function cpuListReader(): (text: string) => Result<CpuSet, string> {
  let listed = 0;
  return (text) => {
    if (listed > MOST_LISTED) return err(`the file lists more than ${MOST_LISTED} CPUs`);
    const cpus = parseCpus(text);
    if (cpus.ok) listed += cpus.value.size;
    return cpus;
  };
}
const MOST_LISTED = 2 ** 22;

function rangeOf(part: string): Result<{ first: number; last: number }, string> {
  const dash = part.indexOf("-");
  const first = parseWhole(dash < 0 ? part : part.slice(0, dash));
  if (!first.ok) return first;
  const last = dash < 0 ? first : parseWhole(part.slice(dash + 1));
  if (!last.ok) return last;
  if (first.value > last.value) return err(`invalid range ${quote(part)} (${first.value} > ${last.value})`);
  return ok({ first: Number(first.value), last: Number(last.value) });
}
