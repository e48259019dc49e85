import { decodeSnapshot } from "../../api/model/decode.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { podItems } from "./pod-items.ts";
import type { ProblemCode, ReadProblem } from "./problem.ts";
import type { SourceDocument } from "./source-document.ts";
import { type PodObject, staticPodOf } from "./static-pod.ts";

export interface FoundPod {
  readonly pod: PodObject;
  readonly source: SourceDocument;
  /** Where it stands in its document. */
  readonly at: Path;
}

type Path = readonly (string | number)[];
type Fields = Readonly<Record<string, unknown>>;
const MISSING = "metadata.name must be text (in YAML `y`, `no` or 12 need quotes) and spec an object";
type PodResult = Result<FoundPod, ReadProblem>;

/**
 * The static pods of one document: a v1.Pod, or a v1.PodList or v1.List of them. What is no pod (not-a-pod), or a pod that
 * the API would refuse (invalid-pod), is an error with its place.
 */
export function podsOf(source: SourceDocument, nodeName: string): readonly PodResult[] {
  const { kind } = fieldsOf(source.value);
  if (kind !== "PodList" && kind !== "List") return [podOf(source, source.value, [], nodeName)];
  const items = podItems(source.value);
  if (items === undefined) return [refusal(source, "not-a-pod", ["items"], "expected a list of pods in `items`")];
  return items.map((item, i) => {
    // A PodList says of its items what they are, so that they need not.
    const pod = kind === "PodList" ? { apiVersion: "v1", kind: "Pod", ...fieldsOf(item) } : item;
    return podOf(source, pod, ["items", i], nodeName);
  });
}

function podOf(source: SourceDocument, value: unknown, at: Path, nodeName: string): PodResult {
  const { apiVersion, kind } = fieldsOf(value);
  if (apiVersion !== "v1" || kind !== "Pod") {
    const found = `found ${shown(apiVersion)} and ${shown(kind)}`;
    return refusal(source, "not-a-pod", at, `expected apiVersion \`v1\` and kind \`Pod\`, ${found}`);
  }
  if (!isPodObject(value)) return refusal(source, "invalid-pod", at, MISSING);
  const pod = staticPodOf(value, nodeName, source.file);
  const decoded = decodeSnapshot({ pods: [pod] });
  if (decoded.ok) return ok({ pod, source, at });
  const path = (decoded.error[0]?.path ?? "").replace(/^pods\[0\]\.?/, "");
  return refusal(
    source,
    "invalid-pod",
    [...at, ...stepsOf(path)],
    `${path}: ${decoded.error[0]?.message ?? "is refused"}`,
  );
}

function refusal(source: SourceDocument, code: ProblemCode, path: Path, message: string): Result<never, ReadProblem> {
  return err({ code, file: source.file, document: source.document, place: source.place(path), message });
}

/** `spec.containers[0].name`, `limits["a/b"]` -> its steps. */
export const stepsOf = (path: string): Path =>
  Array.from(path.matchAll(/\[(\d+)\]|\["([^"]*)"\]|([^.[\]]+)/g), ([, index, quoted, name]) =>
    index === undefined ? (quoted ?? name ?? "") : Number(index),
  );

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
const isPodObject = (value: unknown): value is PodObject => {
  const { metadata, spec } = fieldsOf(value);
  const { name } = fieldsOf(metadata);
  return typeof name === "string" && name !== "" && typeof spec === "object" && spec !== null && !Array.isArray(spec);
};
const shown = (value: unknown): string =>
  value === undefined ? "none" : `\`${String(JSON.stringify(value)).slice(0, 60)}\``;
