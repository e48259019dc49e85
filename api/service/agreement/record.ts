import type { OutcomeRow } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import { Lru } from "../../base/cache.ts";
import { byText } from "../../base/order.ts";
import { type Fields, fieldsOf, isObject } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import {
  type Comparison,
  decodeOutcomes,
  mergedOutcome,
  type NotComparable,
  OUTCOME_KINDS,
  OUTCOME_TRAITS,
  type Outcome,
  outcomeKey,
  reasonOfOutcome,
} from "../../model/outcome.ts";
import { effectiveSnapshot } from "../../profiles/effective.ts";
import { idOf, type Sha256 } from "../canonical.ts";
import { beforeKey } from "../node-facts.ts";
import { historyProblem, type Problem, problem } from "../problem.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import { TIME_SLICE_MS, yieldToEventLoop } from "../task-queue.ts";
import { compareOutcome, notYetMs } from "./compare.ts";
import type { Basis } from "./compared.ts";
import { timeOf } from "./node-state.ts";
import { LONGEST_PREEMPTION_MS } from "./pods.ts";

type OutcomeStore = Pick<Store, "listOutcomes" | "putOutcomes" | "snapshotBefore" | "getSnapshot" | "readFacts">;
interface Recorder {
  readonly store: OutcomeStore;
  readonly nowMs: number;
  readonly sha256: Sha256;
}

/** An outcome with the result of its comparison, as the API returns and the history stores it. */
export interface Agreement {
  readonly id: string;
  readonly node: string;
  readonly recordedAtMs: number;
  readonly outcome: Outcome;
  readonly comparison: Comparison;
}
/** `state`: whether the outcome is new or changed compared with what was recorded. */
interface RecordedAgreement extends Agreement {
  readonly state: "new" | "changed" | "same";
}

/** An outcome as the history stores it. */
interface KeptAgreement extends Agreement {
  readonly remembered: RememberedFacts;
}
/**
 * The node's facts when an outcome was first recorded, by kind, newest first: facts change, but a repeated comparison must use the
 * same ones. Image facts may have thousands of entries, so image outcomes are compared once.
 */
type RememberedFacts = Readonly<Record<string, readonly Fields[]>>;
type ReadSnapshot = Omit<Basis, "others" | "facts">;

/** Outcomes further apart than this do not affect each other's comparison. */
const NEAR_MS = LONGEST_PREEMPTION_MS;
/** The most outcomes of a node that are compared together. */
const MAX_NEAR = 2_000;
const PAGE = 500;

/**
 * Compares outcomes of a node with what would have been decided on the last snapshot before each, and records both; recorded
 * outcomes near them are compared again. INVARIANT: the order and number of times in which outcomes arrive do not change what is
 * recorded. A snapshot stored after an outcome was recorded is not used for it. Errors: of the history, and more outcomes at once
 * than can be compared.
 */
export async function recordOutcomes(
  recorder: Recorder,
  node: string,
  posted: readonly Outcome[],
): Promise<Result<readonly RecordedAgreement[], Problem>> {
  return inOrder(recorder.store, node, () => compareAndRecord(recorder, node, posted));
}

/** Outcomes of one node are recorded one batch after the other, as each batch depends on the one before. */
const inProgress = new WeakMap<object, Map<string, Promise<unknown>>>();
async function inOrder<T>(store: object, node: string, work: () => Promise<T>): Promise<T> {
  const ofStore = inProgress.get(store) ?? new Map<string, Promise<unknown>>();
  inProgress.set(store, ofStore);
  const before = ofStore.get(node) ?? Promise.resolve();
  const mine = before.then(work, work);
  ofStore.set(node, mine);
  try {
    return await mine;
  } finally {
    if (ofStore.get(node) === mine) ofStore.delete(node);
  }
}

async function compareAndRecord(
  { store, nowMs, sha256 }: Recorder,
  node: string,
  posted: readonly Outcome[],
): Promise<Result<readonly RecordedAgreement[], Problem>> {
  if (posted.length === 0) return ok([]);
  const ids = await Promise.all(posted.map((one) => idOf(sha256, JSON.stringify(["outcome", node, outcomeKey(one)]))));
  const near = await knownNear(store, node, posted);
  if (!near.ok) return near;
  const known = near.value;
  const merged = new Map<string, Outcome>([...known].map(([id, { outcome }]) => [id, outcome]));
  const changed = new Set<string>();
  for (const [i, one] of posted.entries()) {
    const id = ids[i] as string;
    const before = merged.get(id);
    const after = before === undefined ? one : mergedOutcome(before, one);
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(after)) continue;
    merged.set(id, after);
    changed.add(id);
  }
  const compared = await comparedAgain({ store, nowMs, node, known, merged, changed });
  if (!compared.ok) return compared;
  const rows = [...compared.value.values()].filter(({ id }) => isOther(known.get(id), compared.value.get(id)));
  const put = await store.putOutcomes(rows.map(rowOf));
  if (!put.ok) return historyProblem(put.error);
  const written = new Set(rows.map(({ id }) => id));
  const asked = [...new Set(ids)];
  const touched = [...asked, ...[...written].filter((id) => !asked.includes(id))];
  return ok(
    touched.flatMap((id) => {
      const agreement = compared.value.get(id) ?? known.get(id);
      if (agreement === undefined) return [];
      const state = known.has(id) ? (written.has(id) ? "changed" : "same") : "new";
      const { remembered: _, ...rest } = agreement;
      return [{ ...rest, state } as const];
    }),
  );
}
const isOther = (a: KeptAgreement | undefined, b: KeptAgreement | undefined): boolean =>
  JSON.stringify(a) !== JSON.stringify(b);

/** The node's recorded outcomes, from shortly before the first of these to shortly after the last. */
async function knownNear(
  store: OutcomeStore,
  node: string,
  posted: readonly Outcome[],
): Promise<Result<ReadonlyMap<string, KeptAgreement>, Problem>> {
  const known = new Map<string, KeptAgreement>();
  for (const { fromMs, toMs } of spans(posted.map(timeOf))) {
    let pageToken: string | null | undefined;
    while (pageToken !== null) {
      const page = await store.listOutcomes({
        node,
        sinceMs: fromMs - NEAR_MS,
        untilMs: toMs + NEAR_MS + 1,
        limit: PAGE,
        ...(pageToken === undefined ? {} : { pageToken }),
      });
      if (!page.ok) return historyProblem(page.error);
      for (const row of page.value.items) {
        const kept = keptAgreement(row);
        // another version wrote it in a form that this one does not know
        if (kept !== null) known.set(row.id, kept);
      }
      if (known.size > MAX_NEAR)
        return problem(
          "too_large",
          `more than ${MAX_NEAR} outcomes of \`${node.slice(0, 253)}\` are recorded within minutes of these: nothing of these was`,
        );
      pageToken = page.value.nextPageToken;
    }
  }
  return ok(known);
}

/** Groups times that are close to each other. */
function spans(times: readonly number[]): readonly { readonly fromMs: number; readonly toMs: number }[] {
  const found: { fromMs: number; toMs: number }[] = [];
  for (const time of times.toSorted((a, b) => a - b)) {
    const last = found.at(-1);
    if (last !== undefined && time - last.toMs <= 2 * NEAR_MS) last.toMs = time;
    else found.push({ fromMs: time, toMs: time });
  }
  return found;
}

interface RecordContext {
  readonly store: OutcomeStore;
  readonly nowMs: number;
  readonly node: string;
  readonly known: ReadonlyMap<string, KeptAgreement>;
  readonly merged: ReadonlyMap<string, Outcome>;
  readonly changed: ReadonlySet<string>;
}

/** Compares changed outcomes again, and those whose comparison depends on a changed one. */
async function comparedAgain(work: RecordContext): Promise<Result<ReadonlyMap<string, KeptAgreement>, Problem>> {
  const { merged, changed, known, node, nowMs } = work;
  const all = [...merged].sort(([k, a], [l, b]) => timeOf(a) - timeOf(b) || byText(k, l));
  const changedTimes = [...changed].map((id) => timeOf(merged.get(id) as Outcome));
  const bases = new BasisLookup(work);
  const compared = new Map<string, KeptAgreement>();
  let began = performance.now();
  for (const [id, outcome] of all) {
    const at = timeOf(outcome);
    const { readsPods, comparedOnce } = OUTCOME_TRAITS[outcome.kind];
    // other acts on the node change the state that is compared
    const isNear = readsPods && changedTimes.some((time) => Math.abs(time - at) <= NEAR_MS);
    if (!changed.has(id) && !isNear) continue;
    const others = all.filter(([other, one]) => other !== id && Math.abs(timeOf(one) - at) <= NEAR_MS);
    const own = known.get(id);
    const recordedAtMs = own?.recordedAtMs ?? nowMs;
    if (own !== undefined && comparedOnce) {
      compared.set(id, { ...own, outcome });
      continue;
    }
    const found = await bases.of(id, outcome);
    if (!found.ok) return found;
    const { on, remembered } = found.value;
    const basis = typeof on === "string" ? on : { ...on, others: others.map(([, one]) => one) };
    compared.set(id, {
      id,
      node,
      recordedAtMs,
      outcome,
      comparison: compareOutcome(outcome, basis),
      remembered: comparedOnce ? {} : remembered,
    });
    if (performance.now() - began > TIME_SLICE_MS) {
      await yieldToEventLoop();
      began = performance.now();
    }
  }
  return ok(compared);
}

interface BasisResult {
  readonly on: Omit<Basis, "others"> | NotComparable;
  readonly remembered: RememberedFacts;
}
/** How many snapshots are cached: they are read oldest first, and outcomes close to each other share one. */
const MAX_READ = 8;

/** Finds what to compare outcomes with: the last snapshot before each that was stored when the outcome was first recorded. */
class BasisLookup {
  readonly #work: RecordContext;
  readonly #read = new Lru<string, { readonly basis: ReadSnapshot | null }>(MAX_READ);
  #remembered: Promise<Result<RememberedFacts, Problem>> | undefined;
  constructor(work: RecordContext) {
    this.#work = work;
  }

  async of(id: string, outcome: Outcome): Promise<Result<BasisResult, Problem>> {
    const { known, store, node, nowMs } = this.#work;
    const before = known.get(id);
    const found = await store.snapshotBefore(node, notYetMs(outcome), before?.recordedAtMs ?? nowMs);
    if (!found.ok) return historyProblem(found.error);
    const remembering = before === undefined ? await this.#remembering(outcome) : ok(before.remembered);
    if (!remembering.ok) return remembering;
    const remembered = remembering.value;
    if (found.value === null) return ok({ on: "no_snapshot", remembered });
    const { id: snapshotId, body } = found.value;
    const { basis } = this.#read.get(snapshotId) ?? { basis: basisIn(snapshotId, body) };
    this.#read.set(snapshotId, { basis });
    if (basis === null) return ok({ on: "snapshot_not_readable", remembered });
    return ok({ on: { ...basis, facts: factsBefore(remembered, basis.observedAtMs) }, remembered });
  }

  async #remembering({ kind }: Outcome): Promise<Result<RememberedFacts, Problem>> {
    const of = OUTCOME_TRAITS[kind].facts;
    if (of === null) return ok({});
    this.#remembered ??= this.#readFacts();
    const all = await this.#remembered;
    return all.ok ? ok({ [of]: all.value[of] ?? [] }) : all;
  }
  async #readFacts(): Promise<Result<RememberedFacts, Problem>> {
    const { store, node } = this.#work;
    const kinds = new Set(OUTCOME_KINDS.flatMap((kind) => OUTCOME_TRAITS[kind].facts ?? []));
    const facts = await store.readFacts(
      node,
      [...kinds].flatMap((kind) => [kind, beforeKey(kind)]),
    );
    if (!facts.ok) return historyProblem(facts.error);
    return ok(
      Object.fromEntries(
        [...kinds].map((kind) => {
          const { next } = fieldsOf(facts.value[kind]);
          return [kind, [next, facts.value[beforeKey(kind)]].filter(isObject).map(withoutSamples)];
        }),
      ),
    );
  }
}

/** The facts without samples, which only forecasts use. */
const withoutSamples = (facts: Fields): Fields => ("samples" in facts ? { ...facts, samples: [] } : facts);

/** The newest facts of each kind from before the snapshot; newer ones are from later passes. */
const factsBefore = (remembered: RememberedFacts, observedAtMs: number): Basis["facts"] =>
  Object.fromEntries(
    Object.entries(remembered).flatMap(([kind, all]) => {
      const own = all.find(({ atMs }) => typeof atMs === "number" && atMs < observedAtMs);
      return own === undefined ? [] : [[kind, own]];
    }),
  );

function basisIn(snapshotId: string, body: string): ReadSnapshot | null {
  const posted = postedSnapshot({ id: snapshotId, body });
  const decoded = posted.ok ? decodeSnapshot(posted.value) : null;
  if (decoded?.ok !== true || decoded.value.observedAt === undefined) return null;
  const observedAtMs = Date.parse(decoded.value.observedAt);
  return { snapshotId, snapshot: effectiveSnapshot(decoded.value), observedAtMs };
}

function rowOf({ id, node, recordedAtMs, outcome, comparison, remembered }: KeptAgreement): OutcomeRow {
  return {
    id,
    node,
    kind: outcome.kind,
    verdict: comparison.verdict,
    atMs: timeOf(outcome),
    recordedAtMs,
    snapshotId: comparison.snapshotId,
    pod: "pod" in outcome ? outcome.pod : null,
    reason: reasonOfOutcome(outcome),
    body: JSON.stringify({ outcome, comparison, remembered }),
  };
}

/** The stored outcome; null if this version does not know its form. */
function keptAgreement({ id, node, recordedAtMs, body }: OutcomeRow): KeptAgreement | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return null;
  }
  const { outcome, comparison, remembered } = fieldsOf(parsed);
  const decoded = decodeOutcomes({ outcomes: [outcome] });
  const [own] = decoded.ok ? decoded.value : [];
  if (own === undefined || !isObject(comparison)) return null;
  return {
    id,
    node,
    recordedAtMs,
    outcome: own,
    comparison: comparison as unknown as Comparison,
    remembered: fieldsOf(remembered) as RememberedFacts,
  };
}

/** A row as the API returns it; null as for `keptAgreement`. */
export function agreementOf(row: OutcomeRow): Agreement | null {
  const kept = keptAgreement(row);
  if (kept === null) return null;
  const { remembered: _, ...agreement } = kept;
  return agreement;
}
