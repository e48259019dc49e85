import { type Attempt, type CgroupFsError, kernelError, ownError } from "../../../actuator/cgroupfs/errors.ts";
import type { CgroupFs, Dir, FilePath, Listing } from "../../../actuator/cgroupfs/files.ts";
import { isCgroupPath } from "../../../actuator/plan/step.ts";
import { err, ok, type Result } from "../../../api/base/result.ts";

/** A kernel's answer to a write: an errno, or the text that the file then holds. */
export type Verdict = { readonly errno: string } | { readonly text: string };
export const refuse = (errno: string): Verdict => ({ errno });
export const keep = (text: string): Verdict => ({ text });

export class SimCgroup {
  readonly parent: SimCgroup | null;
  readonly name: string;
  readonly ino: number;
  readonly children = new Map<string, SimCgroup>();
  readonly files = new Map<string, string>();
  readonly processes = new Set<number>();
  /** Bytes in use, and how many of them the kernel can reclaim. */
  usage = 0n;
  reclaimable = 0n;

  constructor(parent: SimCgroup | null, name: string, ino: number) {
    this.parent = parent;
    this.name = name;
    this.ino = ino;
  }

  get path(): string {
    if (this.parent === null) return "";
    return `${this.parent.path}/${this.name}`;
  }

  *subtree(): Generator<SimCgroup> {
    yield this;
    for (const child of this.children.values()) yield* child.subtree();
  }
}

/** The differences between cgroup v1 and v2: the files of a new cgroup, and the kernel's answer to a write. */
export interface SimRules {
  readonly version: 1 | 2;
  readonly mounts: readonly string[];
  /** Writes the files of a new cgroup or of a hierarchy's root. */
  fill(cgroup: SimCgroup, mount: string): void;
  write(cgroup: SimCgroup, file: string, value: string): Verdict;
}

/** Cgroups in memory that follow the kernel's rules: a write that the kernel refuses fails with the same errno. */
export class SimKernel {
  readonly rules: SimRules;
  readonly tops = new Map<string, SimCgroup>();
  /** Runs before every change through the interface of `open`; throwing in it ends a process part-way. */
  beforeChange: () => void = () => undefined;
  /**
   * The errno for paths that `open`'s interface may not change: a read-only mount, or a file without write permission.
   */
  denied: (at: Dir & { readonly file?: string }) => string | null = () => null;
  /** Runs after every accepted write through the interface of `open`. */
  afterWrite: (place: FilePath, value: string) => void = () => undefined;
  #ino = 1;

  constructor(rules: SimRules) {
    this.rules = rules;
    for (const mount of rules.mounts) {
      const top = new SimCgroup(null, "", this.#ino++);
      rules.fill(top, mount);
      this.tops.set(mount, top);
    }
  }

  /** The cgroup at a path relative to the mount, or undefined. */
  find(mount: string, full: string): SimCgroup | undefined {
    let at = this.tops.get(mount);
    for (const name of full.split("/").filter((part) => part !== "")) at = at?.children.get(name);
    return at;
  }

  mkdir(mount: string, full: string): string | null {
    const cut = full.lastIndexOf("/");
    const parent = this.find(mount, full.slice(0, cut));
    const name = full.slice(cut + 1);
    if (parent === undefined) return "ENOENT";
    if (parent.children.has(name)) return "EEXIST";
    const made = new SimCgroup(parent, name, this.#ino++);
    parent.children.set(name, made);
    this.rules.fill(made, mount);
    return null;
  }

  rmdir(mount: string, full: string): string | null {
    const found = this.find(mount, full);
    if (found === undefined || found.parent === null) return "ENOENT";
    if (found.children.size > 0 || found.processes.size > 0) return "EBUSY";
    found.parent.children.delete(found.name);
    return null;
  }

  /** Writes as any process of the machine may. */
  write(mount: string, full: string, file: string, value: string): string | null {
    const found = this.find(mount, full);
    if (found === undefined || !found.files.has(file)) return "ENOENT";
    const verdict = this.rules.write(found, file, value.trim());
    if ("errno" in verdict) return verdict.errno;
    found.files.set(file, verdict.text);
    return null;
  }

  /**
   * Every setting of every cgroup, as one comparable text. Values that v2 only passes down limit nothing and are left
   * out.
   */
  dump(): string {
    const lines: string[] = [];
    for (const [mount, top] of this.tops) {
      for (const cgroup of top.subtree()) {
        lines.push(`${mount}${cgroup.path}`);
        for (const [file, text] of cgroup.files) {
          if (!file.startsWith("cgroup.")) lines.push(`${mount}${cgroup.path} ${file} ${text}`);
        }
      }
    }
    return lines.sort().join("\n");
  }

  /** The file access that the actuator uses. */
  open(root: string): CgroupFs {
    return new SimFs(this, root);
  }
}

class SimFs implements CgroupFs {
  readonly root: string;
  readonly #kernel: SimKernel;

  constructor(kernel: SimKernel, root: string) {
    this.#kernel = kernel;
    this.root = root;
  }

  read({ mount, path, file }: FilePath): Result<string, CgroupFsError> {
    return this.#at({ verb: "read", path, file }, mount, this.#full(path), (c) => textOf(c, file));
  }

  readAbove(mount: string, ancestor: string, file: string): Result<string, CgroupFsError> {
    return this.#at({ verb: "read", path: ancestor, file }, mount, ancestor, (c) => textOf(c, file));
  }

  async write(place: FilePath, value: string): Promise<Result<void, CgroupFsError>> {
    const { mount, path, file } = place;
    const attempt: Attempt = { verb: "write", path, file, value };
    if (!isCgroupPath(path)) return err(ownError(attempt, "outside_root", "no path"));
    this.#kernel.beforeChange();
    const errno = this.#kernel.denied(place) ?? this.#kernel.write(mount, this.#full(path), file, value);
    if (errno !== null) return err(kernelError(attempt, fault(errno)));
    this.#kernel.afterWrite(place, value);
    return ok(undefined);
  }

  mkdir({ mount, path }: Dir): Result<void, CgroupFsError> {
    if (!isCgroupPath(path)) return err(ownError({ verb: "create", path }, "outside_root", "no path"));
    this.#kernel.beforeChange();
    const isThere = this.#kernel.find(mount, this.#full(path)) !== undefined;
    const denied = isThere ? null : this.#kernel.denied({ mount, path });
    const errno = denied ?? this.#kernel.mkdir(mount, this.#full(path));
    return errno === null ? ok(undefined) : err(kernelError({ verb: "create", path }, fault(errno)));
  }

  rmdir({ mount, path }: Dir): Result<void, CgroupFsError> {
    this.#kernel.beforeChange();
    const errno = this.#kernel.denied({ mount, path }) ?? this.#kernel.rmdir(mount, this.#full(path));
    return errno === null ? ok(undefined) : err(kernelError({ verb: "remove", path }, fault(errno)));
  }

  list({ mount, path }: Dir): Result<Listing, CgroupFsError> {
    return this.#at({ verb: "list", path }, mount, this.#full(path), (cgroup) => ({
      dirs: [...cgroup.children.keys()].sort(),
      files: [...cgroup.files.keys()].sort(),
    }));
  }

  children({ mount, path }: Dir): Result<readonly string[], CgroupFsError> {
    return this.#at({ verb: "list", path }, mount, this.#full(path), (c) => [...c.children.keys()].sort());
  }

  identity({ mount, path }: Dir): Result<string, CgroupFsError> {
    return this.#at({ verb: "list", path }, mount, this.#full(path), (cgroup) => String(cgroup.ino));
  }

  #full(path: string): string {
    return path === "/" ? this.root : this.root + path;
  }

  #at<T>(
    attempt: Attempt,
    mount: string,
    full: string,
    use: (cgroup: SimCgroup) => T | undefined,
  ): Result<T, CgroupFsError> {
    if (!isCgroupPath(attempt.path)) return err(ownError(attempt, "outside_root", "no path"));
    const cgroup = this.#kernel.find(mount, full);
    const found = cgroup === undefined ? undefined : use(cgroup);
    return found === undefined ? err(kernelError(attempt, fault("ENOENT"))) : ok(found);
  }
}

function textOf(cgroup: SimCgroup, file: string): string | undefined {
  if (file === "cgroup.procs") return [...cgroup.processes].join("\n");
  if (file === "memory.usage_in_bytes" || file === "memory.current") return cgroup.usage.toString();
  return cgroup.files.get(file);
}

const fault = (code: string): Error => Object.assign(new Error(code), { code });
