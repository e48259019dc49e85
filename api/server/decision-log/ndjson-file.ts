import { type FileHandle, open, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { err, ok, type Result } from "../../model/result.ts";
import type { Receiver } from "./deliver.ts";

const MODE = 0o600;
const NEWLINE = 0x0a;

/**
 * A file with an event a line, for its owner alone. What was taken is on disk. A file that was moved or removed meanwhile is made
 * anew. Errors: the folder is missing, or the file cannot be written.
 */
export async function ndjsonFile(path: string): Promise<Result<Receiver, string>> {
  const full = resolve(path);
  const folder = await stat(dirname(full)).catch(() => null);
  if (folder === null || !folder.isDirectory())
    return err(`${path}: there is no folder ${dirname(full)}: make it first`);
  let file: FileHandle;
  try {
    file = await openAt(full);
  } catch (error) {
    return err(`${path}: cannot be written (${codeOf(error)})`);
  }
  const isMoved = async (): Promise<boolean> => {
    const [own, there] = await Promise.all([file.stat(), stat(full).catch(() => null)]);
    return there === null || there.ino !== own.ino || there.dev !== own.dev;
  };
  return ok({
    label: full,
    send: async (events) => {
      try {
        if (await isMoved()) {
          const next = await openAt(full);
          await file.close();
          file = next;
        }
        await append(file, `${events.join("\n")}\n`);
        return { state: "taken" };
      } catch (error) {
        return { state: "failed", reason: codeOf(error) };
      }
    },
    close: () => file.close(),
  });
}

/** A line that a crash cut off is ended: the next one stands by itself. */
async function openAt(path: string): Promise<FileHandle> {
  const file = await open(path, "a+", MODE);
  const { size } = await file.stat();
  const last = Buffer.alloc(1);
  if (size > 0 && (await file.read(last, 0, 1, size - 1)).bytesRead === 1 && last[0] !== NEWLINE)
    await file.appendFile("\n");
  return file;
}

/** All of it, on disk, or nothing: of a full disk half a line may be left, which is taken away again. */
async function append(file: FileHandle, text: string): Promise<void> {
  const { size } = await file.stat();
  try {
    await file.appendFile(text);
    await file.datasync();
  } catch (error) {
    await file.truncate(size).catch(() => {});
    throw error;
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);
