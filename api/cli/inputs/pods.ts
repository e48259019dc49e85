import { formOf } from "../../../actuator/manifests/document-form.ts";
import { podItems } from "../../../actuator/manifests/pod-items.ts";
import { podsOf } from "../../../actuator/manifests/pods-of.ts";
import { problemText } from "../../../actuator/manifests/problem.ts";
import type { InputDocument } from "../../inputs/document.ts";
import type { Origin, Path } from "../../inputs/origin.ts";
import { LIMITS } from "../../model/limits.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import { readDocuments } from "./read.ts";

export interface ReadPods {
  readonly pods: readonly unknown[];
  /** The same as they are written: a manifest is no static pod yet. */
  readonly written: readonly unknown[];
  /** What the file holds, a document each. */
  readonly documents: readonly unknown[];
  readonly origins: readonly Origin[];
}

/**
 * The pods of a file: a PodList, a List, an array, one Pod, or manifests with any number of documents. A pod with a uid
 * is taken as it is, with its status; one without is a manifest and becomes a static pod of the node, as a kubelet does it.
 */
export async function readPods(path: string, nodeName: string): Promise<Result<ReadPods, Fault>> {
  const documents = await readDocuments(path);
  if (!documents.ok) return documents;
  const count = documents.value.reduce((sum, { value }) => sum + placesOf(value).length, 0);
  if (count > LIMITS.pods)
    return fault(
      EXIT.badInput,
      `${documents.value[0]?.file}: holds ${count} pods, more than a node's ${LIMITS.pods}: ${SELECT}`,
    );
  const pods: unknown[] = [];
  const written: unknown[] = [];
  const origins: Origin[] = [];
  const lines: string[] = [];
  for (const source of documents.value) {
    if (formOf(source.value) === "crictl pods") return fault(EXIT.badInput, `${source.file}: ${NO_PODS}`);
    for (const base of placesOf(source.value)) {
      const [pod, problem] = podAt(source, base, nodeName);
      if (problem !== undefined) lines.push(problem);
      origins.push({ at: ["pods", pods.length], source, base });
      pods.push(pod);
      written.push(valueAt(source, base));
    }
  }
  return lines.length > 0
    ? fault(EXIT.badInput, ...lines)
    : ok({ pods, written, documents: documents.value.map((d) => d.value), origins });
}

const NO_PODS =
  "is what `crictl pods` prints, and --pods takes v1.Pods (kubectl get pods -A -o json): give it with --sandboxes";
const SELECT = "give those of one node (kubectl get pods -A --field-selector spec.nodeName=NAME -o json)";

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});

/** Where the pods of a document are. */
function placesOf(value: unknown): readonly Path[] {
  if (Array.isArray(value)) return value.map((_, i) => [i]);
  return podItems(value)?.map((_, i) => ["items", i]) ?? [[]];
}

const valueAt = ({ value }: InputDocument, base: Path): unknown =>
  base.reduce<unknown>((at, step) => fieldsOf(at)[step], value);

function podAt(source: InputDocument, base: Path, nodeName: string): [pod: unknown, problem?: string] {
  const value = valueAt(source, base);
  const { kind, metadata } = fieldsOf(value);
  const { uid } = fieldsOf(metadata);
  if (typeof uid === "string" && uid !== "" && (kind ?? "Pod") === "Pod") return [value];
  // What its list says of its items, they need not say themselves.
  const isListed = base.length > 0 && fieldsOf(source.value)["kind"] !== "List";
  const pod = isListed ? { apiVersion: "v1", kind: "Pod", ...fieldsOf(value) } : value;
  const place = (path: Path) => (source.hasPlaces ? source.place([...base, ...path]) : { line: 1, column: 1 });
  const [made] = podsOf({ ...source, value: pod, place }, nodeName);
  if (made === undefined) return [value];
  return made.ok ? [made.value.pod] : [value, problemText(made.error)];
}
