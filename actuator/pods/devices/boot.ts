import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { err, ok, type Result } from "../../../api/model/result.ts";
import { ownFolder } from "../../folder.ts";
import { replaceText } from "../../replace-text.ts";
import type { DeviceBook } from "./book.ts";
import { withoutResponses } from "./held.ts";

/** As the kernel has it, a UUID; no file of this kind is longer. */
const LONGEST = 128;

/**
 * Tells a restart of the daemon from one of the machine: after the latter, or where nobody knows, what plugins answered is
 * void. Error: it could not be written; then it is to be tried again before any answer is used.
 */
export function settleBoot(book: DeviceBook, bootId: string): Result<null, string> {
  const file = join(book.directory, "device-plugins", "boot_id");
  if (bootId !== "" && bootIn(file) === bootId) return ok(null);
  // in this order: a crash between the two only asks plugins again
  const forgotten = book.edit(withoutResponses);
  if (!forgotten.ok) return forgotten;
  try {
    ownFolder(dirname(file));
    replaceText(file, `${bootId}\n`);
    return ok(null);
  } catch (error) {
    return err(`state files in ${book.directory}: ${(error as Error).message}`);
  }
}

/** Undefined: there is none, or it cannot be read. */
function bootIn(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return text.length > LONGEST ? undefined : text;
  } catch {
    return undefined;
  }
}
