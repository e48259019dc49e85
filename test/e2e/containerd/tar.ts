const BLOCK = 512;

export interface TarEntry {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly mode?: number;
  /** The target, if the entry is a symbolic link, which has no content. */
  readonly link?: string;
}

/**
 * A tar archive (ustar) of plain files and links, owned by root, with mtime 0: the same entries give the same bytes.
 */
export function tar(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const padding = (BLOCK - (entry.bytes.length % BLOCK)) % BLOCK;
    return [header(entry), entry.bytes, Buffer.alloc(padding)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

function header({ path, bytes, mode = 0o644, link }: TarEntry): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`;
  if (Buffer.byteLength(path) > 100) throw new Error(`too long for a tar header: ${path}`);
  block.write(path, 0);
  block.write(octal(mode, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(bytes.length, 12), 124);
  block.write(octal(0, 12), 136);
  block.write(" ".repeat(8), 148);
  block.write(link === undefined ? "0" : "2", 156);
  block.write(link ?? "", 157);
  block.write("ustar\0", 257);
  block.write("00", 263);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
