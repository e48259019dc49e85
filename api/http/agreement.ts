import type { StoreFailure } from "../../db/failure.ts";
import type { OutcomeFilter, OutcomeQuery, OutcomeRow, OutcomeTally } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import type { InputIssue } from "../base/input-issue.ts";
import { notAmongIssue } from "../base/near-name.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import {
  AGREEMENT_VERDICTS,
  type AgreementVerdict,
  type Comparison,
  decodeOutcomes,
  isAgreementVerdict,
  isOutcomeKind,
  OUTCOME_KINDS,
} from "../model/outcome.ts";
import { type Agreement, agreementOf, recordOutcomes } from "../service/agreement/record.ts";
import { historyProblem, inputProblem, type Problem } from "../service/problem.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { csvText, OUTCOME_COLUMNS, outcomeCells } from "../text/csv.ts";
import { requireNode } from "./auth/authorize.ts";
import { postedValue } from "./body.ts";
import { DEFAULT_PAGE, pagesOf, rangeIn, reasonIssues } from "./decision-list.ts";
import { csv, type Exchange, json, MAX_CSV_ROWS, param, queryOf, queryProblem, wantsCsv } from "./route.ts";

/** POST /v1/nodes/{node}/outcomes: what a kubelet did, compared with what would have been decided. The same twice is recorded once. */
export async function postOutcomes(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { deps, caller } = exchange;
  const node = param(exchange, "node");
  const allowed = requireNode(caller, node);
  if (!allowed.ok) return allowed;
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const posted = decodeOutcomes(input.value);
  if (!posted.ok) return err(inputProblem(posted.error));
  const recorder = { store: deps.store, nowMs: deps.now(), sha256: deps.sha256 };
  const recorded = await recordOutcomes(recorder, node, posted.value);
  if (!recorded.ok) {
    if (recorded.error.code === "history_unavailable") deps.metrics.historyFailed(recorded.error.code);
    return recorded;
  }
  const fresh = recorded.value.filter(({ state }) => state === "new");
  for (const { outcome, comparison } of fresh) deps.metrics.compared(outcome.kind, comparison.verdict);
  if (fresh.length > 0) deps.metrics.recorded("outcomes", fresh.length);
  const outcomes = recorded.value.map(({ state, ...agreement }) => ({ ...answerOf(agreement), state }));
  return json({ outcomes }, fresh.length > 0 ? 201 : 200);
}

const AGREEMENT_FILTERS = [
  ...["since", "until", "kind", "node", "verdict", "reason", "pod", "namespace"],
  ...["limit", "pageToken", "format"],
] as const;
type AgreementParameters = Readonly<Partial<Record<(typeof AGREEMENT_FILTERS)[number], string>>>;

/** GET /v1/agreement: how outcomes compare, counted by kind, and a page of them, newest first. A node's token sees its own. */
export async function getAgreement(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, AGREEMENT_FILTERS);
  if (!given.ok) return given;
  const isCsv = wantsCsv(exchange, given.value.format);
  if (!isCsv.ok) return isCsv;
  const filter = agreementFilter(exchange, given.value);
  if (!filter.ok) return filter;
  const { limit = isCsv.value ? MAX_CSV_ROWS : DEFAULT_PAGE, pageToken } = given.value;
  const asked = { ...filter.value, limit: Number(limit), ...(pageToken === undefined ? {} : { pageToken }) };
  if (isCsv.value) {
    const cellsOf = (row: OutcomeRow) => outcomeCells(listedOutcome(row));
    const listed = await pagesOf(asked, (query) => exchange.deps.store.listOutcomes(query), cellsOf);
    if (!listed.ok) return historyProblem(listed.error);
    const { items, nextPageToken } = listed.value;
    return csv(exchange, csvText(OUTCOME_COLUMNS, items), "agreement", nextPageToken);
  }
  const page = await agreementPage(exchange.deps.store, asked);
  return page.ok ? json(page.value) : historyProblem(page.error);
}

/** The comparison of outcomes with decisions: counts for the filter without its verdict, and one page, newest first. */
export interface AgreementPage {
  readonly kinds: readonly KindAgreement[];
  readonly outcomes: readonly ListedOutcome[];
  readonly nextPageToken: string | null;
}
export async function agreementPage(
  store: Pick<Store, "tallyOutcomes" | "listOutcomes">,
  query: OutcomeQuery,
): Promise<Result<AgreementPage, StoreFailure>> {
  const { verdict: _, limit: __, pageToken: ___, ...all } = query;
  const tally = await store.tallyOutcomes(all, WHOLE_MS);
  if (!tally.ok) return tally;
  const page = await store.listOutcomes(query);
  if (!page.ok) return page;
  const { items, nextPageToken } = page.value;
  return ok({ kinds: countsOf(tally.value), outcomes: items.map(listedOutcome), nextPageToken });
}
/** A period that covers all outcomes, for a count without periods. */
export const WHOLE_MS = Number.MAX_SAFE_INTEGER;

/** The outcomes that a query asks for. Errors: every fault of it, and another node than the caller's. */
export function agreementFilter(
  { caller, deps }: Pick<Exchange, "caller" | "deps">,
  { kind, verdict, node, reason, pod, namespace, ...range }: AgreementParameters,
): Result<OutcomeFilter, Problem> {
  const issues: InputIssue[] = [];
  if (kind !== undefined && !isOutcomeKind(kind)) issues.push(notAmongIssue("kind", kind, OUTCOME_KINDS));
  if (verdict !== undefined && !isAgreementVerdict(verdict))
    issues.push(notAmongIssue("verdict", verdict, AGREEMENT_VERDICTS));
  issues.push(...reasonIssues(reason, true));
  const { issues: rangeIssues, times } = rangeIn(range, deps.now());
  issues.push(...rangeIssues);
  if (issues.length > 0) return queryProblem(issues);
  const own = node ?? caller.node;
  if (own !== null) {
    const allowed = requireNode(caller, own);
    if (!allowed.ok) return allowed;
  }
  return ok({
    ...(own === null ? {} : { node: own }),
    ...(kind === undefined ? {} : { kind }),
    ...(verdict === undefined ? {} : { verdict }),
    ...(reason === undefined ? {} : { reason }),
    ...(pod === undefined ? {} : { pod }),
    ...(namespace === undefined ? {} : { namespace }),
    ...times,
  });
}

/** The comparison counts of one kind of outcome. */
export interface KindAgreement {
  readonly kind: string;
  readonly agrees: number;
  readonly differs: number;
  readonly notComparable: number;
  /** The share of those that could be compared, 0 to 1; null: none could. */
  readonly share: number | null;
}
const FIELD = { agrees: "agrees", differs: "differs", "not-comparable": "notComparable" } as const;

/** Every kind of which there is an outcome, in the order of `OUTCOME_KINDS`. */
export function countsOf(tally: readonly OutcomeTally[]): readonly KindAgreement[] {
  const kinds = [...new Set([...OUTCOME_KINDS, ...tally.map(({ kind }) => kind)])];
  return kinds.flatMap((kind) => {
    const counts = { agrees: 0, differs: 0, notComparable: 0 };
    for (const row of tally) {
      if (row.kind === kind && isAgreementVerdict(row.verdict)) counts[FIELD[row.verdict]] += row.count;
    }
    const { agrees, differs, notComparable } = counts;
    if (agrees + differs + notComparable === 0) return [];
    return [{ kind, ...counts, share: agrees + differs === 0 ? null : agrees / (agrees + differs) }];
  });
}

/** Leaves out the pod's object: the compared fields contain everything that was decided on it. */
function answerOf({ id, node, recordedAtMs, outcome, comparison }: Agreement) {
  const { object: _, ...shown } = { object: undefined, ...outcome };
  return { id, node, recordedAt: rfc3339(recordedAtMs), outcome: shown, comparison };
}

/** A recorded outcome as lists show it; one that another version wrote in an unknown form has only its head. */
export function listedOutcome(row: OutcomeRow): ListedOutcome {
  const { id, node, kind, verdict, pod, reason } = row;
  const agreement = agreementOf(row);
  const head = { id, node, kind, verdict, at: rfc3339(row.atMs), recordedAt: rfc3339(row.recordedAtMs), pod, reason };
  if (agreement === null) return { ...head, outcome: null, comparison: null };
  const { outcome, comparison } = answerOf(agreement);
  return { ...head, outcome, comparison };
}
export interface ListedOutcome {
  readonly id: string;
  readonly node: string;
  readonly kind: string;
  readonly verdict: AgreementVerdict | string;
  readonly at: string;
  readonly recordedAt: string;
  readonly pod: OutcomeRow["pod"];
  readonly reason: string | null;
  readonly outcome: ReturnType<typeof answerOf>["outcome"] | null;
  readonly comparison: Comparison | null;
}
