import { type Fields, isObject } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import { parseCpuSet } from "../model/cpu-set.ts";

const TOO_LITTLE = "give what `LC_ALL=C lscpu -J -e` prints, which has a line for each CPU";

const listIn = (value: unknown, name: string): readonly unknown[] | undefined => {
  const list = isObject(value) ? value[name] : undefined;
  return Array.isArray(list) ? list : undefined;
};
/** Whether a value is the output of `lscpu -J`: a summary, or with `-e` a list of CPUs, whose NUMA node is called `node`. */
export const isLscpu = (value: unknown): boolean =>
  listIn(value, "lscpu") !== undefined ||
  listIn(value, "cpus")?.some((cpu) => isObject(cpu) && !("numa" in cpu) && ("node" in cpu || "online" in cpu)) ===
    true;

/**
 * The machine that `lscpu -J` describes, in the form of a snapshot; memory is not included. Errors: a summary that does not show
 * which CPUs share a core, or which socket a NUMA node is in.
 */
export const machineOfLscpu = (value: unknown): Result<Fields, string> =>
  listIn(value, "lscpu") === undefined
    ? ok(ofCpus((listIn(value, "cpus") ?? []).filter(isObject)))
    : ofSummary(linesOf(listIn(value, "lscpu") ?? []));

interface CpuRow {
  readonly cpu: unknown;
  readonly core: unknown;
  readonly socket: unknown;
  readonly numa: unknown;
  readonly uncoreCache?: unknown;
}
function machineOf(cpus: readonly CpuRow[], offline: string): Fields {
  const numa = new Set(cpus.map((cpu) => cpu.numa));
  return {
    cpus,
    ...(offline === "" ? {} : { offlineCpus: offline }),
    numaNodes: [...numa].map((id) => ({ id })),
  };
}

/** For `-e`. A core has the number of its lowest CPU, as in the kubelet. The last cache of `l1d:l1i:l2:l3` is the uncore cache. */
function ofCpus(listed: readonly Fields[]): Fields {
  const [online, offline] = [
    listed.filter((cpu) => cpu["online"] !== false),
    listed.filter((cpu) => cpu["online"] === false),
  ];
  const first = new Map<string, unknown>();
  for (const { cpu, socket, core } of online) {
    const key = `${socket} ${core}`;
    if (!first.has(key)) first.set(key, cpu);
  }
  const cpus = online.map(({ cpu, socket, core, node, ...caches }) => {
    const [names = "", ids] = Object.entries(caches).find(([name]) => name.split(":").at(-1) === "l3") ?? [];
    const id = Number(String(ids).split(":")[names.split(":").length - 1]);
    const uncoreCache = names === "" || !Number.isInteger(id) ? {} : { uncoreCache: id };
    return { cpu, core: first.get(`${socket} ${core}`), socket: socket ?? 0, numa: node ?? 0, ...uncoreCache };
  });
  return machineOf(cpus, offline.map(({ cpu }) => cpu).join(","));
}

/** Newer versions nest some fields below others. */
function linesOf(list: readonly unknown[]): ReadonlyMap<string, string> {
  const lines = new Map<string, string>();
  for (const one of list.filter(isObject)) {
    lines.set(String(one["field"]).replace(/:$/, ""), String(one["data"] ?? ""));
    for (const [name, data] of linesOf(listIn(one, "children") ?? [])) lines.set(name, data);
  }
  return lines;
}

function ofSummary(lines: ReadonlyMap<string, string>): Result<Fields, string> {
  const number = (name: string): number => Number(lines.get(name) ?? Number.NaN);
  const [threads, sockets] = [number("Thread(s) per core"), number("Socket(s)")];
  const nodes = [...lines].flatMap(([name, text]): (readonly [number, string])[] => {
    const id = /^NUMA node(\d+) CPU\(s\)$/.exec(name)?.[1];
    return id === undefined || text === "" ? [] : [[Number(id), text]];
  });
  const all = nodes.length === 0 ? [[0, lines.get("On-line CPU(s) list") ?? ""] as const] : nodes;
  if (!(threads >= 1) || !(sockets >= 1) || all.some(([, text]) => (parseCpuSet(text) ?? []).length === 0))
    return err(`does not tell sockets, threads and the CPUs of NUMA nodes in English: ${TOO_LITTLE}`);
  if (all.length % sockets !== 0) return err(`does not tell which of ${sockets} sockets a CPU is in: ${TOO_LITTLE}`);
  const cpus: CpuRow[] = [];
  for (const [i, [numa, text]] of all.entries()) {
    const cores = coresIn(text, threads);
    if (cores === undefined) return err(`does not tell which CPUs share a core: ${TOO_LITTLE}`);
    const socket = Math.floor(i / (all.length / sockets));
    for (const core of cores) for (const cpu of core) cpus.push({ cpu, core: core[0], socket, numa });
  }
  return ok(
    machineOf(
      cpus.sort((a, b) => Number(a.cpu) - Number(b.cpu)),
      lines.get("Off-line CPU(s) list") ?? "",
    ),
  );
}

/**
 * The CPUs of a NUMA node by core. With several threads per core, Linux numbers the first threads of all cores before the second
 * ones, and the node's list has a range for each: `0-23,48-71`. Undefined if the list has another form.
 */
function coresIn(text: string, threads: number): readonly (readonly number[])[] | undefined {
  if (threads === 1) return (parseCpuSet(text) ?? []).map((cpu) => [cpu]);
  const ranges = text.split(",").map((range) => parseCpuSet(range) ?? []);
  const [first = []] = ranges;
  if (ranges.length !== threads || ranges.some(({ length }) => length !== first.length)) return undefined;
  return first.map((_, i) => ranges.map((range) => range[i] as number));
}
