import { unlessDamaged } from "../../../db/failure.ts";
import type { DecisionHead, FleetRow, LatestRow, NodeRow, SnapshotRow, Tally } from "../../../db/rows.ts";
import type { ResultRow, Store } from "../../../db/store.ts";
import { Lru, perObject } from "../../base/cache.ts";
import { DAY_MS } from "../../base/duration.ts";
import type { InputIssue } from "../../base/input-issue.ts";
import { ok, type Result } from "../../base/result.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import type { Decided, DecisionOf, Explain, Kind, Refusal } from "../../model/decision.ts";
import { decodeStored } from "../../model/decode.ts";
import { decodeAsk, decodeFacts } from "../../model/decode-ask.ts";
import type { PodRef } from "../../model/forms.ts";
import { kindsWith } from "../../model/kinds.ts";
import type { Managed } from "../../model/managers.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import type { ProbesDecision } from "../../model/probes-decision.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { effectiveSnapshot } from "../../profiles/effective.ts";
import { isOfEarlierPass } from "../../service/fleet.ts";
import { readFactsBefore } from "../../service/node-facts.ts";
import { historyProblem, type Problem } from "../../service/problem.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";
import type { DrawFailureHandler } from "../record-part.ts";
import { aroundLatest, type EvictionHistory, evictionHistory } from "./eviction-history.ts";
import type { PlotRange } from "./lists.ts";

/** The report on one file of a cgroup, or (file "") on the cgroup itself. */
export interface Reported {
  readonly path: string;
  readonly file: string;
  readonly op: string;
  readonly wanted: string | null;
  /** The value before; null: the file did not exist, or was not read. */
  readonly found: string | null;
  readonly status: string;
  readonly message: string;
}
export interface Reports {
  /** Reported values by path, then by file. */
  readonly byPath: ReadonlyMap<string, ReadonlyMap<string, Reported>>;
  readonly atMs: number;
  /** True: a later pass had nothing to report, so everything is as decided. */
  readonly isOfEarlierPass: boolean;
  /** The reporter only looked. */
  readonly dryRun: boolean;
  /** Steps that are not as decided now. */
  readonly open: number;
  readonly corrected: number;
}

const AS_DECIDED: ReadonlySet<string> = new Set(["applied", "unchanged"]);
export const isOpen = ({ status }: Reported): boolean => !AS_DECIDED.has(status);

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

/** The newest report of one decision, which is of all its steps, as the fleet counts it; null: none was made. */
function reportsOf(rows: readonly ResultRow[], latest: LatestRow | undefined): Reports | null {
  const last = rows.at(-1);
  if (last === undefined) return null;
  if (isOfEarlierPass(last, latest))
    return { byPath: new Map(), atMs: last.atMs, isOfEarlierPass: true, dryRun: false, open: 0, corrected: 0 };
  const byPath = new Map<string, Map<string, Reported>>();
  const body = bodyOf(last.body);
  const dryRun = body.dryRun === true;
  for (const step of Array.isArray(body.steps) ? body.steps : []) {
    const report = reported(step as Record<string, unknown> | null);
    if (report === null) continue;
    const files = byPath.get(report.path) ?? new Map<string, Reported>();
    byPath.set(report.path, files.set(report.file, report));
  }
  const all = [...byPath.values()].flatMap((files) => [...files.values()]);
  const open = all.filter(isOpen).length;
  const corrected = all.filter(({ status }) => status === "applied").length;
  return { byPath, atMs: last.atMs, isOfEarlierPass: false, dryRun, open, corrected };
}

function bodyOf(text: string): { readonly dryRun?: unknown; readonly steps?: unknown } {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}

/** Reads a reported step, which may contain anything beside its status. */
function reported(step: Readonly<Record<string, unknown>> | null): Reported | null {
  const path = textOf(step?.["path"]);
  const status = textOf(step?.["status"]);
  if (step === null || path === null || status === null) return null;
  return {
    path,
    file: textOf(step["file"]) ?? "",
    op: textOf(step["op"]) ?? "write",
    wanted: textOf(step["to"]) ?? textOf(step["value"]),
    found: textOf(step["before"]) ?? textOf(step["from"]),
    status,
    message: textOf(step["message"]) ?? "",
  };
}

/** A recorded dry run; null if another version wrote something that cannot be drawn. */
function probesIn(body: string): ProbesDecision | null {
  const decision = decisionIn(body);
  if (typeof decision !== "object" || decision === null) return null;
  const { containers, endMs } = decision as Partial<ProbesDecision>;
  const isDrawn = Array.isArray(containers) && Number.isFinite(endMs) && containers.every(isContainer);
  return isDrawn ? (decision as ProbesDecision) : null;
}

const LISTS = ["runs", "started", "ready", "probes"] as const;
const isContainer = (container: unknown): boolean =>
  typeof container === "object" &&
  container !== null &&
  LISTS.every((name) => Array.isArray((container as Record<string, unknown>)[name]));

function decisionIn(body: string): unknown {
  try {
    return (JSON.parse(body) as { decision?: unknown } | null)?.decision;
  } catch {
    return null;
  }
}

const NEWEST = 6;
/** Recorded dry runs that are looked at, and pods that are drawn. */
const PROBES = 20;
const PROBED_PODS = 4;

export interface ProbedPod {
  readonly head: DecisionHead;
  readonly decision: ProbesDecision;
}
/** The data of a node's page. */
export interface NodeView {
  readonly row: NodeRow;
  /** The newest decisions; null: none. */
  readonly fleet: FleetRow | null;
  /** The decisions about it in a day. */
  readonly day: Tally;
  readonly seen: Seen;
  readonly reports: Reports | null;
  readonly eviction: EvictionHistory;
  /** An eviction pass on the snapshot, if none was recorded. */
  readonly pass: Result<Decided<DecisionOf["eviction"]>, Refusal> | null;
  readonly imageGc: Result<Decided<DecisionOf["image-gc"]>, Refusal> | null;
  readonly probed: readonly ProbedPod[];
  readonly newest: readonly DecisionHead[];
  readonly undrawn: DrawFailureHandler;
}

/** Reads what the page of a node shows: a few rows by index, never all. */
export async function nodeView(
  store: Store,
  row: NodeRow,
  nowMs: number,
  { undrawn, range }: { readonly undrawn: DrawFailureHandler; readonly range: PlotRange | null },
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
  const eviction = await evictionHistory(store, row.name, latest?.latest, range);
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
    reports: reportsOf(results.value, cgroups),
    eviction: eviction.value,
    pass: snapshot === null || eviction.value.newest !== null ? null : decideOn("eviction", snapshot, null, "reasons"),
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

/** Runs an image pass with what the history remembers of the node's images. */
async function imagePass(store: Store, node: string, snapshot: Snapshot): Promise<NodeView["imageGc"]> {
  const time = passTimeOf(snapshot);
  const pass = { kind: "image-gc", node, time, bootId: snapshot.bootId ?? null, readsImages: false } as const;
  const known = await readFactsBefore(store, pass);
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

/** The newest eviction pass: as it was recorded, else as one on the snapshot would be. */
export const passOf = ({ eviction, pass }: NodeView): DecisionOf["eviction"] | null =>
  eviction.newest?.decision ?? (pass?.ok === true ? pass.value.decision : null);

/** A part of the page that is updated after a decision about the node. */
export const section = (id: string, title: string, content: Html | "", aside: Html | "" = ""): Html => html`
<section id="${id}" data-live aria-labelledby="${id}-title"><h2 id="${id}-title">${title} ${aside}</h2>
${content}</section>`;

/** A folded part of the page. `isOpen`: it contains what the link requests. */
export const folded = (
  id: string,
  title: string,
  content: Html | "",
  isOpen: boolean,
  aside: Html | "" = "",
): Html => html`
<section id="${id}" data-live aria-labelledby="${id}-title"><details id="${id}-part"${isOpen ? html` open` : ""}><summary><h2 id="${id}-title">${title} ${aside}</h2></summary>
${content}</details></section>`;

/** The note in place of a picture: what is not known, and what to post so that it is. */
export const notKnown = (what: string, needs: readonly string[] = [], more: Html | "" = ""): Html =>
  html`<div class="note warn"><p>${what}.</p>${
    needs.length === 0
      ? ""
      : html`<p class="small">To post in the snapshot: ${needs.map((need, i) => html`${i === 0 ? "" : ", "}<code>${need}</code>`)}</p>`
  }${more}</div>`;

/** A kind's refusal, in its own words. */
export const refusedText = ({ message, needs }: Refusal): Html =>
  notKnown(`Not decided: ${message.replace(/\.$/, "")}`, needs);

/** Marks a folded part that has nothing to show. */
export const NOT_KNOWN = html`<span class="tag">not known</span>`;
/** A part of the page whose kind was refused. */
export const undecided = (id: string, title: string, refusal: Refusal): Html =>
  folded(id, title, refusedText(refusal), false, NOT_KNOWN);

/** A table that scrolls by itself, by keyboard too. */
export const scrolling = (label: string, table: Html): Html =>
  html`<div class="scroll" tabindex="0" role="region" aria-label="${label}">${table}</div>`;

/** A pod that is gone from the snapshot has only its uid. */
export const podName = ({ namespace, name, uid }: PodRef): string =>
  name === "" ? `(gone) ${uid}` : `${namespace}/${name}`;

/** Why a kubelet would not start with this, and what it accepts silently, without what `shown` already contains. */
export function managedNotes({ startErrors, warnings }: Notes, shown?: Notes): Html {
  const errors = startErrors.filter((line) => shown?.startErrors.includes(line) !== true);
  const others = warnings.filter((line) => shown?.warnings.includes(line) !== true);
  return html`${errors.map((error) => html`<p class="note bad">The kubelet does not start: ${error}</p>`)}${others.map((line) => html`<p class="note warn">${line}</p>`)}`;
}
type Notes = Pick<Managed, "startErrors" | "warnings">;
/** The notes that the CPU part of the page already shows. */
export const reportedCpus = ({ decided: { cpus } }: Pick<DecidedSnapshot, "decided">): Notes | undefined =>
  cpus.ok ? cpus.value.decision : undefined;

type Answer<K extends Kind> = Result<Decided<DecisionOf[K]>, Refusal>;

/** Kinds of the page whose answer depends on the snapshot alone. */
const FROM_SNAPSHOT = kindsWith("nodePage", "snapshot");

/** A snapshot with the decisions that the page shows. */
export interface DecidedSnapshot {
  readonly snapshot: Snapshot;
  readonly decided: { readonly [K in (typeof FROM_SNAPSHOT)[number]]: Answer<K> };
}
/** Why nothing can be drawn of a node. */
type Seen =
  | { readonly state: "known"; readonly row: SnapshotRow; readonly known: DecidedSnapshot }
  | { readonly state: "never" }
  | { readonly state: "gone"; readonly snapshotId: string }
  /** A damaged record in the history. */
  | { readonly state: "damaged"; readonly fault: string }
  | { readonly state: "unreadable"; readonly row: SnapshotRow; readonly issues: readonly InputIssue[] };

/** A decision of a kind on the snapshot; `remembered` is what the history has of the node for it. */
export function decideOn<K extends Kind>(
  kind: K,
  snapshot: Snapshot,
  remembered: unknown = null,
  explain: Explain = "off",
): Answer<K> {
  const ask = decodeAsk(kind, undefined);
  const facts = decodeFacts(kind, remembered, "facts");
  if (!ask.ok) throw new Error(`${kind} cannot be asked nothing`);
  const known = facts.ok && facts.value !== undefined ? { [kind]: facts.value } : {};
  return decideKind(kind, { snapshot, facts: known, ask: ask.value, explain }) as Answer<K>;
}

function know(text: string): Result<DecidedSnapshot, readonly InputIssue[]> {
  const decoded = decodeStored(parsed(text));
  if (!decoded.ok) return decoded;
  const snapshot = decoded.value;
  const effective = effectiveSnapshot(snapshot);
  const decided = Object.fromEntries(FROM_SNAPSHOT.map((kind) => [kind, decideOn(kind, effective)]));
  return { ok: true, value: { snapshot, decided: decided as DecidedSnapshot["decided"] } };
}

/** Parses JSON. A text that is no JSON is no snapshot either, and is reported in the same way. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The number of cached views: each costs the time of a few requests, and some megabytes of a large node. */
const MAX_KNOWN = 8;
const knownOf = perObject(
  (_owner: object) => new Lru<string, Result<DecidedSnapshot, readonly InputIssue[]>>(MAX_KNOWN),
);

/**
 * The page's view of a stored snapshot, cached among the last ones of this app
 * (`owner`).
 */
export function knowSnapshot(owner: object, { id, body }: Pick<SnapshotRow, "id" | "body">): ReturnType<typeof know> {
  const kept = knownOf(owner);
  const found = kept.get(id) ?? know(body);
  kept.set(id, found);
  return found;
}
