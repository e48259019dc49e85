import fs from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { counted, currentLife, guarded, never } from "./pods-life.ts";

type Call = (...args: unknown[]) => unknown;
type Functions = Record<string, Call>;

/** Functions of node:fs that change names, and functions that need space. They get a path or an open file. */
const CHANGES = ["renameSync", "unlinkSync", "rmSync", "ftruncateSync"];
const GROWS = ["writeSync", "writeFileSync", "appendFileSync", "mkdirSync"];
const LATER_CHANGES = new Set(["rename", "rmdir", "unlink", "mkdir", "writeFile", "rm"]);
const LATER = ["open", "readFile", "lstat", "stat", "readdir", "realpath", ...LATER_CHANGES];
const FOR_WRITING = fs.constants.O_CREAT | fs.constants.O_WRONLY | fs.constants.O_RDWR;

/** Watches the file writes of a simulation's daemons. */
export class WatchedDisk {
  /** The directory in which no file can grow while `isFull`. */
  directory = "";
  isFull = false;
  refused = 0;
  /** The number of changes that daemons made. */
  changes = 0;
  readonly #opened = new Map<unknown, string>();

  /**
   * From now on, daemons can be killed at file changes, and their disk can be full. All other code uses node:fs
   * unchanged.
   */
  static watch(): { readonly disk: WatchedDisk; readonly end: () => void } {
    const disk = new WatchedDisk();
    const [sync, later] = [fs as unknown as Functions, promises as unknown as Functions];
    const before = [{ ...sync }, { ...later }] as const;
    disk.#wrap(sync, before[0]);
    disk.#wrapLater(later, before[1]);
    syncBuiltinESMExports();
    const end = (): void => {
      for (const name of [...CHANGES, ...GROWS, "openSync"]) sync[name] = before[0][name] as Call;
      for (const name of LATER) later[name] = before[1][name] as Call;
      syncBuiltinESMExports();
    };
    return { disk, end };
  }

  #wrap(sync: Functions, real: Functions): void {
    const wrap = (name: string, as: (act: () => unknown, args: readonly unknown[]) => unknown): void => {
      const own = real[name] as Call;
      sync[name] = (...args) => (currentLife() === undefined ? own(...args) : as(() => own(...args), args));
    };
    for (const name of CHANGES) wrap(name, (act) => this.#change(act));
    for (const name of GROWS) {
      wrap(name, (act, [path]) => {
        const isThere = name === "mkdirSync" && fs.existsSync(String(path));
        return isThere ? act() : this.#change(() => this.#grow(this.#opened.get(path) ?? String(path), act));
      });
    }
    wrap("openSync", (act, [path, flags]) => {
      const open = (): unknown => {
        const handle = act();
        this.#opened.set(handle, String(path));
        return handle;
      };
      const isForWriting = typeof flags === "number" ? (flags & FOR_WRITING) !== 0 : flags === "a" || flags === "w";
      return isForWriting ? this.#change(open) : open();
    });
  }

  #wrapLater(later: Functions, real: Functions): void {
    for (const name of LATER) {
      const own = real[name] as (...args: unknown[]) => Promise<unknown>;
      later[name] = (...args) => {
        const life = currentLife();
        if (life === undefined) return own(...args);
        if (life.isOver) return never();
        return counted(async () => (LATER_CHANGES.has(name) ? this.#change(() => own(...args)) : own(...args)));
      };
    }
  }

  #change<T>(act: () => T): T {
    return guarded("file", () => {
      this.changes++;
      return act();
    });
  }
  #grow(path: string, act: () => unknown): unknown {
    if (!this.isFull || !path.startsWith(`${this.directory}/`)) return act();
    this.refused++;
    throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  }
}
