import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CgroupFsError } from "../../../actuator/cgroupfs/errors.ts";
import {
  type CgroupFs,
  type Dir,
  type FilePath,
  type Listing,
  openCgroupFs,
} from "../../../actuator/cgroupfs/files.ts";
import type { Result } from "../../../api/base/result.ts";
import { mountinfoV1, v1Files } from "./sim-v1.ts";
import { mountinfoV2, v2Controllers, v2Files } from "./sim-v2.ts";

type Answer<T> = Result<T, CgroupFsError>;
const V1_MOUNTS = ["cpu", "cpuset", "memory", "pids", "cpuacct"];

export interface TempTree {
  readonly mountRoot: string;
  readonly mountinfo: string;
  readonly fs: CgroupFs;
  remove(): void;
}

/** Plain directories and files with the text of a new cgroup, accessed through the real file access. */
export function tempTree(version: 1 | 2, root: string): TempTree {
  const mountRoot = realpathSync(mkdtempSync(join(tmpdir(), "nodewise-cgroups-")));
  if (version === 1) {
    for (const mount of V1_MOUNTS) mkdirSync(join(mountRoot, mount));
    writeFileSync(join(mountRoot, "cpuset/cpuset.cpus"), "0-1\n");
    writeFileSync(join(mountRoot, "cpuset/cpuset.mems"), "0\n");
  } else {
    writeFileSync(join(mountRoot, "cgroup.controllers"), `${v2Controllers.join(" ")}\n`);
    writeFileSync(join(mountRoot, "cgroup.subtree_control"), `${v2Controllers.join(" ")}\n`);
  }
  const door = openCgroupFs(mountRoot, root);
  if (!door.ok) throw new Error(door.error.message);
  return {
    mountRoot,
    mountinfo: version === 1 ? mountinfoV1(mountRoot) : mountinfoV2(mountRoot),
    fs: new TempFs(door.value, mountRoot, version),
    remove: () => rmSync(mountRoot, { recursive: true }),
  };
}

/** Imitates cgroupfs: a new directory contains its files, and they are removed with it. */
class TempFs implements CgroupFs {
  readonly root: string;
  readonly #door: CgroupFs;
  readonly #mountRoot: string;
  readonly #version: 1 | 2;

  constructor(door: CgroupFs, mountRoot: string, version: 1 | 2) {
    this.#door = door;
    this.#mountRoot = mountRoot;
    this.#version = version;
    this.root = door.root;
  }

  read = (place: FilePath): Answer<string> => this.#door.read(place);
  readAbove = (mount: string, ancestor: string, file: string): Answer<string> =>
    this.#door.readAbove(mount, ancestor, file);
  list = (dir: Dir): Answer<Listing> => this.#door.list(dir);
  children = (dir: Dir): Answer<readonly string[]> => this.#door.children(dir);
  identity = (dir: Dir): Answer<string> => this.#door.identity(dir);

  async write(place: FilePath, value: string): Promise<Answer<void>> {
    if (place.file !== "cgroup.subtree_control") return this.#door.write(place, value);
    const had = this.#door.read(place);
    if (!had.ok) return had;
    const enabled = new Set([...had.value.split(" "), ...value.split(" ").map((word) => word.slice(1))]);
    return this.#door.write(place, [...enabled].filter((word) => word !== "").join(" "));
  }

  mkdir(dir: Dir): Answer<void> {
    const made = this.#door.mkdir(dir);
    if (!made.ok) return made;
    const directory = this.#directory(dir);
    for (const [file, text] of Object.entries(this.#files(dir.mount, join(directory, "..")))) {
      writeFileSync(join(directory, file), `${text}\n`);
    }
    return made;
  }

  rmdir(dir: Dir): Answer<void> {
    const listing = this.#door.list(dir);
    if (listing.ok && listing.value.dirs.length === 0) {
      for (const file of listing.value.files) unlinkSync(join(this.#directory(dir), file));
    }
    return this.#door.rmdir(dir);
  }

  #directory({ mount, path }: Dir): string {
    return join(this.#mountRoot, mount, this.root, path);
  }

  #files(mount: string, parent: string): Readonly<Record<string, string>> {
    if (this.#version === 1) return { "cgroup.procs": "", ...v1Files(mount) };
    const controllers = readFileSync(join(parent, "cgroup.subtree_control"), "utf8").trim();
    const own = { "cgroup.procs": "", "cgroup.controllers": controllers, "cgroup.subtree_control": "" };
    return { ...own, ...v2Files(controllers.split(" ")) };
  }
}
