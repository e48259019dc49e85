import { existsSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const IN_MEMORY = "/dev/shm";
/** In a Docker container it has 64 MiB, unless told otherwise; a containerd of a test takes some 10. */
const ENOUGH_BYTES = 1024 ** 3;

function isLarge(): boolean {
  if (!existsSync(IN_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  return bavail * bsize >= ENOUGH_BYTES;
}

/** For tests that write much: below it nothing reaches a disk, where the machine has such a place and it is large. */
export const RAM_DISK = isLarge() ? IN_MEMORY : tmpdir();
