import {
  constants,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  statfsSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { err, ok, type Result } from "../../api/base/result.ts";
import { ruleOf } from "../plan/cgroup-files.ts";
import { isBelow, isCgroupPath } from "../plan/step.ts";
import { type Attempt, type CgroupFsError, kernelError, ownError } from "./errors.ts";

/** A hierarchy below the mount root. */
interface CgroupMount {
  /** Place below the mount root: `cpu,cpuacct`, `memory`; empty when it is the mount root itself. */
  readonly mount: string;
  readonly writable: boolean;
}

export interface CgroupMounts {
  /** v1 hierarchies by controller; co-mounted controllers share one. */
  readonly v1: ReadonlyMap<string, CgroupMount>;
  /** The mount of cgroup v2: the whole tree (empty mount) or, on a hybrid machine, a directory beside v1. */
  readonly v2: CgroupMount | null;
  /**
   * Hierarchies that runtimes use without one of our controllers: named ones (`name=systemd`), and cgroup v2 beside v1.
   */
  readonly joined: readonly CgroupMount[];
  /** The parent directory of all mounts: `/sys/fs/cgroup`. */
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

/** The error about a read-only mount, with advice. */
export const readOnlyMount = (what: string, point: string): string =>
  `${what} cannot be written (EROFS): ${point} is mounted read-only here, so what is decided is not in force; mount it rw for this daemon, or use \`mode: observe\``;

interface MountPoint {
  readonly point: string;
  readonly writable: boolean;
  readonly type: string;
  readonly superOptions: readonly string[];
}

function parseLine(line: string): MountPoint | null {
  const [left, right] = line.split(" - ");
  if (left === undefined || right === undefined) return null;
  const [, , , , point, options] = left.split(" ");
  const [type, , superOptions] = right.split(" ");
  if (point === undefined || options === undefined || type === undefined || superOptions === undefined) return null;
  const all = superOptions.split(",");
  const writable = options.split(",").includes("rw") && all.includes("rw");
  return { point: withoutEscapes(point), writable, type, superOptions: all };
}

/** Paths of proc_pid_mountinfo(5), which writes blanks and backslashes as octal. */
export const withoutEscapes = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The mount's name below `mountRoot`, one path segment; null: it is elsewhere or deeper. */
function below(point: string, mountRoot: string): string | null {
  const root = mountRoot.endsWith("/") ? mountRoot.slice(0, -1) : mountRoot;
  if (point === root) return "";
  if (!point.startsWith(`${root}/`)) return null;
  const rest = point.slice(root.length + 1);
  return rest === "" || rest.includes("/") ? null : rest;
}

const TRIES = 6;
const FIRST_WAIT_MS = 5;

/**
 * Removes a directory. A process that has just ended keeps its cgroup busy for a moment, so EBUSY is retried, six
 * times within 155 ms, unless there is a child cgroup. A missing directory counts as removed.
 */
export async function removeDir(fs: CgroupFs, dir: Dir): Promise<Result<void, CgroupFsError>> {
  for (let attempt = 1; ; attempt++) {
    const removed = fs.rmdir(dir);
    if (removed.ok || removed.error.code === "not_found") return ok(undefined);
    if (removed.error.code !== "busy" || attempt === TRIES || hasChildren(fs, dir)) return removed;
    await sleep(FIRST_WAIT_MS * 2 ** (attempt - 1));
  }
}

/** Removes the empty cgroups of a tree; a cgroup in use stays, with its ancestors. */
export async function removeTree(fs: CgroupFs, mount: string, path: string): Promise<void> {
  const childrenOf = (at: string): readonly string[] => {
    const children = fs.children({ mount, path: at });
    return children.ok ? children.value : [];
  };
  for (const at of walk(childrenOf, path).toReversed()) await removeDir(fs, { mount, path: at });
}

function hasChildren(fs: CgroupFs, dir: Dir): boolean {
  const listing = fs.list(dir);
  return listing.ok && listing.value.dirs.length > 0;
}

/** A path, by default the root, and those below it that `children` lists, parents first. */
export function walk(children: (path: string) => readonly string[], from = "/"): string[] {
  const found = [from];
  for (const path of found)
    found.push(...children(path).map((name) => (path === "/" ? `/${name}` : `${path}/${name}`)));
  return found;
}

/** The directory of a hierarchy, with and without symbolic links resolved. */
interface Mounted {
  readonly base: string;
  readonly realBase: string;
  readonly isCgroupfs: boolean;
}

/** statfs(2): magic numbers of cgroup v1 and v2. */
const CGROUPFS: ReadonlySet<number> = new Set([0x27e0eb, 0x63677270]);

/** Looks each mount up once. Throws the system's errors. */
function mountsBelow(mountRoot: string): (mount: string) => Mounted {
  const known = new Map<string, Mounted>();
  return (mount) => {
    const seen = known.get(mount);
    if (seen !== undefined) return seen;
    const base = join(mountRoot, mount);
    const found = { base, realBase: realpathSync.native(base), isCgroupfs: CGROUPFS.has(statfsSync(base).type) };
    known.set(mount, found);
    return found;
  };
}

/** Reads a file, never through a symbolic link in the last segment, and drops the final line end. */
function readText(file: string): string {
  return readFileSync(file, { encoding: "utf8", flag: PLAIN }).trimEnd();
}
// open(2) also takes numeric flags, which the types lack
const PLAIN = (constants.O_RDONLY | constants.O_NOFOLLOW) as unknown as string;

/** A cgroup's directory: its mount, by its place below the mount root (`cpu,cpuacct`; empty for v2), and its path below the own root. */
export interface Dir {
  readonly mount: string;
  readonly path: string;
}
export interface FilePath extends Dir {
  readonly file: string;
}
export interface Listing {
  readonly dirs: readonly string[];
  readonly files: readonly string[];
}
type CgroupFsResult<T> = Result<T, CgroupFsError>;

/**
 * The only access to the cgroup files.
 * INVARIANT: nothing outside the own root is ever created, written or removed; only the root's ancestors may be read.
 * INVARIANT: with read access nothing is created, written or removed; only then may the root be `/`.
 * Writing is asynchronous because the kernel may reclaim memory before it returns; nothing else waits.
 */
export interface CgroupFs {
  /** The path of our own cgroup in each mount: `/nodewise`. */
  readonly root: string;
  read(place: FilePath): CgroupFsResult<string>;
  /** Reads a file of an ancestor of the own root; `ancestor` counts from the mount, `/` is its top. */
  readAbove(mount: string, ancestor: string, file: string): CgroupFsResult<string>;
  write(place: FilePath, value: string): Promise<CgroupFsResult<void>>;
  mkdir(dir: Dir): CgroupFsResult<void>;
  rmdir(dir: Dir): CgroupFsResult<void>;
  list(dir: Dir): CgroupFsResult<Listing>;
  /** Names of the cgroups right below, sorted. */
  children(dir: Dir): CgroupFsResult<readonly string[]>;
  /** Inode number of the directory: two cgroups of one path at different times differ in it. */
  identity(dir: Dir): CgroupFsResult<string>;
}

const READABLE = /^(cgroup|cpu|cpuset|cpuacct|memory|pids|hugetlb|io|blkio|freezer)\.[A-Za-z0-9_.]{1,80}$/;
const OWN_FILES: ReadonlySet<string> = new Set(["cgroup.subtree_control", "memory.reclaim"]);
const isWritable = (file: string): boolean =>
  OWN_FILES.has(file) || ruleOf(1, file) !== null || ruleOf(2, file) !== null;

export type Access = "write" | "read";

/**
 * `mountRoot` is where the hierarchies are mounted (`/sys/fs/cgroup`), `root` a cgroup of our own below each of them; with
 * read access also `/`, which includes the cgroups of others.
 */
export function openCgroupFs(mountRoot: string, root: string, access: Access = "write"): CgroupFsResult<CgroupFs> {
  const attempt: Attempt = { verb: "list", path: root };
  if (!isCgroupPath(root) || (root === "/" && access === "write")) {
    return err(ownError(attempt, "outside_root", "the root must be a cgroup of its own, such as `/nodewise`"));
  }
  try {
    return ok(new RealCgroupFs(realpathSync.native(mountRoot), root, access));
  } catch (cause) {
    return err(kernelError({ verb: "list", path: mountRoot }, cause));
  }
}

class RealCgroupFs implements CgroupFs {
  readonly root: string;
  readonly #mounted: (mount: string) => Mounted;
  readonly #access: Access;

  constructor(mountRoot: string, root: string, access: Access) {
    this.#mounted = mountsBelow(mountRoot);
    this.root = root;
    this.#access = access;
  }

  read({ mount, path, file }: FilePath): CgroupFsResult<string> {
    const attempt: Attempt = { verb: "read", path, file };
    if (!READABLE.test(file)) return err(ownError(attempt, "bad_name", "this is not a cgroup file"));
    return this.#inside(attempt, mount, path, (dir) => readText(`${dir}/${file}`));
  }

  readAbove(mount: string, ancestor: string, file: string): CgroupFsResult<string> {
    const attempt: Attempt = { verb: "read", path: ancestor, file };
    if (!READABLE.test(file)) return err(ownError(attempt, "bad_name", "this is not a cgroup file"));
    // the top has no parent, so it is its own ancestor
    const isTop = this.root === "/" && ancestor === "/";
    if (!isCgroupPath(ancestor) || !(isTop || isBelow(this.root, ancestor))) {
      return err(ownError(attempt, "outside_root", `it is no ancestor of ${this.root}`));
    }
    return this.#real(attempt, mount, ancestor, (dir) => readText(`${dir}/${file}`));
  }

  async write({ mount, path, file }: FilePath, value: string): Promise<CgroupFsResult<void>> {
    const attempt: Attempt = { verb: "write", path, file, value };
    if (this.#access === "read") return readOnly(attempt);
    if (!isWritable(file)) return err(ownError(attempt, "bad_name", "this is not a file that may be written"));
    if (!/^[ -~]{0,4095}$/.test(value))
      return err(ownError(attempt, "bad_value", "only one line of plain text is written"));
    const target = this.#inside(attempt, mount, path, (dir) => join(dir, file));
    if (!target.ok) return target;
    try {
      const handle = await open(target.value, constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW);
      try {
        // A cpuset is emptied by a line end; a write of nothing is no write.
        await handle.write(value === "" ? "\n" : value);
      } finally {
        await handle.close();
      }
      return ok(undefined);
    } catch (cause) {
      return err(kernelError(attempt, cause));
    }
  }

  mkdir({ mount, path }: Dir): CgroupFsResult<void> {
    return this.#entry({ verb: "create", path }, mount, (entry) => mkdirSync(entry, { mode: 0o755 }));
  }

  rmdir({ mount, path }: Dir): CgroupFsResult<void> {
    return this.#entry({ verb: "remove", path }, mount, (entry) => rmdirSync(entry));
  }

  list({ mount, path }: Dir): CgroupFsResult<Listing> {
    return this.#inside({ verb: "list", path }, mount, path, listing);
  }

  /** The child cgroups. cgroupfs counts them in the directory's links, so most cgroups (leaves) need no listing. */
  children({ mount, path }: Dir): CgroupFsResult<readonly string[]> {
    return this.#inside({ verb: "list", path }, mount, path, (dir, isCgroupfs) =>
      isCgroupfs && lstatSync(dir).nlink === LINKS_OF_A_LEAF ? [] : listing(dir).dirs,
    );
  }

  identity({ mount, path }: Dir): CgroupFsResult<string> {
    return this.#inside({ verb: "list", path }, mount, path, (dir) => String(lstatSync(dir, { bigint: true }).ino));
  }

  /** A directory that is itself created or removed: its parent must be real, the last segment is one plain name. */
  #entry(attempt: Attempt, mount: string, act: (entry: string) => void): CgroupFsResult<void> {
    const { path } = attempt;
    if (this.#access === "read") return readOnly(attempt);
    if (!isCgroupPath(path)) return err(ownError(attempt, "outside_root", `it is no path below ${this.root}`));
    const full = this.#fromMount(path);
    const cut = full.lastIndexOf("/");
    return this.#real(attempt, mount, full.slice(0, cut) || "/", (dir) => act(join(dir, full.slice(cut + 1))));
  }

  #inside<T>(
    attempt: Attempt,
    mount: string,
    path: string,
    act: (dir: string, isCgroupfs: boolean) => T,
  ): CgroupFsResult<T> {
    if (!isCgroupPath(path)) return err(ownError(attempt, "outside_root", `it is no path below ${this.root}`));
    return this.#real(attempt, mount, this.#fromMount(path), act);
  }

  #fromMount(path: string): string {
    if (this.root === "/") return path;
    return path === "/" ? this.root : this.root + path;
  }

  /**
   * Runs `act` on a directory only if its path contains no symbolic link. cgroupfs has none, so checking the mount is
   * enough there; on other file systems the whole path is checked.
   */
  #real<T>(
    attempt: Attempt,
    mount: string,
    fromMount: string,
    act: (dir: string, isCgroupfs: boolean) => T,
  ): CgroupFsResult<T> {
    if (mount !== "" && (mount.includes("/") || !isCgroupPath(`/${mount}`))) {
      return err(ownError(attempt, "outside_root", `\`${mount}\` is not the name of a mount`));
    }
    try {
      const { base, realBase, isCgroupfs } = this.#mounted(mount);
      const dir = fromMount === "/" ? base : base + fromMount;
      const real = isCgroupfs && realBase === base ? dir : realpathSync.native(dir);
      if (real !== dir) return err(ownError(attempt, "outside_root", `it leads to \`${real}\``));
      return ok(act(dir, isCgroupfs));
    } catch (cause) {
      return err(kernelError(attempt, cause));
    }
  }
}

/** Itself, and its entry in the directory above. */
const LINKS_OF_A_LEAF = 2;

function listing(dir: string): Listing {
  const entries = readdirSync(dir, { withFileTypes: true });
  const names = (wanted: boolean): string[] => entries.filter((e) => e.isDirectory() === wanted).map((e) => e.name);
  return { dirs: names(true).sort(), files: names(false).sort() };
}

const readOnly = (attempt: Attempt): CgroupFsResult<never> =>
  err(ownError(attempt, "denied", "this hierarchy was opened for reading only"));
