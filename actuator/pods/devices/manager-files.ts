import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { LIMITS } from "../../../api/base/limits.ts";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { DeviceCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import type { CheckpointFault } from "../../../api/decide/devices/checkpoint-read.ts";
import { DRA_STATE_FILE } from "../../../api/decide/dra/checkpoint.ts";
import { ownFolder, replaceText } from "../../core/record-file.ts";
import { readStateFiles, type StateFiles } from "../../machine/files.ts";
import { checkpointOf, DEVICE_CHECKPOINT, redactFiles, textOf } from "./checkpoint-entries.ts";

const PATHS: Readonly<Record<string, string>> = {
  cpu_manager_state: "cpu_manager_state",
  memory_manager_state: "memory_manager_state",
  [DRA_STATE_FILE]: DRA_STATE_FILE,
  [DEVICE_CHECKPOINT]: `device-plugins/${DEVICE_CHECKPOINT}`,
};

/**
 * The assignments of CPUs, memory and devices: the kubelet's own state files, kept in a directory of the daemon. They are read
 * once; a change that anyone else makes meanwhile is overwritten by the next change.
 */
export class ManagerFiles {
  readonly directory: string;
  #files: StateFiles;
  #version = 1;
  /** The last text of each file that could not be written. */
  readonly #unwritten = new Map<string, PendingWrite>();

  constructor(directory: string) {
    this.directory = directory;
    this.#files = readStateFiles(directory);
  }

  /** Increases with each change of assigned CPUs and memory, on which cgroups depend. */
  get version(): number {
    return this.#version;
  }
  read(): StateFiles {
    return this.#files;
  }

  /** The files as decisions receive them: without plugins' answers. */
  redacted(): StateFiles {
    return redactFiles(this.#files);
  }

  /** The path of a state file. */
  pathOf(name: string): string {
    return join(this.directory, PATHS[name] as string);
  }

  /** A kubelet message about one of its state files, with the file's path in this daemon. */
  explained(message: string): string {
    const here = Object.keys(PATHS).flatMap((name) =>
      message.includes(`/${name}"`)
        ? [`; here that is "${this.pathOf(name)}", to be deleted while the daemon does not run`]
        : [],
    );
    return `${message}${here.join("")}`;
  }

  /**
   * Stores the `next` of a manager decision. INVARIANT: on success the files and their names are on disk. True: something changed.
   * A text that is too large to be read back is not written: on such an error all files are unchanged.
   */
  persist(next: unknown): Result<boolean, string> {
    const { assignments } = (next ?? {}) as { readonly assignments?: Readonly<Record<string, string>> };
    if (assignments === undefined) return ok(false);
    const known = this.#files.assignments ?? {};
    const changed = Object.entries(assignments).filter(([name, text]) => known[name] !== text && name in PATHS);
    if (changed.length === 0) return ok(false);
    for (const [name, text] of changed) {
      const fault = sizeFault(name, text);
      if (fault !== undefined) return this.#failed(name, null, fault);
    }
    for (const [name, text] of changed) {
      const fault = this.#write(this.pathOf(name), text);
      if (fault !== undefined) return this.#failed(name, text, fault);
      this.#unwritten.delete(name);
    }
    if (changed.some(([name]) => name !== DEVICE_CHECKPOINT && name !== DRA_STATE_FILE)) this.#version++;
    this.#files = { assignments: { ...known, ...Object.fromEntries(changed) }, missing: [] };
    return ok(true);
  }

  /** Why a file is not up to date: the last write failed; undefined: it is up to date. */
  unwritten(name: string): string | undefined {
    return this.#unwritten.get(name)?.message;
  }
  /** Lists the write failures of all files. */
  unwrittenAll(): readonly string[] {
    return [...this.#unwritten.values()].map(({ message }) => message);
  }
  /** Checks whether the disk has room again for an unwritten text. It does not write the text itself. */
  tryAgain(): boolean {
    let isBetter = false;
    for (const [name, { text, atMs }] of [...this.#unwritten]) {
      const stays = text === null ? performance.now() - atMs < SIZE_STANDS_MS : !this.#canWrite(name, text);
      if (!stays) isBetter = this.#unwritten.delete(name);
    }
    return isBetter;
  }

  #failed(name: string, text: string | null, fault: string): Result<never, string> {
    const message = `state files in ${this.directory}: ${fault}`;
    this.#unwritten.set(name, { message, text, atMs: performance.now() });
    return err(message);
  }
  #canWrite(name: string, text: string): boolean {
    const probe = `${this.pathOf(name)}.probe`;
    const fault = this.#write(probe, text);
    rmSync(probe, { force: true });
    return fault === undefined;
  }
  /** Returns the error; undefined: the text is written. */
  #write(file: string, text: string): string | undefined {
    try {
      ownFolder(dirname(file));
      // without a line feed at the end, which the kubelet's own reader requires
      replaceText(file, text);
      return undefined;
    } catch (e) {
      return (e as Error).message;
    }
  }
}

interface PendingWrite {
  readonly message: string;
  /** Null: the text is too large, and is never tried again unchanged. */
  readonly text: string | null;
  readonly atMs: number;
}
const SIZE_STANDS_MS = 60_000;

/** Checks the limits of reading: bytes in a file, and characters in a snapshot, of which no text has more than bytes. */
function sizeFault(name: string, text: string): string | undefined {
  const bytes = Buffer.byteLength(text);
  return bytes <= LIMITS.stateText
    ? undefined
    : `${name} would have ${bytes} bytes, and more than ${LIMITS.stateText} (the limit \`stateText\`) are not read back: it stays as it was`;
}

/** Why nothing was read from the file: the kubelet's reasons, or it cannot be read at all. */
export type DeviceCheckpointFault = CheckpointFault | { readonly code: "unreadable"; readonly message: string };

/**
 * Reads the assignments of the node's devices from kubelet_internal_checkpoint; undefined: there is no file. On an
 * error no device counts as held, as in the kubelet, which only logs it. kubelet 1.36: readCheckpoint.
 */
export function readDeviceCheckpoint(files: ManagerFiles): Result<DeviceCheckpoint | undefined, DeviceCheckpointFault> {
  const { assignments, missing } = files.read();
  const text = assignments?.[DEVICE_CHECKPOINT];
  if (text !== undefined) return checkpointOf(text);
  const unread = missing.find(({ path }) => path.endsWith(`/${DEVICE_CHECKPOINT}`));
  return unread === undefined ? ok(undefined) : err({ code: "unreadable", message: `${unread.path}: ${unread.why}` });
}

/** Writes the checkpoint if it differs (`ManagerFiles.persist`). True: something changed. kubelet 1.36: writeCheckpoint. */
export const persistDeviceCheckpoint = (files: ManagerFiles, checkpoint: DeviceCheckpoint): Result<boolean, string> =>
  files.persist({ assignments: { [DEVICE_CHECKPOINT]: textOf(checkpoint) } });
