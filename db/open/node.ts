import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Result } from "../../api/model/result.ts";
import type { StoreFailure } from "../failure.ts";
import { backupFile, type OnProgress, restoreFile } from "../sqlite/node/backup.ts";
import { type Compacted, compactFile, openNode } from "../sqlite/node/open.ts";
import type { Store } from "../store.ts";

/** Names the store of a Node process. */
export interface StoreSetting {
  /** A folder, in which the history is a file. */
  readonly dataDir: string;
}

/** A store that a setting names, whether or not it is there yet. */
export interface StoreLocation {
  /** As it was given, and nothing more: plain data, by which a thread finds the same store. */
  readonly setting: StoreSetting;
  /** The place as messages name it. */
  readonly label: string;
  /** The options of the command line that name the place. */
  readonly flags: string;
  exists(): boolean;
  /** Opens the store, which is made and migrated where needed. Several processes and threads may have the same one open. */
  open(): Promise<Result<Store, StoreFailure>>;
  /** Gives back all space that is free in the store; nobody can write meanwhile. */
  compact(): Promise<Result<Compacted, StoreFailure>>;
  /** Copies all of it into a new file, while others read and write. */
  backup(to: string, onProgress: OnProgress): Promise<Result<null, StoreFailure>>;
  /** Puts such a copy in its place. `kept`: the name that a history which is there gets; null: none may be there. */
  restore(from: string, kept: string | null): Promise<Result<null, StoreFailure>>;
}

/** The history's file in a data directory. */
export const historyFile = (dataDir: string): string => join(dataDir, "history.db");

/** The one place where a Node process (the API with its threads, and the command line) chooses the implementation of its store. */
export function storeAt({ dataDir }: StoreSetting): StoreLocation {
  const file = historyFile(dataDir);
  return {
    setting: { dataDir },
    label: file,
    flags: `--data-dir ${dataDir}`,
    exists: () => existsSync(file),
    open: async () => openNode({ file }),
    compact: async () => compactFile(file),
    backup: (to, onProgress) => backupFile(file, to, onProgress),
    restore: (from, kept) => restoreFile(from, file, kept),
  };
}
