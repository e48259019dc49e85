import type Sqlite from "better-sqlite3";
import { failureOf } from "./failure.ts";

/** Pages that one transaction moves to where others were removed: a few milliseconds. */
const SLICE_PAGES = 128;
/** This share of a file may be free: later writes take it. Below `FEW_PAGES` it is not worth a look. */
const FREE_SHARE = 0.1;
const FEW_PAGES = 256;
/** Smaller files are made to give back what is free when they are opened; a larger one would hold up the start. */
const SMALL_BYTES = 32 * 1024 * 1024;
const INCREMENTAL = 2;

const number = (client: Sqlite.Database, pragma: string): number => Number(client.pragma(pragma, { simple: true }));
const canShrink = (client: Sqlite.Database): boolean => number(client, "auto_vacuum") === INCREMENTAL;

/** Space that was given back and space that cannot be, in bytes. */
export interface Vacuumed {
  readonly freedBytes: number;
  /** Free in a file that was made before files gave anything back; `compactFile` gives it back, and makes it one that does. */
  readonly stuckBytes: number;
}

/**
 * Gives back what is free in the file, beyond what is likely to be taken again, in slices between which others work. Ends early
 * where another process writes.
 */
export async function vacuum(client: Sqlite.Database): Promise<Vacuumed> {
  const pageBytes = number(client, "page_size");
  const free = (): number => number(client, "freelist_count");
  const surplus = (): number => free() - Math.max(FEW_PAGES, number(client, "page_count") * FREE_SHARE);
  if (!canShrink(client)) return { freedBytes: 0, stuckBytes: Math.max(0, surplus()) * pageBytes };
  let freed = 0;
  try {
    while (surplus() > 0) {
      const before = free();
      client.pragma(`incremental_vacuum(${SLICE_PAGES})`);
      const moved = before - free();
      if (moved <= 0) break;
      freed += moved;
      await new Promise((resolve) => setImmediate(resolve));
    }
  } catch (error) {
    if (failureOf(error)?.code !== "unavailable") throw error;
  }
  return { freedBytes: freed * pageBytes, stuckBytes: 0 };
}

/** Makes a small file of an earlier version one that gives back what is free, unless somebody else is at work in it. */
export function convertSmall(client: Sqlite.Database): void {
  if (canShrink(client) || number(client, "page_count") * number(client, "page_size") > SMALL_BYTES) return;
  client.pragma("busy_timeout = 0");
  try {
    rewrite(client);
  } catch (error) {
    if (failureOf(error)?.code !== "unavailable") throw error;
  }
}

/** Writes the whole file anew. Others can read meanwhile, but not write; a crash leaves it as it was. */
export function rewrite(client: Sqlite.Database): void {
  client.pragma(`auto_vacuum = ${INCREMENTAL}`);
  client.exec("VACUUM");
}
