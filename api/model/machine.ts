import * as z from "zod";
import type { InputIssue } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { type Fields, isObject } from "../base/own.ts";
import { CPU_LIST, formatCpuSet, gapsIn, parseCpuSet } from "./cpu-set.ts";
import { count, knownFields, optional, sortedRecord, text, timestamp, wholeNumber } from "./fields.ts";

const id = wholeNumber(0, 1_000_000);
const cpu = z.object({ cpu: id, core: id, socket: id, numa: id, uncoreCache: optional(id) });
const numaNode = z.object({
  id,
  memoryBytes: optional(count),
  /** Page size (`2Mi`) -> number of pages. */
  hugepages: optional(sortedRecord(text, count, LIMITS.pageSizes)),
});

/** Topology and sizes of the machine; cAdvisor's MachineInfo is turned into it (`fromMachineInfo`). */
const ownForm = z.object({
  cpus: optional(z.array(cpu).max(LIMITS.cpus)),
  /** Present CPUs that are not in use, so that a gap in the numbers is explained: `4-7`. */
  offlineCpus: optional(text.meta({ pattern: CPU_LIST.source })),
  numaNodes: optional(z.array(numaNode).max(LIMITS.numaNodes)),
  distances: optional(z.array(z.array(count).max(LIMITS.numaNodes)).max(LIMITS.numaNodes)),
  memoryBytes: optional(count),
  swapBytes: optional(count),
  /** True: the kernel has a huge page controller; absent: taken as present where the capacity names huge pages. */
  hugetlb: optional(z.boolean()),
  pageSizeBytes: optional(wholeNumber(1, 1 << 30)),
});
export type Machine = z.output<typeof ownForm>;
export const machine = z.preprocess(fromMachineInfo, ownForm);

/** The NUMA nodes of a list of CPUs: `0+1`. */
export function numaText(list: string, cpus: readonly Pick<z.output<typeof cpu>, "cpu" | "numa">[] = []): string {
  const own = new Set(parseCpuSet(list));
  const nodes = cpus.filter(({ cpu }) => own.has(cpu)).map(({ numa }) => numa);
  return [...new Set(nodes)].sort((a, b) => a - b).join("+");
}

/** Whether the machine has the memory of its NUMA nodes, which lscpu does not print. */
export const knowsMemory = ({ numaNodes }: Machine): boolean =>
  (numaNodes ?? []).some(({ memoryBytes }) => memoryBytes !== undefined);

const list = (v: unknown): readonly Fields[] =>
  Array.isArray(v) ? (v.filter((x) => typeof x === "object" && x) as Fields[]) : [];

/**
 * Converts a cAdvisor `MachineInfo` (recognised by its `topology` array) to our form; anything else passes unchanged
 * to be checked.
 */
function fromMachineInfo(v: unknown, ctx: z.RefinementCtx): unknown {
  const info = v as Fields | null;
  if (typeof v !== "object" || info === null || !Array.isArray(info["topology"])) return v;
  const faults = shapeFaults(info["topology"]);
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
interface ShapeFault {
  readonly path: readonly (string | number)[];
  readonly message: string;
}
/** Lists what the conversion would lose: members that are not objects, and non-lists where a list is expected. */
function shapeFaults(topology: readonly unknown[]): readonly ShapeFault[] {
  const faults: ShapeFault[] = [];
  const isArray = (v: unknown, path: ShapeFault["path"]): v is readonly unknown[] => {
    // Go writes an empty list as null
    if (!Array.isArray(v) && v !== undefined && v !== null) faults.push({ path, message: "expected an array" });
    return Array.isArray(v);
  };
  const eachOf = (
    v: unknown,
    path: ShapeFault["path"],
    look: (member: Fields, path: ShapeFault["path"]) => void,
  ): void => {
    if (!isArray(v, path)) return;
    for (const [i, member] of v.entries()) {
      if (isObject(member)) look(member, [...path, i]);
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
/** CPUs missing in cAdvisor's list, which has only online ones. */
function offlineAmong(cpus: readonly { readonly cpu: unknown }[]): string | undefined {
  const online = cpus.flatMap(({ cpu }) => (Number.isInteger(cpu) && Number(cpu) < LIMITS.cpus ? [Number(cpu)] : []));
  return formatCpuSet(gapsIn(online)) || undefined;
}
/**
 * The threads of a core, identified by its lowest thread, since cAdvisor numbers cores per socket. kubelet 1.36:
 * getUniqueCoreID.
 */
function threadsOf(of: Fields, numa: unknown): { readonly cpu: unknown }[] {
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

const resource = z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$/, "not a resource name");
const ids = z.array(text.min(1)).max(LIMITS.devices);

/** A device as a plugin lists it. */
const device = knownFields({
  resource,
  id: text.min(1),
  health: optional(text),
  numaNodes: optional(z.array(wholeNumber(0, 1_000_000)).max(LIMITS.numaNodes)),
});
export const devices = z.array(device).max(LIMITS.devices);
export type Device = z.output<typeof device>;

/** Devices that are listed twice. `at`: the path of the list. */
export function deviceIssues(list: readonly Device[], at: string): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const seen = new Map<string, number>();
  for (const [i, { resource, id }] of list.entries()) {
    const first = seen.get(`${resource} ${id}`);
    if (first === undefined) seen.set(`${resource} ${id}`, i);
    else issues.push({ path: `${at}[${i}].id`, message: `device \`${id}\` is also ${at}[${first}]` });
    if (issues.length >= LIMITS.issues) break;
  }
  return issues;
}

/** A question that the plugin was asked (GetPreferredAllocation), and its answer. */
const preferred = knownFields({
  available: ids,
  mustInclude: optional(ids),
  size: wholeNumber(0, LIMITS.devices),
  /** Best first. */
  deviceIds: optional(ids),
  /** The error of the call, where it failed. */
  error: optional(text),
});
/**
 * What the kubelet knows about a plugin besides its devices; without an entry the plugin is registered, without
 * options.
 */
const devicePlugin = knownFields({
  resource,
  /** True: its stream is open; absent: it is open. */
  registered: optional(z.boolean()),
  /** When its stream ended; a plugin that has not come back since the kubelet started has none. */
  stoppedAt: optional(timestamp),
  options: optional(
    z.object({ getPreferredAllocationAvailable: optional(z.boolean()), preStartRequired: optional(z.boolean()) }),
  ),
  preferred: optional(z.array(preferred).max(1024)),
});
export const devicePlugins = z.array(devicePlugin).max(LIMITS.deviceResources);
export type DevicePlugin = z.output<typeof devicePlugin>;
