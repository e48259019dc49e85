/** The file system operations that making a folder needs. */
export interface Disk {
  exists(path: string): boolean;
  parentOf(path: string): string;
  /** Makes one level; throws. */
  make(path: string): void;
}

/**
 * Makes a folder and those above it that are missing, level by level: Node's own recursion never ends where a file system
 * refuses new names with ENOENT (24, below /proc). Throws what `make` throws.
 */
export function makeFolder(folder: string, disk: Disk): void {
  if (disk.exists(folder)) return;
  makeFolder(disk.parentOf(folder), disk);
  try {
    disk.make(folder);
  } catch (error) {
    // another process may have been quicker
    if (!disk.exists(folder)) throw error;
  }
}
