import { perObject } from "../../base/cache.ts";
import { type InputIssue, joinPath } from "../../base/input-issue.ts";
import { LONGEST } from "../../base/near-name.ts";
import { type Fields, fieldsOf, isObject } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { type DocumentForm, formOf, formText } from "../../documents/document-form.ts";
import { INSTEAD, optionOfForm, PARTS } from "../../documents/inputs/parts.ts";
import { isKind, type Kind } from "../../model/decision.ts";
import type { PodRef } from "../../model/forms.ts";
import {
  type ObservedEvent,
  type ObservedNode,
  type ObservedPod,
  type ObservedSummary,
  readEvent,
  readNode,
  readPod,
  readSummary,
} from "../../model/observed.ts";
import { MIRROR_ANNOTATION } from "../../model/pod.ts";
import { CLAIM_PARTS } from "../../model/resource-claim.ts";
import { pageField } from "../../model/snapshot.ts";
import type { Piece, Unused } from "../../model/why.ts";
import { type CpuStat, cpuStatIn } from "./cpu-stat.ts";
import { type EventOrOutcome, type SeenOutcome, withOutcomes } from "./outcomes.ts";

/** A document as parsed JSON, not yet validated, and its origin, such as `pods.json` or `documents[2]`. */
export interface WhyDocument {
  readonly origin: string;
  readonly value: unknown;
  /** Nodes all of whose pods are in the document; a list does not say that itself. */
  readonly allPodsOf?: readonly string[];
  /** The document's node, if the document does not name one. */
  readonly node?: string;
}

/** A document that could not be read, and why, such as a missing permission. */
export interface UnreadPiece {
  readonly piece: Piece;
  readonly why: string;
}

/** Evidence in addition to the documents. */
export interface AdditionalEvidence {
  /** Outcomes from the history. */
  readonly outcomes?: readonly SeenOutcome[];
  /** When the live cluster was read for the documents, epoch ms. */
  readonly readAtMs?: number;
  /** The documents include every event that the cluster has about the pod. */
  readonly hasAllEvents?: boolean;
  /** Pieces that could not be read from the live cluster. */
  readonly unread?: readonly UnreadPiece[];
}

/** A part of a document. `place`: its position, such as `pods.json: items[3]`. */
interface Located {
  readonly value: Fields;
  readonly place: string;
}
export interface ObservedPodAt extends Located {
  readonly ref: PodRef;
  /** Empty if the pod is not bound to a node. */
  readonly node: string;
  /** RFC 3339; empty if unknown. */
  readonly createdAt: string;
  /**
   * The NodeSnapshot that the pod is from, which has only the status fields that decisions read and the reason of a failure. Null
   * if the pod is a document of its own.
   */
  readonly snapshot: LocatedSnapshot | null;
}
interface LocatedCpuStat {
  readonly origin: string;
  readonly stat: CpuStat;
}
export interface LocatedSnapshot extends Located {
  readonly node: string;
  /** Epoch ms; null if unknown. */
  readonly atMs: number | null;
}
/** A decision from the history or from a saved response. */
export interface RecordedDecision {
  readonly kind: Kind;
  readonly node: string | null;
  readonly id: string | null;
  readonly decidedAt: string | null;
  /** When the same decision was last made again. */
  readonly lastDecidedAt: string | null;
  readonly policyVersion: string;
  readonly verdict: string;
  readonly pod: PodRef | null;
  readonly decision: Fields;
  /** The id of the snapshot that the decision was made on. */
  readonly snapshotId: string | null;
}

/** The origin of a stored snapshot's document. */
export const snapshotOrigin = (id: string): string => `snapshot ${id}`;
/** The snapshot that a recorded decision was made on; null if it is not among the documents. */
export const snapshotOf = ({ snapshots }: Evidence, { snapshotId }: RecordedDecision): LocatedSnapshot | null =>
  snapshots.find(({ place }) => snapshotId !== null && place === snapshotOrigin(snapshotId)) ?? null;

/** The content of all documents, grouped by kind. */
export interface Evidence {
  readonly pods: readonly ObservedPodAt[];
  readonly nodes: ReadonlyMap<string, Located>;
  readonly events: readonly EventOrOutcome[];
  /** Oldest first. */
  readonly outcomes: readonly SeenOutcome[];
  /** Parts of a snapshot by node name; "" has the parts that name no node. */
  readonly parts: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  readonly cpuStats: readonly LocatedCpuStat[];
  readonly snapshots: readonly LocatedSnapshot[];
  /** Nodes all of whose pods are known. */
  readonly whole: ReadonlySet<string>;
  readonly decisions: readonly RecordedDecision[];
  readonly unused: readonly Unused[];
  readonly readAtMs: number | null;
  readonly hasAllEvents: boolean;
  readonly unread: readonly UnreadPiece[];
}

/** Two documents that cannot both be true. */
export interface Contradiction {
  readonly code: "contradicting_documents";
  readonly message: string;
}

/** The pod, parsed. Errors: it does not have the form of a pod. */
export const observed = perObject(
  (pod: ObservedPodAt): Result<ObservedPod, readonly InputIssue[]> => readPod(pod.value),
);
export const observedNode = (node: Located): Result<ObservedNode, readonly InputIssue[]> => readNode(node.value);
/** The fields of the stats that an explanation reads; null if they cannot be read. */
export const observedSummary = perObject((stats: object): ObservedSummary | null => {
  const read = readSummary(stats);
  return read.ok ? read.value : null;
});

/** A name of an object or another short text; empty if the value is neither. */
const textOf = (value: unknown): string => (typeof value === "string" && value.length <= LONGEST ? value : "");
/** The pod's reference from its own metadata. A mirror pod has the uid of the static pod that it stands for. */
export function refOf(pod: Fields): PodRef {
  const { name, namespace, uid, annotations } = fieldsOf(pod["metadata"]);
  const mirrored = textOf(fieldsOf(annotations)[MIRROR_ANNOTATION]);
  return { namespace: textOf(namespace) || "default", name: textOf(name), uid: mirrored || textOf(uid) };
}

/** Sorts documents by their content. Errors: two documents that cannot be from one cluster. */
export function evidenceOf(
  documents: readonly WhyDocument[],
  additional: AdditionalEvidence = {},
): Result<Evidence, Contradiction> {
  const { outcomes = [], readAtMs = null, hasAllEvents = false, unread = [] } = additional;
  const reading = new EvidenceReader();
  for (const one of outcomes) reading.outcome(one);
  for (const { value, origin, node = "" } of documents) reading.take(value, origin, node);
  const whole = new Set(documents.flatMap(({ allPodsOf = [] }) => allPodsOf));
  return reading.end({ outcomes, whole, readAtMs, hasAllEvents, unread });
}

type DocumentReader = (reading: EvidenceReader, value: Fields, place: string) => void;
/** Document forms that are not part of a snapshot. */
const DOCUMENT_READERS = {
  list: (reading, value, place) => reading.list(value, place),
  "v1.Pod": (reading, value, place) => reading.pod(value, place, null),
  "v1.Node": (reading, value, place) => reading.node(value, place),
  "v1.Event": (reading, value, place) => reading.event(value, place),
  decision: (reading, value) => reading.decision(value),
  snapshot: (reading, value, place) => reading.snapshot(value, place),
} satisfies Partial<Record<DocumentForm, DocumentReader>>;

class EvidenceReader {
  readonly #pods: ObservedPodAt[] = [];
  readonly #nodes = new Map<string, Located & { readonly isOfSnapshot: boolean }>();
  readonly #events: ObservedEvent[] = [];
  readonly #parts = new Map<string, Record<string, unknown>>();
  readonly #cpuStats: LocatedCpuStat[] = [];
  readonly #snapshots: LocatedSnapshot[] = [];
  readonly #decisions: RecordedDecision[] = [];
  readonly #unused: Unused[] = [];
  /** DRA objects, which come singly or in several lists, by their member name in `dra`. */
  readonly #dra = new Map<string, unknown[]>();
  #contradiction: string | null = null;

  end(
    additional: Pick<Evidence, "outcomes" | "whole" | "readAtMs" | "hasAllEvents" | "unread">,
  ): Result<Evidence, Contradiction> {
    if (this.#contradiction !== null) return err({ code: "contradicting_documents", message: this.#contradiction });
    for (const [name, items] of this.#dra) {
      const loose = this.#partsOf("");
      loose["dra"] = { ...fieldsOf(loose["dra"]), [name]: { items } };
    }
    return ok({
      ...additional,
      pods: this.#pods,
      nodes: this.#nodes,
      events: withOutcomes(this.#events, additional.outcomes),
      parts: this.#parts,
      cpuStats: this.#cpuStats,
      snapshots: this.#snapshots,
      decisions: this.#decisions,
      unused: this.#unused,
    });
  }

  /** `node`: the node of a part that does not name one. */
  take(value: unknown, place: string, node = ""): void {
    const form = formOf(value);
    if (form === undefined && Array.isArray(value)) {
      // the output of `jq -s`
      for (const [i, item] of value.entries()) this.take(item, `${place}[${i}]`);
    } else if (form === undefined) this.#leave(value, place, NOTHING);
    else if (form === "cpu.stat") this.#cpuStat(String(value), place);
    else if (isObject(value) && form in DOCUMENT_READERS)
      DOCUMENT_READERS[form as keyof typeof DOCUMENT_READERS](this, value, place);
    else this.#part(form, value, place, node);
  }

  outcome({ id, node, object, outcome: { at } }: SeenOutcome): void {
    if (object === null) return;
    const place = `outcome ${id}`;
    const value = { ...object, spec: { nodeName: node, ...fieldsOf(object["spec"]) } };
    this.pod(value, place, { node, atMs: Date.parse(at), value: {}, place });
  }

  #leave(value: unknown, origin: string, why: string): void {
    this.#unused.push({ origin, what: formText(value), why });
  }

  /** The items of a PodList and similar lists may omit kind and apiVersion. */
  list(list: Fields, place: string): void {
    const { kind, items } = list;
    const page = pageField(list);
    if (page !== null)
      this.#leave(
        list,
        place,
        `it is one page of several (metadata.${page} is set): what the others hold is not known`,
      );
    const itemKind = typeof kind === "string" && kind !== "List" ? kind.replace(/List$/, "") : undefined;
    for (const [i, item] of (Array.isArray(items) ? items : []).entries()) {
      const named = itemKind === undefined || !isObject(item) ? item : { kind: itemKind, ...item };
      this.take(named, joinedPlace(place, ["items", i]));
    }
  }

  pod(value: Fields, place: string, snapshot: LocatedSnapshot | null): void {
    const ref = refOf(value);
    if (ref.name === "") this.#leave(value, place, "it has no name");
    else {
      const node = textOf(fieldsOf(value["spec"])["nodeName"]);
      const createdAt = textOf(fieldsOf(value["metadata"])["creationTimestamp"]);
      this.#pods.push({ ref, node, createdAt, value, place, snapshot });
    }
  }

  node(value: Fields, place: string, isOfSnapshot = false): void {
    const name = textOf(fieldsOf(value["metadata"])["name"]);
    const known = this.#nodes.get(name);
    const [uid, other] = [value, known?.value].map((node) => textOf(fieldsOf(node?.["metadata"])["uid"]));
    const [version, earlier] = [value, known?.value].map(kubeletVersionOf);
    const both = `${place} and ${known?.place} are both a node ${name}`;
    if (uid !== "" && other !== "" && uid !== other) {
      this.#contradiction ??= `${both}, with the uids ${uid} and ${other}: they are of two clusters, or the node was created again; give the documents of one`;
    } else if (
      !isOfSnapshot &&
      known?.isOfSnapshot === false &&
      version !== earlier &&
      version !== "" &&
      earlier !== ""
    ) {
      this.#contradiction ??= `${both}, with the kubelets ${version} and ${earlier}: they are of two nodes, or of two times; give those of one`;
    }
    if (name === "") this.#leave(value, place, "it has no name");
    // if a node is given twice, the last one counts, but one without a uid, as from a snapshot, does not replace one with a uid
    else if (known === undefined || other === "" || uid !== "") this.#nodes.set(name, { value, place, isOfSnapshot });
  }

  event(value: Fields, place: string): void {
    const read = readEvent(value);
    if (read.ok) this.#events.push(read.value);
    else this.#leave(value, place, issueText(read.error));
  }

  decision(value: Fields): void {
    const { kind, node, id, decidedAt, lastDecidedAt, policyVersion, verdict, pod, decision, snapshotId } = value;
    if (typeof kind !== "string" || !isKind(kind)) return;
    const ref = fieldsOf(pod);
    this.#decisions.push({
      kind,
      node: textOf(node) || null,
      id: textOf(id) || null,
      decidedAt: textOf(decidedAt) || null,
      lastDecidedAt: textOf(lastDecidedAt) || textOf(decidedAt) || null,
      policyVersion: textOf(policyVersion),
      verdict: textOf(verdict),
      pod: isObject(pod)
        ? { namespace: textOf(ref["namespace"]), name: textOf(ref["name"]), uid: textOf(ref["uid"]) }
        : null,
      decision: fieldsOf(decision),
      snapshotId: textOf(snapshotId) || null,
    });
  }

  #cpuStat(text: string, origin: string): void {
    const stat = cpuStatIn(text);
    if (stat.ok) this.#cpuStats.push({ origin, stat: stat.value });
    else this.#leave(text, origin, stat.error);
  }

  snapshot(value: Fields, place: string): void {
    const { node, pods, ...rest } = value;
    const items = isObject(pods) ? pods["items"] : pods;
    const list = Array.isArray(items) ? items : [];
    const named = textOf(fieldsOf(fieldsOf(node)["metadata"])["name"]);
    const name = named || textOf(fieldsOf(fieldsOf(list[0])["spec"])["nodeName"]);
    const at = Date.parse(textOf(rest["observedAt"]));
    const snapshot = { node: name, atMs: Number.isNaN(at) ? null : at, value, place };
    this.#snapshots.push(snapshot);
    if (isObject(node) && named !== "") this.node(node, joinedPlace(place, ["node"]), true);
    for (const [i, pod] of list.entries()) {
      if (isObject(pod))
        this.pod(
          { ...pod, spec: { nodeName: name, ...fieldsOf(pod["spec"]) } },
          joinedPlace(place, ["pods", i]),
          snapshot,
        );
    }
    Object.assign(this.#partsOf(name), rest);
  }

  #partsOf(node: string): Record<string, unknown> {
    const parts = this.#parts.get(node) ?? {};
    this.#parts.set(node, parts);
    return parts;
  }

  /** A document of a node that is not a Kubernetes object. Stats name their node; the others do not. */
  #part(form: DocumentForm, value: unknown, place: string, of: string): void {
    const part = PARTS.find(({ option }) => option === optionOfForm(form));
    if (part === undefined) {
      this.#leave(value, place, INSTEAD[form] ?? NOTHING);
      return;
    }
    if (isObject(value) && CLUSTER_FORMS.has(form)) {
      const name = part.path.at(-1) as string;
      const items = Array.isArray(value["items"]) ? value["items"] : [value];
      const known = this.#dra.get(name) ?? [];
      for (const item of items) known.push(item);
      this.#dra.set(name, known);
      return;
    }
    const node = (form === "/stats/summary" && textOf(fieldsOf(fieldsOf(value)["node"])["nodeName"])) || of;
    const parts = this.#partsOf(node);
    const [first, second] = part.path as readonly [string, string?];
    const before = second === undefined ? parts[first] : fieldsOf(parts[first])[second];
    if (before !== undefined) this.#leave(value, place, "another one came before it, and that counts");
    else parts[first] = second === undefined ? value : { ...fieldsOf(parts[first]), [second]: value };
  }
}
const CLUSTER_FORMS: ReadonlySet<DocumentForm> = new Set(CLAIM_PARTS);
export const kubeletVersionOf = (node: Fields | undefined): string =>
  textOf(fieldsOf(fieldsOf(node?.["status"])["nodeInfo"])["kubeletVersion"]);
const NOTHING = "nothing in it is about a pod";
const joinedPlace = (place: string, path: readonly (string | number)[]): string => `${place}: ${joinPath("", path)}`;

export const issueText = (issues: readonly InputIssue[]): string =>
  issues.map(({ path, message }) => `${path}: ${message}`).join("; ");
