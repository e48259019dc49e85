import { unlessDamaged } from "../../../db/failure.ts";
import type { FleetRow, LatestRow, Tally } from "../../../db/fleet-row.ts";
import type { DecisionHead, NodeRow, Store } from "../../../db/store.ts";
import type { Decided, DecisionOf, Refusal } from "../../model/decision.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import type { ProbesDecision } from "../../model/probes-decision.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import type { Problem } from "../../routes/problem.ts";
import { recollect } from "../../routes/remembered.ts";
import type { Undrawn } from "../record-part.ts";
import { decideOn, knowSnapshot, type Seen } from "./decided.ts";
import { aroundLatest, type EvictionHistory, evictionHistory } from "./eviction-history.ts";
import { probesIn } from "./probe-decision.ts";
import { type Reports, reportsOf } from "./reports.ts";

const DAY_MS = 86_400_000;
const NEWEST = 20;
/** Recorded dry runs that are looked at, and pods that are drawn. */
const PROBES = 20;
const PROBED_PODS = 4;

export interface ProbedPod {
  readonly head: DecisionHead;
  readonly decision: ProbesDecision;
}
/** All that a node's page shows. */
export interface NodeView {
  readonly row: NodeRow;
  /** Its newest decisions; null: none. */
  readonly fleet: FleetRow | null;
  /** What was decided about it in a day. */
  readonly day: Tally;
  readonly seen: Seen;
  readonly reports: Reports | null;
  readonly eviction: EvictionHistory;
  /** An eviction pass on the snapshot, where none was recorded. */
  readonly pass: Result<Decided<DecisionOf["eviction"]>, Refusal> | null;
  readonly imageGc: Result<Decided<DecisionOf["image-gc"]>, Refusal> | null;
  readonly probed: readonly ProbedPod[];
  readonly newest: readonly DecisionHead[];
  readonly undrawn: Undrawn;
}

/** Reads what the page of a node shows: a few rows by index, never all. */
export async function nodeView(
  store: Store,
  row: NodeRow,
  nowMs: number,
  undrawn: Undrawn,
): Promise<Result<NodeView, Problem>> {
  const fleet = await store.listFleet(nowMs - DAY_MS, row.name);
  if (!fleet.ok) return historyProblem(fleet.error);
  const latest = fleet.value[0] ?? null;
  const day = await store.tallyOf(row.name, nowMs - DAY_MS);
  if (!day.ok) return historyProblem(day.error);
  const seen = await seenOf(store, row);
  if (!seen.ok) return seen;
  const cgroups = latest?.latest.cgroups;
  const results = cgroups === undefined ? ok([]) : await store.listResults(cgroups.decisionId);
  if (!results.ok) return historyProblem(results.error);
  const eviction = await evictionHistory(store, row.name, latest?.latest);
  if (!eviction.ok) return historyProblem(eviction.error);
  const probed = await probedPods(store, row.name, latest?.latest.probes);
  if (!probed.ok) return probed;
  const newest = await store.listDecisions({ node: row.name, limit: NEWEST });
  if (!newest.ok) return historyProblem(newest.error);
  const snapshot = seen.value.state === "known" ? seen.value.known.snapshot : null;
  return ok({
    row,
    fleet: latest,
    day: day.value,
    seen: seen.value,
    reports: reportsOf(results.value),
    eviction: eviction.value,
    pass: snapshot === null || eviction.value.newest !== null ? null : decideOn("eviction", snapshot),
    imageGc: snapshot === null ? null : await imagePass(store, row.name, snapshot),
    probed: probed.value,
    newest: newest.value.items,
    undrawn,
  });
}

async function seenOf(store: Store, { name, lastSnapshotId }: NodeRow): Promise<Result<Seen, Problem>> {
  if (lastSnapshotId === null) return ok({ state: "never" });
  const found = await store.latestSnapshot(name);
  if (!found.ok && found.error.isRow === true) return ok({ state: "damaged", fault: found.error.message });
  if (!found.ok) return historyProblem(found.error);
  const row = found.value;
  if (row === null) return ok({ state: "gone", snapshotId: lastSnapshotId });
  const known = knowSnapshot(store, row);
  return ok(known.ok ? { state: "known", row, known: known.value } : { state: "unreadable", row, issues: known.error });
}

/** With what the history remembers of the node's images. */
async function imagePass(store: Store, node: string, snapshot: Snapshot): Promise<NodeView["imageGc"]> {
  const time = passTimeOf(snapshot);
  const pass = { kind: "image-gc", node, time, bootId: snapshot.bootId ?? null, readsImages: false } as const;
  const known = await recollect(store, pass);
  return decideOn("image-gc", snapshot, known.ok ? known.value.facts : null);
}

/** The newest recorded dry run of each of a few pods. */
async function probedPods(
  store: Store,
  node: string,
  latest: LatestRow | undefined,
): Promise<Result<readonly ProbedPod[], Problem>> {
  if (latest === undefined) return ok([]);
  const page = await store.listDecisions({ node, kind: "probes", limit: PROBES, ...aroundLatest(latest, DAY_MS) });
  if (!page.ok) return historyProblem(page.error);
  const byPod = new Map<string, DecisionHead>();
  for (const head of page.value.items) {
    const name = `${head.pod?.namespace}/${head.pod?.name}`;
    if (!byPod.has(name)) byPod.set(name, head);
  }
  const pods: ProbedPod[] = [];
  for (const head of [...byPod.values()].slice(0, PROBED_PODS)) {
    const found = unlessDamaged(await store.getDecision(head.id));
    if (!found.ok) return historyProblem(found.error);
    const decision = found.value === null ? null : probesIn(found.value.body);
    if (decision !== null) pods.push({ head, decision });
  }
  return ok(pods);
}
