import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Result } from "../../api/base/result.ts";
import { failure, type StoreFailure } from "../failure.ts";
import { labelOf, type PostgresSetting } from "../postgres/setting.ts";
import { backupFile, type OnProgress, restoreFile } from "../sqlite/node/backup.ts";
import { type CompactResult, compactFile, openNode } from "../sqlite/node/open.ts";
import type { Store } from "../store.ts";

/** Names the store of a Node process. */
export type StoreSetting =
  /** A folder, in which the history is a file. */
  { readonly dataDir: string } | { readonly database: PostgresSetting };

/** A store that a setting names, whether or not it is there yet. */
export interface StoreLocation {
  /** The setting as plain data, with which a thread opens the same store. */
  readonly setting: StoreSetting;
  /** The place as messages name it. */
  readonly label: string;
  /** Names the place wherever the process works: the same for the same history alone. */
  readonly name: string;
  /** The options of the command line that name the place. */
  readonly flags: string;
  /**
   * True: the store is on a server that other machines use too, so a write waits for the network and not for this
   * disk.
   */
  readonly isShared: boolean;
  /** Whether a history exists; for a server this is not known before it is opened. */
  exists(): boolean;
  /** Opens the store, which is created and migrated if necessary. Several processes and threads may have it open. */
  open(options?: OpenOptions): Promise<Result<Store, StoreFailure>>;
  /** Returns all free space to the file system; nobody can write meanwhile. */
  compact(): Promise<Result<CompactResult, StoreFailure>>;
  /** Copies the whole store into a new file, while others read and write. */
  backup(to: string, onProgress: OnProgress): Promise<Result<null, StoreFailure>>;
  /** Puts such a copy in the store's place. `kept`: the new name of an existing history; null: none may exist. */
  restore(from: string, kept: string | null): Promise<Result<null, StoreFailure>>;
}
interface OpenOptions {
  /** False: a missing history is an error. Default: it is created. */
  readonly create?: boolean;
  /** How long decisions are kept. */
  readonly maxAgeMs?: number;
  /** Called with a line that says why opening takes long. */
  readonly onWait?: (message: string) => void;
  /** The maximum number of connections to a server. Default: 10. */
  readonly connections?: number;
}

/** The history's file in a data directory. */
export const historyFile = (dataDir: string): string => join(dataDir, "history.db");

/** The only place where a Node process (the API with its threads, and the command line) chooses the implementation of its store. */
export function storeAt(setting: StoreSetting): StoreLocation {
  if ("database" in setting) return inDatabase(setting.database);
  if ("dataDir" in setting) return inFile(setting.dataDir);
  return setting satisfies never;
}

function inFile(dataDir: string): StoreLocation {
  const file = historyFile(dataDir);
  return {
    setting: { dataDir },
    label: file,
    name: resolve(dataDir),
    flags: `--data-dir ${dataDir}`,
    isShared: false,
    exists: () => existsSync(file),
    open: async () => openNode({ file }),
    compact: async () => compactFile(file),
    backup: (to, onProgress) => backupFile(file, to, onProgress),
    restore: (from, kept) => restoreFile(from, file, kept),
  };
}

function inDatabase(database: PostgresSetting): StoreLocation {
  const label = labelOf(database);
  const instead = async (tool: string): Promise<Result<never, StoreFailure>> =>
    failure("unavailable", `${label} is on a database server: use the server's own tool: ${tool}`);
  return {
    setting: { database },
    label,
    name: label,
    // the URL contains no password
    flags: `--database '${database.url}'`,
    isShared: true,
    exists: () => true,
    // loaded only if a server is used
    open: async (options) => (await import("../postgres/open.ts")).openPostgres(database, options),
    compact: () => instead("VACUUM FULL, in psql"),
    backup: () => instead("pg_dump"),
    restore: () => instead("pg_restore"),
  };
}
