import { closeSync, fstatSync, openSync, readSync } from "node:fs";

export interface FileTail {
  readonly bytes: Buffer;
  /** There is more of the file before it. */
  readonly isCut: boolean;
}

/** The last bytes of a file, `most` at most. Throws what the system answers. */
export function readTail(path: string, most: number): FileTail {
  const fd = openSync(path, "r");
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, most));
    const from = size - bytes.length;
    const read = readSync(fd, bytes, 0, bytes.length, from);
    return { bytes: bytes.subarray(0, read), isCut: from > 0 };
  } finally {
    closeSync(fd);
  }
}
