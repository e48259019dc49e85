import { dirname, normalize } from "node:path/posix";

/** One entry of an archive; `path` is relative, without a leading slash. */
export type CpioEntry =
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "file"; readonly path: string; readonly content: Uint8Array };

const DIRECTORY_MODE = 0o040755;
const FILE_MODE = 0o100644;
const PROGRAM_MODE = 0o100755;
/** systemd warns about configuration files that are executable. */
const SETTINGS = /(?:^|\/)etc\//;

function padded(length: number): number {
  return Math.ceil(length / 4) * 4;
}

/** A header of the kernel's initramfs format: "070701" and thirteen fields of eight hexadecimal digits. */
function record(inode: number, mode: number, path: string, content: Uint8Array): Buffer {
  const name = Buffer.from(`${path}\0`);
  const [owner, group, links, mtime, device, checksum] = [0, 0, 1, 0, 0, 0];
  const fields = [inode, mode, owner, group, links, mtime, content.length, device, device, device, device];
  const header = [...fields, name.length, checksum].map((field) => field.toString(16).padStart(8, "0")).join("");
  const head = Buffer.concat([Buffer.from(`070701${header}`), name]);
  const out = Buffer.alloc(padded(head.length) + padded(content.length));
  head.copy(out);
  out.set(content, padded(head.length));
  return out;
}

/**
 * Packs entries as a cpio archive ("newc") that Linux unpacks as an initramfs; several archives may follow one another.
 * Root owns all files, and all files are executable except those below an `etc`.
 */
export function cpioArchive(entries: readonly CpioEntry[]): Buffer {
  const records = entries.map((entry, index) =>
    entry.kind === "directory"
      ? record(index + 1, DIRECTORY_MODE, entry.path, new Uint8Array())
      : record(index + 1, SETTINGS.test(entry.path) ? FILE_MODE : PROGRAM_MODE, entry.path, entry.content),
  );
  return Buffer.concat([...records, record(0, 0, "TRAILER!!!", new Uint8Array())]);
}

function parents(path: string): string[] {
  const parent = dirname(path);
  return parent === "." ? [] : [...parents(parent), parent];
}

/** The entries for files at absolute guest paths, all below `folder`; parents come before children. */
export function fileEntries(folder: string, files: Readonly<Record<string, Uint8Array | string>>): CpioEntry[] {
  const entries = new Map<string, CpioEntry>([[folder, { kind: "directory", path: folder }]]);
  for (const [guestPath, content] of Object.entries(files)) {
    if (!guestPath.startsWith("/") || guestPath.endsWith("/") || normalize(guestPath) !== guestPath) {
      throw new Error(`guest path \`${guestPath}\` is not a clean absolute file path: write it like /job/main.mjs`);
    }
    const path = `${folder}${guestPath}`;
    for (const parent of parents(path)) entries.set(parent, { kind: "directory", path: parent });
    entries.set(path, { kind: "file", path, content: Buffer.from(content) });
  }
  return [...entries.values()];
}
