import { err, ok, type Result } from "../../api/base/result.ts";
import { settableControllers } from "../plan/cgroup-files.ts";
import { ancestorsOf, isCgroupPath, parentOf } from "../plan/step.ts";
import { type CgroupFsError, explained, explainWrite, ownError } from "./errors.ts";
import { type CgroupFs, type CgroupMounts, readOnlyMount, removeDir, walk } from "./files.ts";
import type { Hierarchy, ReadOnly, Support } from "./hierarchy.ts";

type CgroupFsResult<T> = Result<T, CgroupFsError>;
const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

/** cgroup v2: one tree; a controller is used below a cgroup when that cgroup's cgroup.subtree_control names it. */
export class HierarchyV2 implements Hierarchy {
  readonly version = 2;
  readonly root: string;
  readonly #fs: CgroupFs;
  readonly readOnly: ReadOnly;

  constructor(fs: CgroupFs, { v2, mountRoot }: CgroupMounts) {
    this.#fs = fs;
    this.root = fs.root;
    this.readOnly = v2?.writable === false ? [readOnlyMount("cgroup2", mountRoot)] : [];
  }

  /** Controllers that the root's parent delegates. INVARIANT: no controller above our own root is enabled. */
  support(): Support {
    const above = parentOf(this.root) ?? "/";
    const enabled = this.#fs.readAbove("", above, "cgroup.subtree_control");
    const given = enabled.ok ? words(enabled.value) : [];
    const unsupported: Record<string, string> = {};
    for (const name of settableControllers) {
      if (given.includes(name)) continue;
      const why = `is not in cgroup.subtree_control of ${above}: enable it there, or choose another root`;
      unsupported[name] = `controller ${name} ${why}`;
    }
    return { controllers: settableControllers.filter((name) => given.includes(name)), unsupported };
  }

  paths(): readonly string[] {
    if (this.#identity("/") === null) return [];
    return walk((path) => {
      const children = this.#fs.children({ mount: "", path });
      return children.ok ? children.value : [];
    });
  }

  identities(path: string): Readonly<Record<string, string>> {
    const identity = this.#identity(path);
    if (identity === null) return {};
    return Object.fromEntries(settableControllers.map((controller) => [controller, identity]));
  }

  identity(path: string, _controller: string): string | null {
    return this.#identity(path);
  }

  lacks(path: string): readonly string[] {
    const there = this.#controllersOf(path);
    return this.support().controllers.filter((controller) => !there.includes(controller));
  }

  processes(path: string): number {
    return this.pids(path).length;
  }
  pids(path: string): readonly number[] {
    const listed = this.#fs.read({ mount: "", path, file: "cgroup.procs" });
    return listed.ok ? words(listed.value).map(Number) : [];
  }

  fileNames(path: string): readonly string[] {
    const listing = this.#fs.list({ mount: "", path });
    return listing.ok ? listing.value.files : [];
  }

  read(path: string, file: string): CgroupFsResult<string> {
    return this.#fs.read({ mount: "", path, file });
  }

  readAbove(file: string): CgroupFsResult<string> {
    return this.#fs.readAbove("", parentOf(this.root) ?? "/", file);
  }

  async write(path: string, file: string, value: string): Promise<CgroupFsResult<void>> {
    if (file === "memory.max") {
      const room = await this.#makeRoom(path, value);
      if (!room.ok) return room;
    }
    const written = await this.#fs.write({ mount: "", path, file }, value);
    return written.ok ? written : err(explainWrite(written.error, (where, name) => this.#text(where, name)));
  }

  async create(path: string, controllers: readonly string[]): Promise<CgroupFsResult<void>> {
    if (!isCgroupPath(path))
      return err(ownError({ verb: "create", path }, "outside_root", "it is no path of a cgroup"));
    for (const ancestor of [...ancestorsOf(path)].reverse()) {
      const enabled = await this.#enable(ancestor, controllers);
      if (!enabled.ok) return enabled;
    }
    const made = this.#fs.mkdir({ mount: "", path });
    return made.ok || made.error.code === "exists" ? ok(undefined) : made;
  }

  async remove(path: string, controllers?: readonly string[]): Promise<CgroupFsResult<void>> {
    // A controller stays enabled in a cgroup that stays: it limits nothing by itself.
    return controllers === undefined ? removeDir(this.#fs, { mount: "", path }) : ok(undefined);
  }

  /** Runtimes use no other hierarchy here. */
  async sweep(): Promise<void> {}

  async #enable(path: string, controllers: readonly string[]): Promise<CgroupFsResult<void>> {
    const enabled = this.read(path, "cgroup.subtree_control");
    if (!enabled.ok) return enabled;
    const missing = controllers.filter((controller) => !words(enabled.value).includes(controller));
    if (missing.length === 0) return ok(undefined);
    const value = missing.map((controller) => `+${controller}`).join(" ");
    const written = await this.#fs.write({ mount: "", path, file: "cgroup.subtree_control" }, value);
    if (written.ok) return written;
    const processes = String(this.processes(path));
    return err(explained(written.error, { processes }, "a cgroup that hands down controllers may not hold processes"));
  }

  /**
   * Reclaims memory before a limit is lowered, and refuses a limit below the usage, as v1 does with EBUSY; v2 would
   * start to kill instead.
   */
  async #makeRoom(path: string, value: string): Promise<CgroupFsResult<void>> {
    if (!/^\d+$/.test(value)) return ok(undefined);
    const limit = BigInt(value);
    const excess = this.#usage(path) - limit;
    if (excess <= 0n) return ok(undefined);
    await this.#fs.write({ mount: "", path, file: "memory.reclaim" }, excess.toString());
    if (this.#usage(path) <= limit) return ok(undefined);
    const refused = ownError(
      { verb: "write", path, file: "memory.max", value },
      "busy",
      `tried \`${value}\`, not written`,
    );
    return err(explainWrite({ ...refused, errno: "EBUSY" }, (where, name) => this.#text(where, name)));
  }

  #usage(path: string): bigint {
    const usage = this.#text(path, "memory.current");
    return usage !== null && /^\d+$/.test(usage) ? BigInt(usage) : 0n;
  }

  #controllersOf(path: string): readonly string[] {
    const listed = this.read(path, "cgroup.controllers");
    return listed.ok ? words(listed.value) : [];
  }

  #identity(path: string): string | null {
    const identity = this.#fs.identity({ mount: "", path });
    return identity.ok ? identity.value : null;
  }

  #text(path: string, file: string): string | null {
    const found = this.read(path, file);
    return found.ok ? found.value : null;
  }
}
