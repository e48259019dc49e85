import { existsSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const IN_MEMORY = "/dev/shm";
/** In a Docker container it has 64 MiB by default; a test's containerd uses about 10 MiB. */
const ENOUGH_BYTES = 1024 ** 3;

function isLarge(): boolean {
  if (!existsSync(IN_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  return bavail * bsize >= ENOUGH_BYTES;
}

/** A folder for tests that write much: in memory, if the machine has a large file system in memory. */
export const RAM_DISK = isLarge() ? IN_MEMORY : tmpdir();
