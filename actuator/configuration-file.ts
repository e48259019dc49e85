import { configurationPath, kubeletConfiguration } from "../api/model/kubelet-configuration.ts";
import { unknownFields } from "../api/model/kubelet-unknown-fields.ts";
import { withoutNulls } from "../api/model/nulls.ts";
import { err, ok, type Result } from "../api/model/result.ts";
import { formText, isConfiguration } from "./manifests/document-form.ts";
import { placedIssue } from "./manifests/issue-place.ts";
import { problemText } from "./manifests/problem.ts";
import { readObjects } from "./manifests/read-objects.ts";
import type { SourceDocument } from "./manifests/source-document.ts";
import type { Problem } from "./ports.ts";

/**
 * A KubeletConfiguration of a file; none is the kubelet's defaults. `onNotices`: what is left out of it, at each reading.
 * Errors name the file, and the line and column where there is one.
 */
export async function readConfiguration(
  file: string | undefined,
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
  onNotices(leftOut(first));
  return ok(first.value);
}

/** The first field that no decision could be made with; null: there is none. */
function wrongField(source: SourceDocument): string | null {
  const parsed = kubeletConfiguration.safeParse(withoutNulls(source.value));
  const [issue] = parsed.error?.issues ?? [];
  if (issue === undefined) return null;
  const at = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
  return placedIssue(source, { base: configurationPath(source.value), at, message: issue.message });
}

/** kubelet 1.36: DecodeKubeletConfiguration, which tells of them and goes on leniently. */
function leftOut(source: SourceDocument): readonly Problem[] {
  // what a kubelet itself tells of its configuration has the fields of its version
  if (configurationPath(source.value).length > 0) return [];
  return unknownFields(source.value).map(({ path, fault, near }) => {
    const { line, column } = source.place(path);
    const hint = near === null ? "" : ` (${near}?)`;
    const message = `${source.file}:${line}:${column}: ${fault}${hint}: left out, as the kubelet's lenient decoding does`;
    return { from: "configuration", message };
  });
}
