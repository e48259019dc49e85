import * as z from "zod";
import { formatCpuSet, gapsIn } from "./cpu-set.ts";
import { count, optional, sortedRecord, text, wholeNumber } from "./fields.ts";
import { LIMITS } from "./limits.ts";

const id = wholeNumber(0, 1_000_000);
export const cpu = z.object({ cpu: id, core: id, socket: id, numa: id, uncoreCache: optional(id) });
export const numaNode = z.object({
  id,
  memoryBytes: optional(count),
  /** Page size (`2Mi`) -> number of pages. */
  hugepages: optional(sortedRecord(text, count, LIMITS.pageSizes)),
});

/** Topology and sizes of the machine; cAdvisor's MachineInfo is turned into it (`fromMachineInfo`). */
const ownForm = z.object({
  cpus: optional(z.array(cpu).max(LIMITS.cpus)),
  /** CPUs that are there and not in use, so that a gap in the numbers is none: `4-7`. */
  offlineCpus: optional(text),
  numaNodes: optional(z.array(numaNode).max(LIMITS.numaNodes)),
  distances: optional(z.array(z.array(count).max(LIMITS.numaNodes)).max(LIMITS.numaNodes)),
  memoryBytes: optional(count),
  swapBytes: optional(count),
  /** Whether the kernel has a huge page controller; absent: taken as present where the capacity names huge pages. */
  hugetlb: optional(z.boolean()),
  pageSizeBytes: optional(wholeNumber(1, 1 << 30)),
});
export type Machine = z.output<typeof ownForm>;
export const machine = z.preprocess(fromMachineInfo, ownForm);

type Loose = Readonly<Record<string, unknown>>;
const list = (v: unknown): readonly Loose[] =>
  Array.isArray(v) ? (v.filter((x) => typeof x === "object" && x) as Loose[]) : [];

/** cAdvisor `MachineInfo` (its `topology` array tells it apart) in our form; anything else passes unchanged to be checked. */
function fromMachineInfo(v: unknown, ctx: z.RefinementCtx): unknown {
  const info = v as Loose | null;
  if (typeof v !== "object" || info === null || !Array.isArray(info["topology"])) return v;
  const faults = misshapen(info["topology"]);
  for (const { path, message } of faults) ctx.addIssue({ code: "custom", message, path: [...path] });
  if (faults.length > 0) return z.NEVER;
  const nodes = list(info["topology"]);
  const cpus = nodes.flatMap((n) => list(n["cores"]).flatMap((core) => threadsOf(core, n["node_id"])));
  return {
    cpus,
    offlineCpus: offlineAmong(cpus),
    numaNodes: nodes.map((n) => ({ id: n["node_id"], memoryBytes: n["memory"], hugepages: pagesOf(n["hugepages"]) })),
    distances: nodes.map((n) => n["distances"]).every(Array.isArray) ? nodes.map((n) => n["distances"]) : undefined,
    memoryBytes: info["memory_capacity"],
    swapBytes: info["swap_capacity"],
  };
}
interface Misshapen {
  readonly path: readonly (string | number)[];
  readonly message: string;
}
/** What would be lost on the way to our form: members that are no objects, and what should be a list and is none. */
function misshapen(topology: readonly unknown[]): readonly Misshapen[] {
  const faults: Misshapen[] = [];
  const isArray = (v: unknown, path: Misshapen["path"]): v is readonly unknown[] => {
    // Go writes an empty list as null
    if (!Array.isArray(v) && v !== undefined && v !== null) faults.push({ path, message: "expected an array" });
    return Array.isArray(v);
  };
  const eachOf = (
    v: unknown,
    path: Misshapen["path"],
    look: (member: Loose, path: Misshapen["path"]) => void,
  ): void => {
    if (!isArray(v, path)) return;
    for (const [i, member] of v.entries()) {
      if (typeof member === "object" && member !== null && !Array.isArray(member)) look(member as Loose, [...path, i]);
      else faults.push({ path: [...path, i], message: "expected an object" });
    }
  };
  eachOf(topology, ["topology"], (node, path) => {
    eachOf(node["hugepages"], [...path, "hugepages"], () => {});
    eachOf(node["cores"], [...path, "cores"], (core, at) => {
      isArray(core["thread_ids"], [...at, "thread_ids"]);
      eachOf(core["uncore_caches"], [...at, "uncore_caches"], () => {});
    });
  });
  return faults;
}
/** cAdvisor lists what is online: a gap is a CPU that is not. */
function offlineAmong(cpus: readonly { readonly cpu: unknown }[]): string | undefined {
  const online = cpus.flatMap(({ cpu }) => (Number.isInteger(cpu) && Number(cpu) < LIMITS.cpus ? [Number(cpu)] : []));
  return formatCpuSet(gapsIn(online)) || undefined;
}
/** A core goes by its lowest thread, since cAdvisor counts cores anew in each socket. kubelet 1.36: getUniqueCoreID. */
function threadsOf(of: Loose, numa: unknown): { readonly cpu: unknown }[] {
  const threads: unknown[] = Array.isArray(of["thread_ids"]) ? of["thread_ids"] : [];
  const uncoreCache = list(of["uncore_caches"])[0]?.["id"];
  const core = threads.every(Number.isInteger) ? Math.min(...threads.map(Number)) : of["core_id"];
  return threads.map((cpu) => ({ cpu, core, socket: of["socket_id"], numa, uncoreCache }));
}
/** cAdvisor gives page sizes in KiB. */
function pagesOf(v: unknown): Record<string, unknown> {
  return Object.fromEntries(list(v).map((p) => [pageSizeName(Number(p["page_size"]) * 1024), p["num_pages"]]));
}
/** 2097152 -> `2Mi`, as in the resource name `hugepages-2Mi`. */
export function pageSizeName(bytes: number): string {
  if (bytes % 2 ** 30 === 0) return `${bytes / 2 ** 30}Gi`;
  if (bytes % 2 ** 20 === 0) return `${bytes / 2 ** 20}Mi`;
  return `${bytes / 2 ** 10}Ki`;
}
