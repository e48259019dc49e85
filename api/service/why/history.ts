import * as z from "zod";
import type { StoreFailure } from "../../../db/failure.ts";
import type { DecisionRow, OutcomeFilter, OutcomeRow, RemovalRow } from "../../../db/rows.ts";
import { type DecisionQuery, MAX_PAGE, type Store } from "../../../db/store.ts";
import { LONGEST } from "../../base/near-name.ts";
import { fieldsOf, isObject } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { type Form, namespacedName, type PodRef } from "../../model/forms.ts";
import { OUTCOME_KINDS, OUTCOME_TRAITS, type Outcome } from "../../model/outcome.ts";
import { podExplanationForm, podExplanationListForm } from "../../model/why.ts";
import { timeOf } from "../agreement/node-state.ts";
import { LONGEST_PREEMPTION_MS } from "../agreement/pods.ts";
import { agreementOf } from "../agreement/record.ts";
import { headOf } from "../decision-head.ts";
import { postedSnapshot, recordedAnswer } from "../replay/parsed.ts";
import { rfc3339 } from "../timestamp.ts";
import { type AdditionalEvidence, refOf, snapshotOrigin, type WhyDocument } from "./evidence.ts";
import type { PodName, Workload } from "./find-pod.ts";
import { isAdverse, type SeenOutcome } from "./outcomes.ts";
import { explainPod, explainPods, type PodExplanationFailure } from "./pod-explanation.ts";

/** The store methods that an explanation needs. */
type WhyStore = Pick<
  Store,
  "listNodes" | "latestSnapshot" | "getSnapshot" | "listDecisions" | "getDecision" | "listRemovals" | "listOutcomes"
>;
type Answer<T> = Promise<Result<T, StoreFailure>>;

/** The question: about one pod, or about all if `pod` is null. */
export interface WhyAsked {
  readonly pod: string | null;
  readonly namespace: string | null;
  /** The node to look at; null for all nodes. */
  readonly node: string | null;
}
/** Exactly one of the two is set: a pod's explanation, or the list of pods that have one. */
export const whyAnswer = z.strictObject({
  story: podExplanationForm.nullable().describe("the explanation of the pod; null: the request names no pod"),
  list: podExplanationListForm
    .nullable()
    .describe("the list of the pods that have findings; null: the request names a pod"),
});
export type WhyAnswer = Form<typeof whyAnswer>;
export type WhyFailure =
  | { readonly code: "no_story"; readonly why: PodExplanationFailure }
  | { readonly code: "history"; readonly failure: StoreFailure };

/** The answer from documents alone; with `workload`, the list has only its pods. Errors: see `storyOf` and `storiesIn`. */
export function whyOf(
  documents: readonly WhyDocument[],
  { pod, namespace }: WhyAsked,
  additional?: AdditionalEvidence,
  workload: Workload | null = null,
): Result<WhyAnswer, WhyFailure> {
  const result =
    pod === null
      ? explainPods(documents, namespace, additional, workload)
      : explainPod(documents, { pod, namespace }, additional);
  if (!result.ok) return err({ code: "no_story", why: result.error });
  return ok("findings" in result.value ? { story: result.value, list: null } : { story: null, list: result.value });
}

/** The answer from documents and from the history of the pod and its node. `documents` take precedence over the history. */
export async function whyOfHistory(
  store: WhyStore,
  asked: WhyAsked,
  documents: readonly WhyDocument[] = [],
): Promise<Result<WhyAnswer, WhyFailure>> {
  const { pod, namespace } = asked;
  const held = pod === null ? await ofAll(store, asked.node) : await ofPod(store, { pod, namespace }, asked.node);
  if (!held.ok) return err({ code: "history", failure: held.error });
  const { outcomes } = held.value;
  const answer = whyOf([...documents, ...held.value.documents], asked, { outcomes });
  if (answer.ok || answer.error.code !== "no_story" || answer.error.why.code !== "no_pods") return answer;
  const message = pod === null ? "the history has no pod" : `the history has no pod \`${pod.slice(0, LONGEST)}\``;
  return err({ code: "no_story", why: { code: pod === null ? "no_pods" : "no_such_pod", message, near: [] } });
}

/** What the history contributes to an answer. */
interface FromHistory {
  readonly documents: readonly WhyDocument[];
  readonly outcomes: readonly SeenOutcome[];
}

/** The most nodes that one answer looks at. */
const MAX_NODES = 500;
/** How many decisions about a pod or its node are looked at, newest first. */
const MAX_DECISIONS = 50;

async function nodesOf(store: WhyStore, node: string | null): Answer<readonly string[]> {
  if (node !== null) return ok([node]);
  const rows = await store.listNodes({ limit: MAX_NODES });
  return rows.ok ? ok(rows.value.map(({ name }) => name)) : rows;
}

/** Each node's latest snapshot, the kubelets' outcomes for its pods, and the newest removals and outcomes of other pods. */
async function ofAll(store: WhyStore, node: string | null): Answer<FromHistory> {
  const names = await nodesOf(store, node);
  if (!names.ok) return names;
  const found: WhyDocument[] = [];
  for (const name of names.value) {
    const latest = await latestOf(store, name);
    if (!latest.ok) return latest;
    found.push(...latest.value);
  }
  const of = node === null ? {} : { node };
  for (const filter of [
    { kind: "eviction", verdict: "evicts" },
    { kind: "admission", verdict: "refused" },
  ] as const) {
    const decisions = await decisionsOf(store, { ...of, ...filter, limit: MAX_DECISIONS });
    if (!decisions.ok) return decisions;
    found.push(...decisions.value.map(documentOf));
  }
  const there = new Set(found.flatMap(({ value }) => podsOf(value).map(({ uid }) => uid)));
  const outcomes = await outcomesOf(store, of, ({ uid }, found) => found < MAX_DECISIONS || there.has(uid));
  return outcomes.ok ? ok({ documents: found, outcomes: recent(outcomes.value, found) }) : outcomes;
}

/**
 * A pod's outcomes and decisions with the snapshots that they were compared with or made on, its node's latest snapshot, and what
 * was removed on the node.
 */
async function ofPod(store: WhyStore, { pod, namespace }: PodName, node: string | null): Answer<FromHistory> {
  const of = node === null ? {} : { node };
  const name = namespace === null || pod.includes("/") ? pod : `${namespace}/${pod}`;
  const isAsked = (ref: PodRef): boolean =>
    [ref.uid, namespacedName(ref)].includes(pod) ||
    (ref.name === pod && (namespace === null || ref.namespace === namespace));
  const own = await decisionsOf(store, { ...of, pod: name, limit: MAX_DECISIONS });
  if (!own.ok) return own;
  const done = await outcomesOf(store, { ...of, pod, ...(namespace === null ? {} : { namespace }) });
  if (!done.ok) return done;
  const decided = new Set([...own.value, ...done.value].map((row) => row.node));
  const names = decided.size > 0 ? ok([...decided]) : await nodesOf(store, node);
  if (!names.ok) return names;
  const found: WhyDocument[] = [];
  const others: WhyDocument[] = [];
  for (const at of names.value) {
    const latest = await latestOf(store, at);
    if (!latest.ok) return latest;
    const isHere = decided.has(at) || latest.value.some(({ value }) => podsOf(value).some(isAsked));
    if (!isHere) {
      if (others.length < MAX_OTHERS) others.push(...latest.value);
      continue;
    }
    const isOfNode = (one: { readonly node: string }): boolean => one.node === at;
    const rest = await ofNode(store, at, own.value.filter(isOfNode), done.value.filter(isOfNode));
    if (!rest.ok) return rest;
    found.push(...rest.value, ...latest.value);
  }
  const near = await preemptors(store, done.value);
  if (!near.ok) return near;
  // if no node has the pod, the pods of some nodes give similar names
  const documents = found.length > 0 ? found : others;
  return ok({ documents, outcomes: recent([...done.value, ...near.value], documents) });
}
const MAX_OTHERS = 20;

const podsOf = (snapshot: unknown): readonly PodRef[] => {
  const { pods } = fieldsOf(snapshot);
  return (Array.isArray(pods) ? pods : []).map(refOf);
};

/** A node's history in addition to its latest snapshot, oldest first. */
async function ofNode(
  store: WhyStore,
  node: string,
  own: readonly DecisionRow[],
  done: readonly SeenOutcome[],
): Answer<readonly WhyDocument[]> {
  const admissions = await decisionsOf(store, { node, kind: "admission", verdict: "decided", limit: MAX_DECISIONS });
  if (!admissions.ok) return admissions;
  const removals = await store.listRemovals({ node, target: "image", end: "removed", limit: MAX_DECISIONS });
  if (!removals.ok) return removals;
  const found: WhyDocument[] = [];
  const decidedOn = own.map(({ kind, snapshotId }) => (kind === "eviction" ? snapshotId : null));
  const comparedOn = done.map(({ outcome, comparison }) => (changesPods(outcome) ? comparison.snapshotId : null));
  const ids = new Set([...decidedOn, ...comparedOn].filter((id) => id !== null));
  for (const id of [...ids].slice(-MAX_SNAPSHOTS)) {
    const row = await store.getSnapshot(id);
    if (!row.ok) return row;
    const posted = row.value === null ? ok(null) : postedSnapshot(row.value);
    if (!posted.ok) return posted;
    if (posted.value !== null) found.push({ origin: snapshotOrigin(id), value: posted.value });
  }
  const decisions = new Map([...own, ...admissions.value].map((row) => [row.id, row]));
  const inOrder = [...decisions.values()].toSorted((a, b) => a.decidedAtMs - b.decidedAtMs);
  return ok([...found, ...removals.value.items.toReversed().map(removalDocument), ...inOrder.map(documentOf)]);
}
const MAX_SNAPSHOTS = 5;
/** Whether a decision on the node as it was explains an outcome of this kind. */
function changesPods({ kind }: Outcome): boolean {
  const { changes } = OUTCOME_TRAITS[kind];
  return changes === "admitted-pods" || changes === "ended-pods";
}

/** How many pages of outcomes of a kind are looked at, newest first. */
const MAX_PAGES = 10;

/** The newest outcomes of each kind for the wanted pods, oldest first. `found`: how many of the kind are already found. */
async function outcomesOf(
  store: WhyStore,
  of: OutcomeFilter,
  isWanted: (pod: PodRef, found: number) => boolean = () => true,
): Answer<readonly SeenOutcome[]> {
  const all: SeenOutcome[] = [];
  for (const kind of OUTCOME_KINDS.filter((one) => OUTCOME_TRAITS[one].explainsPods)) {
    let pageToken: string | null | undefined;
    let found = 0;
    for (let pages = 0; pages < MAX_PAGES && pageToken !== null; pages++) {
      const token = pageToken === undefined ? {} : { pageToken };
      const page = await store.listOutcomes({ ...of, kind, limit: MAX_PAGE, ...token });
      if (!page.ok) return page;
      for (const row of page.value.items) {
        const seen = row.pod !== null && isWanted(row.pod, found) ? seenIn(row) : null;
        if (seen === null || !isAdverse(seen.outcome)) continue;
        all.push(seen);
        found++;
      }
      pageToken = page.value.nextPageToken;
    }
  }
  return ok(all.toSorted((a, b) => timeOf(a.outcome) - timeOf(b.outcome)));
}

/** The outcome with its stored pod. Null if it is not about a pod, or another version wrote it in a different form. */
function seenIn(row: OutcomeRow): SeenOutcome | null {
  const kept = agreementOf(row);
  if (kept === null || !("pod" in kept.outcome)) return null;
  const { id, node, outcome, comparison } = kept;
  const { object } = fieldsOf(fieldsOf(JSON.parse(row.body))["outcome"]);
  return { id, node, outcome, comparison, object: isObject(object) ? object : null };
}

/** The pods that were admitted when others were preempted. */
async function preemptors(store: WhyStore, done: readonly SeenOutcome[]): Answer<readonly SeenOutcome[]> {
  const found: SeenOutcome[] = [];
  for (const { node, outcome } of done.filter((one) => one.outcome.kind === "preemption")) {
    const sinceMs = timeOf(outcome);
    const untilMs = sinceMs + LONGEST_PREEMPTION_MS;
    const page = await store.listOutcomes({ node, kind: "admission", sinceMs, untilMs, limit: MAX_PAGE });
    if (!page.ok) return page;
    found.push(...page.value.items.map(seenIn).filter((one) => one !== null));
  }
  return ok(found);
}

/** How long a cluster keeps its events, ms. */
const PROBES_MS = 3_600_000;
/** Leaves out outcomes of probes that are much older than the latest known time: their pods went on running. */
function recent(outcomes: readonly SeenOutcome[], documents: readonly WhyDocument[]): readonly SeenOutcome[] {
  const times = documents.map(({ value }) => Date.parse(String(fieldsOf(value)["observedAt"]))).filter((at) => at > 0);
  const since = Math.max(...times) - PROBES_MS;
  return outcomes.filter(({ outcome }) => outcome.kind !== "probes" || timeOf(outcome) > since);
}

async function latestOf(store: WhyStore, node: string): Answer<readonly WhyDocument[]> {
  const latest = await store.latestSnapshot(node);
  if (!latest.ok) return latest;
  if (latest.value === null) return ok([]);
  const posted = postedSnapshot(latest.value);
  return posted.ok ? ok([{ origin: snapshotOrigin(latest.value.id), value: posted.value }]) : posted;
}

/** The newest decisions in full, oldest first. A decision that was deleted meanwhile is skipped. */
async function decisionsOf(store: WhyStore, query: DecisionQuery): Answer<readonly DecisionRow[]> {
  const page = await store.listDecisions(query);
  if (!page.ok) return page;
  const rows: DecisionRow[] = [];
  for (const { id } of page.value.items) {
    const row = await store.getDecision(id);
    if (!row.ok) return row;
    if (row.value !== null) rows.push(row.value);
  }
  return ok(rows.toReversed());
}

/** The fields of `GET /v1/decisions/ID` that an explanation reads; for a damaged record only the fields outside the answer. */
function documentOf(row: DecisionRow): WhyDocument {
  const answer = recordedAnswer(row);
  return { origin: `decision ${row.id}`, value: { ...headOf(row), decision: answer.ok ? answer.value.decision : {} } };
}

/** A removal is stored longer than its decision; it becomes a decision document of that kind. */
const removalDocument = ({ decisionId, kind, atMs, names, why, end, sizeBytes }: RemovalRow): WhyDocument => ({
  origin: `removal of decision ${decisionId}`,
  value: { id: decisionId, kind, decidedAt: rfc3339(atMs), decision: { remove: [{ names, why, end, sizeBytes }] } },
});
