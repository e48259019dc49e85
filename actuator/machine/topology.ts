import { parseCpuList } from "./cpu-list.ts";
import { type CpuPlace, placesFromCpuinfo } from "./cpuinfo.ts";
import type { Cpu } from "./facts.ts";
import { type MachineFiles, quoted } from "./files.ts";
import type { Numa } from "./numa.ts";

const CPUS = "/sys/devices/system/cpu";
const ONLINE = `${CPUS}/online`;

type Place = CpuPlace & { readonly numa: number };

/**
 * The online CPUs in rising order. Threads with one `core_id` in one socket and NUMA node are one core, numbered by its
 * lowest CPU (kubelet 1.36: topology.Discover, getUniqueCoreID).
 */
export function readCpus(files: MachineFiles, numa: Numa): readonly Cpu[] {
  const found = placesFromSys(files) ?? placesFromCpuinfo(files);
  const places = found.map((p) => ({ ...p, numa: numa.nodeOf(p.cpu) })).sort((a, b) => a.cpu - b.cpu);
  const cores = coresOf(places);
  const coresInNode = new Map<number, number>();
  for (const threads of cores) coresInNode.set(threads[0].numa, (coresInNode.get(threads[0].numa) ?? 0) + 1);
  return cores
    .flatMap((threads) => {
      const uncoreCache = uncoreCacheOf(files, threads, (coresInNode.get(threads[0].numa) ?? 0) * threads.length);
      return threads.map((thread) => ({ ...thread, core: threads[0].cpu, uncoreCache }));
    })
    .sort((a, b) => a.cpu - b.cpu);
}

function coresOf(places: readonly Place[]): readonly (readonly [Place, ...Place[]])[] {
  const cores = new Map<string, [Place, ...Place[]]>();
  for (const place of places) {
    const key = `${place.numa}/${place.socket}/${place.kernelCore}`;
    const threads = cores.get(key);
    if (threads === undefined) cores.set(key, [place]);
    else threads.push(place);
  }
  return [...cores.values()];
}

function placesFromSys(files: MachineFiles): readonly CpuPlace[] | undefined {
  const text = files.text(ONLINE);
  if (text === undefined) return undefined;
  const online = parseCpuList(text);
  if (online === undefined || online.length === 0)
    return files.note(ONLINE, `expected a CPU list, found ${quoted(text)}`);
  return online.map((cpu) => placeOf(files, cpu));
}

/** A number that the kernel leaves at -1 or does not give: the lowest thread sibling (else the CPU itself), socket 0. */
function placeOf(files: MachineFiles, cpu: number): CpuPlace {
  const topology = `${CPUS}/cpu${cpu}/topology`;
  const kernelCore = known(files.wholeNumber(`${topology}/core_id`)) ?? lowestSibling(files, topology) ?? cpu;
  return { cpu, kernelCore, socket: known(files.wholeNumber(`${topology}/physical_package_id`)) ?? 0 };
}
const known = (id: number | undefined): number | undefined => (id !== undefined && id >= 0 ? id : undefined);
const lowestSibling = (files: MachineFiles, topology: string): number | undefined =>
  parseCpuList(files.optionalText(`${topology}/thread_siblings_list`) ?? "")?.[0];

/**
 * The id of the last level cache that only some cores of the NUMA node share; the socket where one cache serves the whole
 * node or none is told (kubelet 1.36: getUncoreCacheID; cAdvisor: addCacheInfo, which counts the node's threads as
 * cores times this core's threads).
 */
function uncoreCacheOf(files: MachineFiles, threads: readonly [Place, ...Place[]], threadsInNode: number): number {
  const [first] = threads;
  const directory = `${CPUS}/cpu${first.cpu}/cache`;
  for (const index of files.names(directory).filter((name) => /^index\d+$/.test(name))) {
    const level = files.wholeNumber(`${directory}/${index}/level`) ?? 0;
    if (level < 3) continue;
    const shared = parseCpuList(files.text(`${directory}/${index}/shared_cpu_list`) ?? "")?.length;
    const id = /^\d{1,6}$/.exec(files.optionalText(`${directory}/${index}/id`) ?? "")?.[0];
    if (id !== undefined && shared !== undefined && shared > 0 && shared !== threadsInNode) return Number(id);
  }
  return first.socket;
}
