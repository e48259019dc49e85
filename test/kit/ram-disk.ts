import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

/** For tests that write much: below it nothing reaches a disk, where the machine has such a place. */
export const RAM_DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
