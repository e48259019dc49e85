import { closeSync, constants, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import { ownFolder } from "../folder.ts";
import { readStateFiles, type StateFiles } from "../machine/state-files.ts";

const PATHS: Readonly<Record<string, string>> = {
  cpu_manager_state: "cpu_manager_state",
  memory_manager_state: "memory_manager_state",
  kubelet_internal_checkpoint: "device-plugins/kubelet_internal_checkpoint",
};

/**
 * Who has which CPUs, memory and devices: the kubelet's own state files, kept in a directory of the daemon. They are read
 * once; whoever changes them meanwhile is overruled by the next change.
 */
export class ManagerFiles {
  readonly directory: string;
  #files: StateFiles;
  #version = 1;

  constructor(directory: string) {
    this.directory = directory;
    this.#files = readStateFiles(directory);
  }

  /** Grows with each change. */
  get version(): number {
    return this.#version;
  }
  read(): StateFiles {
    return this.#files;
  }

  /** `next` of a decision of the managers. INVARIANT: on the disk when it succeeds. True: something changed. */
  keep(next: unknown): Result<boolean, string> {
    const { assignments } = (next ?? {}) as { readonly assignments?: Readonly<Record<string, string>> };
    if (assignments === undefined) return ok(false);
    const known = this.#files.assignments ?? {};
    const changed = Object.entries(assignments).filter(([name, text]) => known[name] !== text && name in PATHS);
    if (changed.length === 0) return ok(false);
    try {
      for (const [name, text] of changed) replaceText(join(this.directory, PATHS[name] as string), text);
    } catch (e) {
      return err(`state files in ${this.directory}: ${(e as Error).message}`);
    }
    this.#version++;
    this.#files = { assignments: { ...known, ...Object.fromEntries(changed) }, missing: [] };
    return ok(true);
  }
}

/** At every moment either the old or the new text is there, as the kubelet's own reader wants it: without a line's end. */
function replaceText(file: string, text: string): void {
  ownFolder(dirname(file));
  const fresh = `${file}.new`;
  const fd = openSync(fresh, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o600);
  try {
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(fresh, file);
}
