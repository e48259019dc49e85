import { LIMITS } from "../../api/base/limits.ts";
import { withoutNulls } from "../../api/base/nulls.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { formText, isConfiguration } from "../../api/documents/document-form.ts";
import { parseDocuments } from "../../api/documents/parse.ts";
import {
  type Path,
  placedIssue,
  problemText,
  type ReadProblem,
  type SourceDocument,
} from "../../api/documents/problem.ts";
import { configurationPath, kubeletConfiguration } from "../../api/model/kubelet-configuration.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { type UnknownField, unknownFields } from "../../api/profiles/unknown-fields.ts";
import type { Problem } from "../core/interfaces.ts";
import { readText } from "../core/read-text.ts";

/**
 * Reads a KubeletConfiguration from a file, for a kubelet of that profile; without a file, the kubelet's defaults. `onNotices`:
 * called at each reading with the ignored fields. Errors name the file, and the line and column if known.
 */
export async function readConfiguration(
  file: string | undefined,
  profile: Profile,
  onNotices: (notices: readonly Problem[]) => void = () => {},
): Promise<Result<unknown, Problem>> {
  if (file === undefined) return ok({});
  const read = await readObjects(file);
  if (!read.ok) {
    const { document: _one, ...problem } = read.error;
    return err({ from: "configuration", message: problemText(problem) });
  }
  const [first] = read.value;
  if (first === undefined) return err({ from: "configuration", message: `${file} holds no document` });
  if (!isConfiguration(first.value))
    return err({ from: "configuration", message: `${file} is ${formText(first.value)}, no KubeletConfiguration` });
  const wrong = wrongField(first);
  if (wrong !== null) return err({ from: "configuration", message: wrong });
  onNotices(leftOut(first, profile));
  return ok(first.value);
}

/** The first field that makes decisions impossible; null: there is none. */
function wrongField(source: SourceDocument): string | null {
  const parsed = kubeletConfiguration.safeParse(withoutNulls(source.value));
  const [issue] = parsed.error?.issues ?? [];
  if (issue === undefined) return null;
  const at = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
  return placedIssue(source, { base: configurationPath(source.value), at, message: issue.message });
}

/** kubelet 1.36: DecodeKubeletConfiguration, which reports unknown fields and continues leniently. */
function leftOut(source: SourceDocument, { fieldNames }: Profile): readonly Problem[] {
  // a configuration that a kubelet itself printed has the fields of its version
  if (configurationPath(source.value).length > 0) return [];
  return unknownFieldLines(source, [], unknownFields(source.value, fieldNames)).map((message) => ({
    from: "configuration",
    message,
  }));
}

/** A line for each field that a kubelet does not know, with the name that was perhaps meant. `base`: of the object in the document. */
export const unknownFieldLines = (
  { file, place }: Pick<SourceDocument, "file" | "place">,
  base: Path,
  unknown: readonly UnknownField[],
): readonly string[] =>
  unknown.map(({ path, fault, near }) => {
    const { line, column } = place([...base, ...path]);
    const hint = near === null ? "" : ` (${near}?)`;
    return `${file}:${line}:${column}: ${fault}${hint}: left out, as the kubelet's lenient decoding does`;
  });

export interface ReadObjectsOptions {
  readonly maxBytes?: number;
  /** The stream that `-` reads. */
  readonly stdin?: AsyncIterable<Buffer>;
}

/**
 * The documents of a JSON or YAML file, or of standard input for `-`, as plain values; the first fault is the result, since a
 * person named the file. At most `maxBytes` (as the API's body). Errors: every code of `readText` and
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
