/** A hierarchy below the mount root. */
export interface CgroupMount {
  /** Place below the mount root: `cpu,cpuacct`, `memory`; empty when it is the mount root itself. */
  readonly mount: string;
  readonly writable: boolean;
}

export interface CgroupMounts {
  /** v1 hierarchies by controller; co-mounted controllers share one. */
  readonly v1: ReadonlyMap<string, CgroupMount>;
  /** Where cgroup v2 is mounted: the whole tree (empty mount) or, on a hybrid machine, a directory beside v1. */
  readonly v2: CgroupMount | null;
  /** Without a controller of ours, but joined by runtimes: named hierarchies (`name=systemd`), and cgroup v2 beside v1. */
  readonly joined: readonly CgroupMount[];
  /** Where all of them are: `/sys/fs/cgroup`. */
  readonly mountRoot: string;
}

const V1_CONTROLLERS: ReadonlySet<string> = new Set([
  "cpu",
  "cpuacct",
  "cpuset",
  "memory",
  "devices",
  "freezer",
  "blkio",
  "pids",
  "hugetlb",
  "net_cls",
  "net_prio",
  "perf_event",
  "rdma",
  "misc",
]);

/** Reads the text of /proc/self/mountinfo (proc(5)); mounts outside `mountRoot` are not ours. */
export function parseMounts(mountinfo: string, mountRoot: string): CgroupMounts {
  const v1 = new Map<string, CgroupMount>();
  const joined: CgroupMount[] = [];
  let v2: CgroupMount | null = null;
  for (const line of mountinfo.split("\n")) {
    const mounted = parseLine(line);
    if (mounted === null) continue;
    const mount = below(mounted.point, mountRoot);
    if (mount === null) continue;
    const found = { mount, writable: mounted.writable };
    if (mounted.type === "cgroup2") v2 ??= found;
    const isNamed = mounted.superOptions.some((name) => name.startsWith("name="));
    if (mount !== "" && (mounted.type === "cgroup2" || (mounted.type === "cgroup" && isNamed))) joined.push(found);
    if (mounted.type !== "cgroup") continue;
    for (const name of mounted.superOptions) if (V1_CONTROLLERS.has(name) && !v1.has(name)) v1.set(name, found);
  }
  return { v1, v2, joined, mountRoot };
}

/** Told with what a person can do about it. */
export const readOnlyMount = (what: string, point: string): string =>
  `${what} cannot be written (EROFS): ${point} is mounted read-only here, so what is decided is not in force; mount it rw for this daemon, or use \`mode: observe\``;

interface Mounted {
  readonly point: string;
  readonly writable: boolean;
  readonly type: string;
  readonly superOptions: readonly string[];
}

function parseLine(line: string): Mounted | null {
  const [left, right] = line.split(" - ");
  if (left === undefined || right === undefined) return null;
  const [, , , , point, options] = left.split(" ");
  const [type, , superOptions] = right.split(" ");
  if (point === undefined || options === undefined || type === undefined || superOptions === undefined) return null;
  const all = superOptions.split(",");
  const writable = options.split(",").includes("rw") && all.includes("rw");
  return { point: withoutEscapes(point), writable, type, superOptions: all };
}

/** mountinfo writes blanks and backslashes as octal. */
const withoutEscapes = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** One directory deep at most: nobody mounts hierarchies further down, and a mount name is one path segment. */
function below(point: string, mountRoot: string): string | null {
  const root = mountRoot.endsWith("/") ? mountRoot.slice(0, -1) : mountRoot;
  if (point === root) return "";
  if (!point.startsWith(`${root}/`)) return null;
  const rest = point.slice(root.length + 1);
  return rest === "" || rest.includes("/") ? null : rest;
}
