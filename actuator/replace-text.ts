import { closeSync, constants, fchmodSync, fsyncSync, openSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";

const OWNER_ONLY = 0o600;

/**
 * Replaces a whole file, so that at every moment either the old or the new text is there, and the new one is on the disk
 * when it returns; its size in bytes. Throws what the system answers.
 */
export function replaceText(file: string, text: string): number {
  const fresh = `${file}.new`;
  const create = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
  try {
    const bytes = withFile(fresh, create, (fd) => writeAll(fd, text));
    renameSync(fresh, file);
    syncDirectory(file);
    return bytes;
  } catch (cause) {
    remove(fresh);
    throw cause;
  }
}

/** What a full disk cut short takes up room. */
function remove(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // it never was there
  }
}

/** On the disk when it returns the number of bytes. */
export function writeAll(fd: number, text: string): number {
  const bytes = Buffer.from(text, "utf8");
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
  fsyncSync(fd);
  return bytes.length;
}

/** Its owner's only, and no link that leads elsewhere. */
export function withFile<T>(file: string, flags: number, use: (fd: number) => T): T {
  const fd = openSync(file, flags | constants.O_NOFOLLOW, OWNER_ONLY);
  try {
    fchmodSync(fd, OWNER_ONLY);
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

/** A new name is only safe once its directory is on disk. */
export function syncDirectory(file: string): void {
  const fd = openSync(dirname(file), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
