import { linkSync, statSync } from "node:fs";
import type { DeviceBook } from "./book.ts";

const MOST = 3;

/**
 * Keeps a checkpoint that cannot be read beside its place, before anything is written there: `.broken`, then `.broken.1`
 * and `.broken.2`; of later ones none is kept. Answers a sentence for people; null: there is nothing to keep.
 */
export function keepBroken(book: DeviceBook): string | null {
  const fault = book.fault();
  if (fault === null) return null;
  const { file } = book;
  const names = Array.from({ length: MOST }, (_, i) => (i === 0 ? `${file}.broken` : `${file}.broken.${i}`));
  const inode = inodeOf(file);
  const before = names.find((name) => inode !== undefined && inodeOf(name) === inode);
  if (before !== undefined) return told(fault.message, before);
  const free = names.find((name) => inodeOf(name) === undefined);
  if (free === undefined) return `${file}: ${fault.message}; no copy is kept: there are ${MOST} already (${names[0]})`;
  try {
    // another name of the same file: whoever writes the checkpoint makes a new one
    linkSync(file, free);
    return told(fault.message, free);
  } catch (error) {
    return `${file}: ${fault.message}; it could not be kept as ${free}: ${(error as Error).message}`;
  }
}
const told = (message: string, copy: string): string =>
  `who held which devices could not be read (${message}): the file is kept as ${copy}`;

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}
