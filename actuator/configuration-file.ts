import { joinPath } from "../api/model/input-issue.ts";
import { kubeletConfiguration } from "../api/model/kubelet-configuration.ts";
import { withoutNulls } from "../api/model/nulls.ts";
import { err, ok, type Result } from "../api/model/result.ts";
import { KUBELET_CONFIGURATION_FIELDS } from "./kubelet-configuration-fields.ts";
import { formText, isConfiguration } from "./manifests/document-form.ts";
import { problemText } from "./manifests/problem.ts";
import { readObjects } from "./manifests/read-objects.ts";
import type { SourceDocument } from "./manifests/source-document.ts";
import { nearName } from "./near-name.ts";
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
  onNotices(unknownFields(first));
  return ok(first.value);
}

/** The first field that no decision could be made with; null: there is none. */
function wrongField({ value, file, place }: SourceDocument): string | null {
  const parsed = kubeletConfiguration.safeParse(withoutNulls(value));
  const [issue] = parsed.error?.issues ?? [];
  if (issue === undefined) return null;
  const inner = Object.hasOwn(value as object, "kubeletconfig") ? ["kubeletconfig"] : [];
  const { line, column } = place([...inner, ...issue.path.map(String)]);
  return `${file}:${line}:${column}: ${joinPath("", issue.path)}: ${issue.message}`;
}

const KNOWN: ReadonlySet<string> = new Set(KUBELET_CONFIGURATION_FIELDS);

/** A misspelt field is a default that nobody wanted. kubelet 1.36: DecodeKubeletConfiguration, which goes on leniently. */
function unknownFields({ value, file, place }: SourceDocument): readonly Problem[] {
  const fields = Object.keys(value as object);
  // what a kubelet itself tells of its configuration has the fields of its version
  if (fields.includes("kubeletconfig")) return [];
  return fields
    .filter((name) => !KNOWN.has(name))
    .map((name) => {
      const { line, column } = place([name]);
      const near = nearName(name, KUBELET_CONFIGURATION_FIELDS);
      const hint = near === null ? "" : ` (${near}?)`;
      const fault = `strict decoding error: unknown field "${name}"${hint}`;
      const message = `${file}:${line}:${column}: ${fault}: left out, as the kubelet's lenient decoding does`;
      return { from: "configuration", message };
    });
}
