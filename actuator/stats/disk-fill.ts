import { statfsSync } from "node:fs";
import type { FileSystem } from "../machine/facts.ts";
import { fileSystemOf } from "../machine/file-system.ts";

/** Of what a file system can hold. */
const NOTABLE = 0.01;

/** Tells when a file system fills faster than the usage on it is counted. */
export class DiskFill {
  readonly #path: string;
  /** As it was when it last said so, or since had the most room. */
  #before: FileSystem | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** Whether so much went since it last said so that what was counted then is nobody's share any more; true at first. */
  hasFilled(): boolean {
    const now = this.#look();
    if (now === null) return false;
    const { availableBytes, inodesFree } = this.#before ?? now;
    const [bytes, inodes] = [availableBytes - now.availableBytes, inodesFree - now.inodesFree];
    const isFilled = this.#before === null || bytes > NOTABLE * now.capacityBytes || inodes > NOTABLE * now.inodes;
    // what is given back may be taken again
    if (isFilled || bytes < 0 || inodes < 0) this.#before = now;
    return isFilled;
  }

  #look(): FileSystem | null {
    try {
      return fileSystemOf(statfsSync(this.#path, { bigint: true }));
    } catch {
      // what cannot be looked at is told by who works with it
      return null;
    }
  }
}
