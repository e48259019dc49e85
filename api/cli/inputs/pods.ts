import { podsOf } from "../../../actuator/manifests/pods-of.ts";
import { LIMITS } from "../../base/limits.ts";
import { fieldsOf } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { formOf, podItems } from "../../documents/document-form.ts";
import type { InputDocument, Origin, Path } from "../../documents/inputs/origin.ts";
import { problemText } from "../../documents/problem.ts";
import { pageField } from "../../model/snapshot.ts";
import { listed, many } from "../../text/sentences/words.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import { hasUid, readDocuments, valueAt } from "./read.ts";

/** A manifest that became a static pod of the node. */
export interface MadeStatic {
  readonly index: number;
  readonly written: string;
  readonly name: string;
}
interface ReadPods {
  readonly pods: readonly unknown[];
  /** The pods as written: a manifest is not a static pod yet. */
  readonly written: readonly unknown[];
  /** For manifests: the position in `pods`, and the names before and after. */
  readonly madeStatic: readonly MadeStatic[];
  /** Lines about what is ignored: objects of a List that are no pods, and other nodes' pods in a list too long for one node. */
  readonly leftOut: readonly string[];
  /** The file's content, one entry per document. */
  readonly documents: readonly unknown[];
  readonly origins: readonly Origin[];
}

/**
 * The pods of a file: a PodList, a List, an array, one Pod, or manifests with any number of documents. A pod with a uid is used as
 * it is, with its status; one without is a manifest and becomes a static pod of the node, as with a kubelet. `mayBePage`: some of
 * the node's pods are enough; otherwise one page of a list is rejected.
 */
export async function readPods(
  path: string,
  nodeName: string,
  { mayBePage = false }: { readonly mayBePage?: boolean } = {},
): Promise<Result<ReadPods, Fault>> {
  const documents = await readDocuments(path);
  if (!documents.ok) return documents;
  const others: string[] = [];
  const places = documents.value.map((source) => {
    const { pods: own, others: rest } = podPlaces(source.value);
    if (rest.length > 0) others.push(`${source.file}: ${countedKinds(rest)} left out: --pods accepts pods`);
    return own;
  });
  const count = places.flat().length;
  // a whole cluster's list: more pods than a node can have
  const isOwn = (pod: unknown): boolean =>
    count <= LIMITS.pods || fieldsOf(fieldsOf(pod)["spec"])["nodeName"] === nodeName;
  const pods: unknown[] = [];
  const written: unknown[] = [];
  const madeStatic: MadeStatic[] = [];
  const origins: Origin[] = [];
  const lines: string[] = [];
  for (const [i, source] of documents.value.entries()) {
    if (formOf(source.value) === "crictl pods") return fault(EXIT.badInput, `${source.file}: ${NO_PODS}`);
    const page = mayBePage || Array.isArray(source.value) ? null : pageField(source.value);
    if (page !== null) return fault(EXIT.badInput, `${source.file}: ${pageText(page)}`);
    for (const base of places[i] ?? []) {
      if (!isOwn(valueAt(source, base))) continue;
      const [pod, problem] = podAt(source, base, nodeName);
      const before = valueAt(source, base);
      if (problem !== undefined) lines.push(problem);
      else if (pod !== before) madeStatic.push({ index: pods.length, written: nameOf(before), name: nameOf(pod) });
      origins.push({ at: ["pods", pods.length], source, base });
      pods.push(pod);
      written.push(before);
    }
  }
  const file = documents.value[0]?.file ?? path;
  const left = count - pods.length;
  if (count > LIMITS.pods && (left === count || pods.length > LIMITS.pods))
    return fault(EXIT.badInput, `${file}: holds ${count} pods, more than a node's ${LIMITS.pods}: ${SELECT}`);
  if (lines.length > 0) return fault(EXIT.badInput, ...lines);
  const ofOthers = left === 0 ? [] : [`${file}: ${left} of ${count} pods are not of ${nodeName}: they are left out`];
  const leftOut = [...others, ...ofOthers];
  return ok({ pods, written, madeStatic, leftOut, documents: documents.value.map((d) => d.value), origins });
}

const NO_PODS =
  "is what `crictl pods` prints, and --pods needs v1.Pods (kubectl get pods -A -o json): give it with --sandboxes";
const SELECT = "give those of one node (kubectl get pods -A --field-selector spec.nodeName=NAME -o json)";

const pageText = (field: string): string =>
  `the list of pods is one page of several (metadata.${field} is set), and each pod of the node counts: give the whole list: \`kubectl get pods -A -o json\` prints it, an API server answers with it when it is asked without \`limit\``;

const nameOf = (pod: unknown): string => String(fieldsOf(fieldsOf(pod)["metadata"])["name"]);

/** The paths of the pods in a document. */
function placesOf(value: unknown): readonly Path[] {
  if (Array.isArray(value)) return value.map((_, i) => [i]);
  return podItems(value)?.map((_, i) => ["items", i]) ?? [[]];
}

/** The paths of the pods in a document, and the kinds of other objects in a List, as `kubectl get pods,nodes` prints it. */
function podPlaces(value: unknown): { readonly pods: readonly Path[]; readonly others: readonly string[] } {
  const places = placesOf(value);
  if (fieldsOf(value)["kind"] !== "List") return { pods: places, others: [] };
  const items = fieldsOf(value)["items"] as readonly unknown[];
  const kindAt = ([, i]: Path): string => String(fieldsOf(items[Number(i)])["kind"]);
  const pods = places.filter((at) => kindAt(at) === "Pod");
  // a list without any pod is the wrong one, and each of its objects is reported
  if (pods.length === 0) return { pods: places, others: [] };
  return { pods, others: places.map(kindAt).filter((kind) => kind !== "Pod") };
}

/** `1 Node and 2 Services are`. */
function countedKinds(kinds: readonly string[]): string {
  const counts = Array.from(
    Map.groupBy(kinds, (kind) => kind),
    ([kind, { length }]) => many(length, kind),
  );
  return `${listed(counts)} ${kinds.length === 1 ? "is" : "are"}`;
}

function podAt(source: InputDocument, base: Path, nodeName: string): [pod: unknown, problem?: string] {
  const value = valueAt(source, base);
  if (hasUid(value) && (fieldsOf(value)["kind"] ?? "Pod") === "Pod") return [value];
  // items of a PodList may omit apiVersion and kind
  const isListed = base.length > 0 && fieldsOf(source.value)["kind"] !== "List";
  const pod = isListed ? { apiVersion: "v1", kind: "Pod", ...fieldsOf(value) } : value;
  const place = (path: Path) => (source.hasPlaces ? source.place([...base, ...path]) : { line: 1, column: 1 });
  const [made] = podsOf({ ...source, value: pod, place }, nodeName);
  if (made === undefined) return [value];
  return made.ok ? [made.value.pod] : [value, problemText(made.error)];
}
