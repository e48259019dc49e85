import type { StoreFailure } from "../../../db/failure.ts";
import type { DecisionRow, RemovalRow } from "../../../db/rows.ts";
import type { DecisionQuery, Store } from "../../../db/store.ts";
import { LONGEST } from "../../model/near-name.ts";
import { fieldsOf } from "../../model/own.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Story, StoryList } from "../../model/why.ts";
import { headOf } from "../decision-head.ts";
import { postedSnapshot, recordedAnswer } from "../replay/parsed.ts";
import { rfc3339 } from "../timestamp.ts";
import { refOf, snapshotOrigin, type WhyDocument } from "./evidence.ts";
import type { PodName } from "./find-pod.ts";
import { type NoStory, storiesIn, storyOf } from "./story.ts";

/** The parts of a history that a story is made of. */
export type WhyStore = Pick<
  Store,
  "listNodes" | "latestSnapshot" | "getSnapshot" | "listDecisions" | "getDecision" | "listRemovals"
>;
type Answer<T> = Promise<Result<T, StoreFailure>>;

/** What is asked: a pod, or (null) all of them. */
export interface WhyAsked {
  readonly pod: string | null;
  readonly namespace: string | null;
  /** Of this node alone; null: of all. */
  readonly node: string | null;
}
/** One of the two is there: a pod's story, or the pods that have one. */
export interface WhyAnswer {
  readonly story: Story | null;
  readonly list: StoryList | null;
}
export type WhyFailure =
  | { readonly code: "no_story"; readonly why: NoStory }
  | { readonly code: "history"; readonly failure: StoreFailure };

/** The answer from documents alone. Errors: see `storyOf` and `storiesIn`. */
export function whyOf(documents: readonly WhyDocument[], { pod, namespace }: WhyAsked): Result<WhyAnswer, WhyFailure> {
  const told = pod === null ? storiesIn(documents, namespace) : storyOf(documents, { pod, namespace });
  if (!told.ok) return err({ code: "no_story", why: told.error });
  return ok("findings" in told.value ? { story: told.value, list: null } : { story: null, list: told.value });
}

/** The same with what a history holds of the pod and its node. `documents` come first: what they tell counts before it. */
export async function whyOfHistory(
  store: WhyStore,
  asked: WhyAsked,
  documents: readonly WhyDocument[] = [],
): Promise<Result<WhyAnswer, WhyFailure>> {
  const { pod, namespace } = asked;
  const held = pod === null ? await ofAll(store, asked.node) : await ofPod(store, { pod, namespace }, asked.node);
  if (!held.ok) return err({ code: "history", failure: held.error });
  const told = whyOf([...documents, ...held.value], asked);
  if (told.ok || told.error.code !== "no_story" || told.error.why.code !== "no_pods") return told;
  const message =
    pod === null ? "the history tells of no pod" : `the history tells of no pod \`${pod.slice(0, LONGEST)}\``;
  return err({ code: "no_story", why: { code: pod === null ? "no_pods" : "no_such_pod", message, near: [] } });
}

/** Nodes that one answer looks at. */
const MAX_NODES = 500;
/** Decisions about a pod, and of its node, that are looked at: the newest. */
const MAX_DECISIONS = 50;

async function nodesOf(store: WhyStore, node: string | null): Answer<readonly string[]> {
  if (node !== null) return ok([node]);
  const rows = await store.listNodes({ limit: MAX_NODES });
  return rows.ok ? ok(rows.value.map(({ name }) => name)) : rows;
}

/** Each node's latest snapshot, and the newest evictions and refusals. */
async function ofAll(store: WhyStore, node: string | null): Answer<readonly WhyDocument[]> {
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
  return ok(found);
}

/** The decisions about a pod with the snapshots that they were made on, its node's latest one, and what was removed there. */
async function ofPod(
  store: WhyStore,
  { pod, namespace }: PodName,
  node: string | null,
): Answer<readonly WhyDocument[]> {
  const of = node === null ? {} : { node };
  const name = namespace === null || pod.includes("/") ? pod : `${namespace}/${pod}`;
  const own = await decisionsOf(store, { ...of, pod: name, limit: MAX_DECISIONS });
  if (!own.ok) return own;
  const decided = new Set(own.value.map((row) => row.node));
  const names = decided.size > 0 ? ok([...decided]) : await nodesOf(store, node);
  if (!names.ok) return names;
  const found: WhyDocument[] = [];
  const others: WhyDocument[] = [];
  for (const at of names.value) {
    const latest = await latestOf(store, at);
    if (!latest.ok) return latest;
    const isHere = decided.has(at) || latest.value.some(({ value }) => holds(value, pod));
    if (!isHere) {
      if (others.length < MAX_OTHERS) others.push(...latest.value);
      continue;
    }
    const rest = await ofNode(
      store,
      at,
      own.value.filter((row) => row.node === at),
    );
    if (!rest.ok) return rest;
    found.push(...rest.value, ...latest.value);
  }
  // where no node has it, the pods of some tell near names
  return ok(found.length > 0 ? found : others);
}
const MAX_OTHERS = 20;

const holds = (snapshot: unknown, pod: string): boolean => {
  const { pods } = fieldsOf(snapshot);
  return (Array.isArray(pods) ? pods : [])
    .map(refOf)
    .some(({ namespace, name, uid }) => [uid, name, `${namespace}/${name}`].includes(pod));
};

/** What a node's history tells beside its latest snapshot, the oldest first. */
async function ofNode(store: WhyStore, node: string, own: readonly DecisionRow[]): Answer<readonly WhyDocument[]> {
  const admissions = await decisionsOf(store, { node, kind: "admission", verdict: "decided", limit: MAX_DECISIONS });
  if (!admissions.ok) return admissions;
  const removals = await store.listRemovals({ node, target: "image", end: "removed", limit: MAX_DECISIONS });
  if (!removals.ok) return removals;
  const found: WhyDocument[] = [];
  const ids = new Set(
    own.flatMap(({ kind, snapshotId }) => (kind === "eviction" && snapshotId !== null ? [snapshotId] : [])),
  );
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

async function latestOf(store: WhyStore, node: string): Answer<readonly WhyDocument[]> {
  const latest = await store.latestSnapshot(node);
  if (!latest.ok) return latest;
  if (latest.value === null) return ok([]);
  const posted = postedSnapshot(latest.value);
  return posted.ok ? ok([{ origin: snapshotOrigin(latest.value.id), value: posted.value }]) : posted;
}

/** The newest decisions whole, the oldest first. One that went meanwhile is passed. */
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

/** As `GET /v1/decisions/ID` answers it, as far as a story reads it; a record that is damaged tells its head alone. */
function documentOf(row: DecisionRow): WhyDocument {
  const answer = recordedAnswer(row);
  return { origin: `decision ${row.id}`, value: { ...headOf(row), decision: answer.ok ? answer.value.decision : {} } };
}

/** A removal outlives the decision that told of it: it is told as one of that kind. */
const removalDocument = ({ decisionId, kind, atMs, names, why, end, sizeBytes }: RemovalRow): WhyDocument => ({
  origin: `removal of decision ${decisionId}`,
  value: { id: decisionId, kind, decidedAt: rfc3339(atMs), decision: { remove: [{ names, why, end, sizeBytes }] } },
});
