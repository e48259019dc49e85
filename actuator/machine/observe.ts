import { dirname } from "node:path";
import { LIMITS } from "../../api/base/limits.ts";
import { withoutEscapes } from "../cgroupfs/files.ts";
import { KUBELET_DIRECTORY } from "../core/setting-faults.ts";
import {
  type CgroupMounts,
  type Cpu,
  type MachineFacts,
  type MemoryUsage,
  type NumaNode,
  type Processes,
  readNodeFs,
  type SwapUsage,
  type SystemFacts,
} from "./facts.ts";
import { type MachineFiles, machineFiles, quoted } from "./files.ts";
import { type CpuIds, kibLines, MEMINFO, placesFromCpuinfo, readHugePages, readMemory } from "./proc-files.ts";

const NODES = "/sys/devices/system/node";
const MACHINE_HUGEPAGES = "/sys/kernel/mm/hugepages";
const LOCAL_DISTANCE = 10;

interface Numa {
  readonly nodes: readonly NumaNode[];
  readonly distances: readonly (readonly number[])[];
  /** CPU -> NUMA node; a CPU that no node lists belongs to the first one. */
  nodeOf(cpu: number): number;
}

/**
 * The NUMA nodes (also those with memory only), as cAdvisor's `GetNodesInfo` reads them. A kernel without NUMA, or a
 * container that hides /sys, is one node with all of the memory.
 */
function readNuma(files: MachineFiles, memoryBytes: number | undefined): Numa {
  const ids = files
    .names(NODES)
    .flatMap((name) => /^node(\d{1,4})$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
  if (ids.length > LIMITS.numaNodes)
    files.note(NODES, `has ${ids.length} nodes; more than ${LIMITS.numaNodes} are not described`);
  if (ids.length === 0 || ids.length > LIMITS.numaNodes) return singleNode(files, memoryBytes);

  const homes = new Map<number, number>();
  for (const id of ids) for (const cpu of cpusOf(files, id)) homes.set(cpu, id);
  return {
    nodes: ids.map((id) => readNode(files, id, ids.length === 1 ? memoryBytes : undefined)),
    distances: readDistances(files, ids),
    nodeOf: (cpu) => homes.get(cpu) ?? ids[0] ?? 0,
  };
}

function singleNode(files: MachineFiles, memoryBytes: number | undefined): Numa {
  const node = { id: 0, memoryBytes, hugepages: readHugePages(files, MACHINE_HUGEPAGES) };
  return { nodes: [node], distances: [[LOCAL_DISTANCE]], nodeOf: () => 0 };
}

function cpusOf(files: MachineFiles, id: number): readonly number[] {
  const path = `${NODES}/node${id}/cpulist`;
  const text = files.text(path);
  if (text === undefined) return [];
  return parseCpuList(text) ?? files.note(path, `expected a CPU list, found ${quoted(text)}`) ?? [];
}

/** The node's own MemTotal, which may be less than the machine's: the kubelet's memory manager uses it. */
function readNode(files: MachineFiles, id: number, otherwise: number | undefined): NumaNode {
  const path = `${NODES}/node${id}/meminfo`;
  const text = files.text(path);
  const memoryBytes = kibLines(text ?? "").get("MemTotal") ?? otherwise;
  if (text !== undefined && memoryBytes === undefined) files.note(path, "has no MemTotal line");
  return { id, memoryBytes, hugepages: readHugePages(files, `${NODES}/node${id}/hugepages`) };
}

function readDistances(files: MachineFiles, ids: readonly number[]): readonly (readonly number[])[] {
  const rows: number[][] = [];
  for (const id of ids) {
    const path = `${NODES}/node${id}/distance`;
    const text = files.text(path);
    const row = text?.split(/\s+/).map(Number) ?? [];
    if (row.length === ids.length && row.every(Number.isSafeInteger)) rows.push(row);
    else if (text !== undefined) files.note(path, `expected ${ids.length} distances, found ${quoted(text)}`);
  }
  if (rows.length === ids.length) return rows;
  return ids.length === 1 ? [[LOCAL_DISTANCE]] : [];
}

const CPUS = "/sys/devices/system/cpu";
const ONLINE = `${CPUS}/online`;

type CpuLocation = CpuIds & { readonly numa: number };

/**
 * The online CPUs in rising order. Threads with one `core_id` in one socket and NUMA node are one core, numbered by its
 * lowest CPU (kubelet 1.36: topology.Discover, getUniqueCoreID).
 */
function readCpus(files: MachineFiles, numa: Numa): readonly Cpu[] {
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

function coresOf(places: readonly CpuLocation[]): readonly (readonly [CpuLocation, ...CpuLocation[]])[] {
  const cores = new Map<string, [CpuLocation, ...CpuLocation[]]>();
  for (const place of places) {
    const key = `${place.numa}/${place.socket}/${place.kernelCore}`;
    const threads = cores.get(key);
    if (threads === undefined) cores.set(key, [place]);
    else threads.push(place);
  }
  return [...cores.values()];
}

function placesFromSys(files: MachineFiles): readonly CpuIds[] | undefined {
  const text = files.text(ONLINE);
  if (text === undefined) return undefined;
  const online = parseCpuList(text);
  if (online === undefined || online.length === 0)
    return files.note(ONLINE, `expected a CPU list, found ${quoted(text)}`);
  return online.map((cpu) => placeOf(files, cpu));
}

/** For an id that the kernel reports as -1 or not at all: the lowest thread sibling (else the CPU itself), socket 0. */
function placeOf(files: MachineFiles, cpu: number): CpuIds {
  const topology = `${CPUS}/cpu${cpu}/topology`;
  const kernelCore = known(files.wholeNumber(`${topology}/core_id`)) ?? lowestSibling(files, topology) ?? cpu;
  return { cpu, kernelCore, socket: known(files.wholeNumber(`${topology}/physical_package_id`)) ?? 0 };
}
const known = (id: number | undefined): number | undefined => (id !== undefined && id >= 0 ? id : undefined);
const lowestSibling = (files: MachineFiles, topology: string): number | undefined =>
  parseCpuList(files.optionalText(`${topology}/thread_siblings_list`) ?? "")?.[0];

/**
 * The id of the last level cache that only some cores of the NUMA node share; the socket if one cache serves the whole
 * node or none is reported (kubelet 1.36: getUncoreCacheID; cAdvisor: addCacheInfo, which counts the node's threads as
 * cores times this core's threads).
 */
function uncoreCacheOf(
  files: MachineFiles,
  threads: readonly [CpuLocation, ...CpuLocation[]],
  threadsInNode: number,
): number {
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

/** uname's machine -> GOARCH, which Kubernetes uses. */
const GOARCH: Readonly<Record<string, string>> = {
  x86_64: "amd64",
  aarch64: "arm64",
  armv7l: "arm",
  i686: "386",
  loongarch64: "loong64",
};
/** Node's process.arch -> GOARCH, if they differ. */
const NODE_ARCH: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", ppc64: "ppc64le" };

/** Reads the fields of `node.status.nodeInfo`. */
export function readSystem(files: MachineFiles): SystemFacts {
  const machineID = files.optionalText("/etc/machine-id") || files.text("/var/lib/dbus/machine-id");
  return {
    hostname: files.text("/proc/sys/kernel/hostname"),
    architecture: readArchitecture(files),
    kernelVersion: files.text("/proc/sys/kernel/osrelease"),
    osImage: readOsImage(files),
    machineID,
    systemUUID: readSystemUUID(files) ?? machineID,
    bootID: files.text("/proc/sys/kernel/random/boot_id"),
    startTime: readStartTime(files),
  };
}

/** /proc/sys/kernel/arch is there since Linux 6.1; before, what this program was built for. */
function readArchitecture(files: MachineFiles): string {
  const machine = files.optionalText("/proc/sys/kernel/arch");
  if (machine !== undefined) return GOARCH[machine] ?? machine;
  return NODE_ARCH[process.arch] ?? process.arch;
}

/** The OS name from os-release(5): /etc before /usr/lib; like the kubelet, Linux if PRETTY_NAME is absent. */
function readOsImage(files: MachineFiles): string | undefined {
  const text = files.optionalText("/etc/os-release") ?? files.text("/usr/lib/os-release");
  if (text === undefined) return undefined;
  const value = /^PRETTY_NAME=(.*)$/m.exec(text)?.[1]?.trim();
  return value === undefined ? "Linux" : value.replace(/^(["'])(.*)\1$/, "$2");
}

/** The firmware's id, which root alone may read; virtual machines often have none (cAdvisor: GetSystemUUID). */
function readSystemUUID(files: MachineFiles): string | undefined {
  const paths = ["/sys/class/dmi/id/product_uuid", "/proc/device-tree/system-id", "/proc/device-tree/vm,uuid"];
  for (const path of paths) {
    const id = files.optionalText(path)?.replaceAll("\0", "");
    if (id) return id;
  }
  return undefined;
}

function readStartTime(files: MachineFiles): string | undefined {
  const seconds = /^btime (\d{1,11})$/m.exec(files.text("/proc/stat") ?? "")?.[1];
  return seconds === undefined ? undefined : secondsText(new Date(Number(seconds) * 1000));
}

/** RFC 3339 to the second, as metav1.Time prints. */
const secondsText = (time: Date): string => time.toISOString().replace(/\.\d{3}Z$/, "Z");

const MOUNTINFO = "/proc/self/mountinfo";

interface Mount {
  readonly point: string;
  readonly isWhole: boolean;
  readonly type: string;
  readonly controllers: readonly string[];
}

/**
 * The cgroup version that governs cpu and memory, from the mounts: a v1 hierarchy of either makes it 1, also beside a
 * cgroup2 mount (hybrid); 2 needs a cgroup2 mount whose root has both controllers.
 */
function readCgroupMounts(files: MachineFiles): CgroupMounts {
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

const LOADAVG = "/proc/loadavg";

/** Process numbers in use and their limit (kubelet 1.36: pidlimit.Stats): the fourth field of loadavg counts threads. */
function readProcesses(files: MachineFiles): Processes {
  const limits = [files.wholeNumber("/proc/sys/kernel/pid_max"), files.wholeNumber("/proc/sys/kernel/threads-max")];
  const known = limits.filter((limit) => limit !== undefined && limit >= 0) as number[];
  return { maxpid: known.length === 0 ? undefined : Math.min(...known), curproc: readTaskCount(files) };
}

/** `1.36 3.49 4.53 2/3518 3715089` */
function readTaskCount(files: MachineFiles): number | undefined {
  const text = files.text(LOADAVG);
  if (text === undefined) return undefined;
  const tasks = /^\S+ \S+ \S+ \d+\/(\d{1,9}) \d+$/.exec(text)?.[1];
  return tasks === undefined ? files.note(LOADAVG, "expected `running/all` as its fourth field") : Number(tasks);
}

interface ObserveOptions {
  /** The root of the machine's /proc, /sys, /etc and /var: `/`, a host mounted into a container, or a captured tree. */
  readonly root?: string;
  /** The directory whose file system is nodefs. */
  readonly kubeletDirectory?: string;
  readonly now?: Date;
}

/**
 * Reads the machine: CPUs, NUMA nodes, memory, huge pages, process ids, nodefs, cgroup version, identity. Only reads,
 * and blocks for some milliseconds. Never throws: a fact whose file cannot be read or parsed is `undefined` (a list:
 * empty), and `missing` has the file's path on the machine and the reason.
 */
export function observeMachine(options: ObserveOptions = {}): MachineFacts {
  const { root = "/", kubeletDirectory = KUBELET_DIRECTORY, now = new Date() } = options;
  const files = machineFiles(root);
  const memory = readMemory(files);
  const numa = readNuma(files, memory.totalBytes);
  const cgroup = readCgroupMounts(files);
  const usage = readUsage(files, cgroup, memory.totalBytes);
  return {
    observedAt: now.toISOString(),
    system: readSystem(files),
    cpus: readCpus(files, numa),
    numaNodes: numa.nodes,
    distances: numa.distances,
    hugepages: readHugePages(files, "/sys/kernel/mm/hugepages"),
    memory,
    memoryUsage: usage?.memory,
    swapUsage: usage?.swap,
    processes: readProcesses(files),
    nodeFs: readNodeFs(files, kubeletDirectory),
    cgroup,
    missing: files.missing,
  };
}

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

interface Usage {
  readonly memory: MemoryUsage;
  readonly swap: SwapUsage;
}

/**
 * The machine's memory use as the kubelet reports and evicts by it: that of the root cgroup, against MemTotal.
 * v1: memory.usage_in_bytes and the hierarchy's totals. v2: the root has no memory.current, so usage is anon + file of
 * its memory.stat, which counts as v1 did (kubelet 1.36: opencontainers/cgroups rootStatsFromMeminfo; runc before 1.2
 * took MemTotal - MemFree), and swap is SwapTotal - SwapFree. `undefined` if the root cgroup cannot be read.
 */
function readUsage(files: MachineFiles, cgroup: CgroupMounts, totalBytes: number | undefined): Usage | undefined {
  if (cgroup.memory === undefined || cgroup.version === undefined) return undefined;
  const path = `${cgroup.memory}/memory.stat`;
  const text = files.text(path);
  if (text === undefined) return undefined;
  const stat = statLines(text);
  const meminfo = kibLines(files.text(MEMINFO) ?? "");
  const read = cgroup.version === 1 ? v1(files, cgroup.memory, stat) : v2(files, cgroup.memory, stat, meminfo);
  if (read === undefined) return files.note(path, "does not report the memory in use");

  const workingSetBytes = Math.max(0, read.usage - (read.inactiveFile ?? 0));
  const swapTotal = meminfo.get("SwapTotal");
  return {
    memory: {
      availableBytes: totalBytes === undefined ? undefined : Math.max(0, totalBytes - workingSetBytes),
      usageBytes: read.usage,
      workingSetBytes,
      rssBytes: read.rss,
      pageFaults: stat.get("pgfault"),
      majorPageFaults: stat.get("pgmajfault"),
    },
    swap: {
      swapAvailableBytes: swapTotal === undefined ? undefined : Math.max(0, swapTotal - read.swap),
      swapUsageBytes: read.swap,
    },
  };
}

interface Read {
  readonly usage: number;
  readonly inactiveFile: number | undefined;
  readonly rss: number | undefined;
  readonly swap: number;
}
type Numbers = ReadonlyMap<string, number>;

function v1(files: MachineFiles, directory: string, stat: Numbers): Read | undefined {
  const usage = files.wholeNumber(`${directory}/memory.usage_in_bytes`);
  if (usage === undefined) return undefined;
  const [inactiveFile, rss] = [stat.get("total_inactive_file"), stat.get("total_rss")];
  return { usage, inactiveFile, rss, swap: stat.get("total_swap") ?? 0 };
}

function v2(files: MachineFiles, directory: string, stat: Numbers, meminfo: Numbers): Read | undefined {
  const [anon, file] = [stat.get("anon"), stat.get("file")];
  // in a container the mounted root is a child cgroup, and has the file
  const current = files.optionalText(`${directory}/memory.current`);
  const emulated = anon === undefined || file === undefined ? undefined : anon + file;
  const usage = current === undefined ? emulated : files.wholeNumber(`${directory}/memory.current`);
  if (usage === undefined) return undefined;
  const swap = (meminfo.get("SwapTotal") ?? 0) - (meminfo.get("SwapFree") ?? 0);
  return { usage, inactiveFile: stat.get("inactive_file"), rss: anon, swap };
}

/** `name value` lines. */
function statLines(text: string): Numbers {
  const numbers = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [name, digits] = line.split(" ");
    const value = Number(digits);
    if (name !== undefined && digits !== undefined && Number.isSafeInteger(value)) numbers.set(name, value);
  }
  return numbers;
}
