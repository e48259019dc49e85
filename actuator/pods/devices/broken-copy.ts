import { linkSync, rmSync, statSync } from "node:fs";
import type { DeviceBook } from "./book.ts";

const MOST = 3;
/** They hold what plugins answered, which may be secret. */
const KEPT_MS = 7 * 24 * 60 * 60_000;

/**
 * Keeps a checkpoint that cannot be read beside its place, before anything is written there: `.broken`, `.broken.1` and
 * `.broken.2`, of which the oldest makes room. Answers a sentence for people; null: there is nothing to keep.
 */
export function keepBroken(book: DeviceBook): string | null {
  const fault = book.fault();
  if (fault === null) return null;
  const { file } = book;
  const copies = copiesOf(book);
  const inode = statOf(file)?.ino;
  const before = copies.find((copy) => inode !== undefined && copy.inode === inode);
  if (before !== undefined) return told(fault.message, before.name);
  const free = copies.find((copy) => copy.inode === undefined) ?? copies.toSorted((a, b) => a.keptMs - b.keptMs)[0];
  const name = free?.name ?? `${file}.broken`;
  try {
    rmSync(name, { force: true });
    // another name of the same file: whoever writes the checkpoint makes a new one
    linkSync(file, name);
    return told(fault.message, name);
  } catch (error) {
    return `${file}: ${fault.message}; it could not be kept as ${name}: ${(error as Error).message}`;
  }
}
const told = (message: string, copy: string): string =>
  `who held which devices could not be read (${message}): the file is kept as ${copy} for 7 days`;

/** Removes copies that were kept for longer than a week; one that cannot be removed stays. `nowMs`: since the epoch. */
export function dropOldCopies(book: DeviceBook, nowMs: number): void {
  const current = statOf(book.file)?.ino;
  for (const { name, inode, keptMs } of copiesOf(book)) {
    if (inode === undefined || inode === current || nowMs - keptMs <= KEPT_MS) continue;
    try {
      rmSync(name);
    } catch {
      // it is tried again
    }
  }
}

/** `inode`: undefined: there is none. Giving a file a name changes its status, and nothing else does later. */
const copiesOf = ({ file }: DeviceBook) =>
  Array.from({ length: MOST }, (_, i) => {
    const name = i === 0 ? `${file}.broken` : `${file}.broken.${i}`;
    const stat = statOf(name);
    return { name, inode: stat?.ino, keptMs: stat?.ctimeMs ?? 0 };
  });
const statOf = (file: string) => statSync(file, { throwIfNoEntry: false });
