import { parseDocuments } from "../../api/documents/parse.ts";
import type { ReadProblem, SourceDocument } from "../../api/documents/problem.ts";
import { LIMITS } from "../../api/model/limits.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { readText } from "../core/read-text.ts";

export interface ReadObjectsOptions {
  readonly maxBytes?: number;
  /** The stream that `-` reads. */
  readonly stdin?: AsyncIterable<Buffer>;
}

/**
 * The documents of a JSON or YAML file, or of standard input for `-`, as plain values: one that a person named, so the
 * first fault is the answer. At most `maxBytes` (as the API's body). Errors: every code of `readText` and
 * `parseDocuments`, with file, line and column; `malformed` also for a file without any object.
 */
export async function readObjects(
  path: string,
  options: ReadObjectsOptions = {},
): Promise<Result<readonly SourceDocument[], ReadProblem>> {
  const { maxBytes = LIMITS.bodyBytes, stdin = process.stdin } = options;
  const file = path === "-" ? "standard input" : path;
  const text = await readText(path === "-" ? stdin : path, file, maxBytes);
  if (!text.ok) return text;
  const { documents, problems } = parseDocuments(text.value, file);
  const [first] = problems;
  if (first !== undefined) return err(first);
  if (documents.length === 0)
    return err({ code: "malformed", file, message: "holds no object: expected JSON or YAML" });
  return ok(documents);
}
