import { err, ok, type Result } from "../../api/base/result.ts";
import { CPUSET_FILES, controllerOf, settableControllers } from "../plan/cgroup-files.ts";
import { isCgroupPath, parentOf } from "../plan/step.ts";
import { isPodCgroup } from "../plan/targets.ts";
import { type CgroupFsError, explained, explainWrite, ownError } from "./errors.ts";
import { type CgroupFs, type CgroupMounts, readOnlyMount, removeDir, removeTree, walk } from "./files.ts";
import type { Hierarchy, ReadOnly, Support } from "./hierarchy.ts";

type CgroupFsResult<T> = Result<T, CgroupFsError>;

/** cgroup v1: a cgroup is one directory in every controller's hierarchy. */
export class HierarchyV1 implements Hierarchy {
  readonly version = 1;
  readonly root: string;
  readonly #fs: CgroupFs;
  readonly #mounts: CgroupMounts;
  readonly #support: Support;
  readonly readOnly: ReadOnly;

  constructor(fs: CgroupFs, mounts: CgroupMounts) {
    this.#fs = fs;
    this.#mounts = mounts;
    this.root = fs.root;
    this.#support = supportOf(mounts);
    this.readOnly = readOnlyOf(mounts);
  }

  support(): Support {
    return this.#support;
  }

  paths(): readonly string[] {
    if (Object.keys(this.identities("/")).length === 0) return [];
    return walk((path) => this.#children(path));
  }

  identities(path: string): Readonly<Record<string, string>> {
    const found: Record<string, string> = {};
    for (const controller of this.#support.controllers) {
      const identity = this.identity(path, controller);
      if (identity !== null) found[controller] = identity;
    }
    return found;
  }

  identity(path: string, controller: string): string | null {
    if (!this.#support.controllers.includes(controller)) return null;
    const identity = this.#fs.identity({ mount: this.#mountOf(controller), path });
    return identity.ok ? identity.value : null;
  }

  lacks(path: string, there = this.identities(path)): readonly string[] {
    return this.#support.controllers.filter((controller) => there[controller] === undefined);
  }

  processes(path: string): number {
    return this.pids(path).length;
  }
  /** Each process once, although every hierarchy lists it. */
  pids(path: string): readonly number[] {
    const pids = new Set<number>();
    for (const mount of this.#mountNames()) {
      const listed = this.#fs.read({ mount, path, file: "cgroup.procs" });
      if (listed.ok) for (const pid of listed.value.split("\n")) if (pid !== "") pids.add(Number(pid));
    }
    return [...pids];
  }

  fileNames(path: string): readonly string[] {
    const names = this.#mountNames().flatMap((mount) => {
      const listing = this.#fs.list({ mount, path });
      return listing.ok ? listing.value.files : [];
    });
    return [...new Set(names)];
  }

  read(path: string, file: string): CgroupFsResult<string> {
    const mount = this.#mountFor(path, file);
    return mount.ok ? this.#fs.read({ mount: mount.value, path, file }) : mount;
  }

  readAbove(file: string): CgroupFsResult<string> {
    const mount = this.#mountFor("/", file);
    return mount.ok ? this.#fs.readAbove(mount.value, parentOf(this.root) ?? "/", file) : mount;
  }

  async write(path: string, file: string, value: string): Promise<CgroupFsResult<void>> {
    const mount = this.#mountFor(path, file);
    if (!mount.ok) return mount;
    const written = await this.#fs.write({ mount: mount.value, path, file }, value);
    return written.ok ? written : err(explainWrite(written.error, (where, name) => this.#text(where, name)));
  }

  async create(path: string, controllers: readonly string[]): Promise<CgroupFsResult<void>> {
    const made: string[] = [];
    for (const mount of this.#mountNames(controllers)) {
      const one = this.#fs.mkdir({ mount, path });
      if (one.ok) made.push(mount);
      else if (one.error.code !== "exists") {
        return this.#undo(path, made, explained(one.error, { hierarchy: mount }, ""));
      }
    }
    const ready = controllers.includes("cpuset") ? await this.#inheritCpuset(path) : ok(undefined);
    return ready.ok ? ready : this.#undo(path, made, ready.error);
  }

  async remove(path: string, controllers?: readonly string[]): Promise<CgroupFsResult<void>> {
    for (const mount of this.#mountNames(controllers)) {
      // a read-only mount would refuse even to remove a missing directory
      if (!this.#fs.identity({ mount, path }).ok) continue;
      const removed = await removeDir(this.#fs, { mount, path });
      if (!removed.ok) return removed;
    }
    if (controllers === undefined) for (const { mount } of this.#mounts.joined) await removeTree(this.#fs, mount, path);
    return ok(undefined);
  }

  /** INVARIANT: a pod has its cgroup before a runtime joins anything for it, so one without is over. */
  async sweep(): Promise<void> {
    for (const { mount } of this.#mounts.joined) await this.#sweepBelow(mount, "/");
  }

  async #sweepBelow(mount: string, path: string): Promise<void> {
    const children = this.#fs.children({ mount, path });
    for (const name of children.ok ? children.value : []) {
      const child = path === "/" ? `/${name}` : `${path}/${name}`;
      if (!isPodCgroup(child)) await this.#sweepBelow(mount, child);
      else if (!this.#isThere(child)) await removeTree(this.#fs, mount, child);
    }
  }

  #isThere(path: string): boolean {
    return this.#support.controllers.some((controller) => this.identity(path, controller) !== null);
  }

  async #undo(path: string, made: readonly string[], error: CgroupFsError): Promise<CgroupFsResult<void>> {
    for (const mount of made) await removeDir(this.#fs, { mount, path });
    return err(error);
  }

  /** Copies the parent's sets: a new v1 cpuset is empty, and accepts no process until both files have values. */
  async #inheritCpuset(path: string): Promise<CgroupFsResult<void>> {
    for (const file of CPUSET_FILES) {
      const own = this.read(path, file);
      if (!own.ok) return own;
      if (own.value !== "") continue;
      const parent = parentOf(path);
      const inherited = parent === null ? this.readAbove(file) : this.read(parent, file);
      if (!inherited.ok) return inherited;
      if (inherited.value === "") continue;
      const written = await this.write(path, file, inherited.value);
      if (!written.ok) return written;
    }
    return ok(undefined);
  }

  #text(path: string, file: string): string | null {
    const found = this.read(path, file);
    return found.ok ? found.value : null;
  }

  #children(path: string): readonly string[] {
    const names = this.#mountNames().flatMap((mount) => {
      const children = this.#fs.children({ mount, path });
      return children.ok ? children.value : [];
    });
    return [...new Set(names)].sort();
  }

  #mountOf(controller: string): string {
    return this.#mounts.v1.get(controller)?.mount ?? "";
  }

  #mountNames(controllers: readonly string[] = this.#support.controllers): readonly string[] {
    return [...new Set(controllers.map((controller) => this.#mountOf(controller)))];
  }

  #mountFor(path: string, file: string): CgroupFsResult<string> {
    const controller = file.startsWith("cgroup.") ? this.#support.controllers[0] : controllerOf(file);
    if (controller !== undefined && this.#support.controllers.includes(controller))
      return ok(this.#mountOf(controller));
    const why = this.#support.unsupported[controller ?? ""] ?? `no writable hierarchy of \`${controller}\``;
    return err(ownError({ verb: "read", path, file }, isCgroupPath(path) ? "unsupported" : "outside_root", why));
  }
}

/** A controller that can only be read counts as well: writes to it fail visibly, and are not left out. */
function supportOf({ v1, v2 }: CgroupMounts): Support {
  const controllers = [...v1]
    .filter(([name, { mount, writable }]) => mount !== "" && (writable || isSettable(name)))
    // read-only hierarchies first: if one refuses, no other is changed
    .toSorted(([, a], [, b]) => Number(a.writable) - Number(b.writable))
    .map(([name]) => name);
  const unsupported: Record<string, string> = {};
  for (const name of settableControllers) {
    if (controllers.includes(name)) continue;
    const elsewhere = v2 === null ? "" : ` (cgroup2 is mounted at \`${v2.mount}\` and may hold it)`;
    unsupported[name] = `controller ${name} is mounted in no v1 hierarchy${elsewhere}`;
  }
  return { controllers, unsupported };
}

const isSettable = (name: string): boolean => settableControllers.some((one) => one === name);

const readOnlyOf = ({ v1, mountRoot }: CgroupMounts): ReadOnly =>
  [...v1]
    .filter(([name, { writable }]) => !writable && isSettable(name))
    .map(([name, { mount }]) => readOnlyMount(`controller ${name}`, `${mountRoot}/${mount}`));
