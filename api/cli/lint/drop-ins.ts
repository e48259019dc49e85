import { readdirSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../../actuator/core/read-text.ts";
import type { DropIn } from "../../decide/lint/drop-ins.ts";
import type { InputDocument } from "../../documents/inputs/origin.ts";
import { problemText } from "../../documents/problem.ts";
import { ok, type Result } from "../../model/result.ts";
import { readDocuments } from "../inputs/read.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

const SUFFIX = ".conf";

export interface ReadDropIn extends DropIn {
  readonly source: InputDocument;
}

/** Reads a `--config-dir`: of each file the first document, as the kubelet does. Errors: those of the folder and its files. */
export async function readDropIns(dir: string): Promise<Result<readonly ReadDropIn[], Fault>> {
  const files = dropInFiles(dir);
  if (!files.ok) return files;
  const read: ReadDropIn[] = [];
  for (const file of files.value) {
    const documents = await readDocuments(file);
    if (!documents.ok) return documents;
    const [source] = documents.value;
    if (source !== undefined) read.push({ file, document: source.value, source });
  }
  return ok(read);
}

/**
 * The files of a folder and of those in it, each in the order of the names; links to folders are not followed. Go: filepath.WalkDir.
 */
function dropInFiles(dir: string): Result<readonly string[], Fault> {
  try {
    return ok(walked(dir));
  } catch (e) {
    const [code, message] = reasonOf(e as NodeJS.ErrnoException);
    const why = code === "not-found" ? "no such directory: check the path" : message;
    return fault(EXIT.badInput, problemText({ code, file: `--config-dir ${dir}`, message: why }));
  }
}
const walked = (dir: string): readonly string[] =>
  readdirSync(dir, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) return walked(path);
      return entry.name.endsWith(SUFFIX) ? [path] : [];
    });
