import type { StoreFailure } from "../../../db/failure.ts";
import type { Store } from "../../../db/store.ts";
import type { ReservesAdvice } from "../../model/advice.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { DAY_MS } from "../../model/duration.ts";
import type { InputIssue } from "../../model/input-issue.ts";
import { ok, type Result } from "../../model/result.ts";
import { profileIn } from "../../profiles/index.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import { type MeasuredStore, measuredHistory, type Span } from "./history.ts";
import { adviseReserves, USUAL_MARGIN_PERCENT, USUAL_PERCENTILE } from "./reserves.ts";

/** The question about a node of the history. */
export interface AdviceRequest {
  readonly span: Span;
  readonly percentile: number;
  readonly marginPercent: number;
  /** Measurements that are read, at most. */
  readonly limit: number;
}
/** The same as texts of a query or of a command line; absent: the usual. */
interface AdviceTexts {
  readonly percentile?: string | undefined;
  readonly margin?: string | undefined;
  readonly limit?: string | undefined;
}

export const USUAL_SPAN_MS = 7 * DAY_MS;
/** In a week, one for every half an hour; each is three statements of the history, of which some platforms allow 1,000. */
export const USUAL_LIMIT = 300;
/** In a week, one for every five minutes. */
export const MAX_LIMIT = 2016;
export const MAX_MARGIN_PERCENT = 1000;

/** Reads the numbers. Errors: what is none, or too small or large. */
export function adviceNumbers(
  { percentile, margin, limit }: AdviceTexts,
  defaultLimit: number,
): Result<Omit<AdviceRequest, "span">, readonly InputIssue[]> {
  const issues: InputIssue[] = [];
  const percent = /^\d+(?:\.\d+)?(?:e-\d+)?$/i.test(percentile ?? "1") ? Number(percentile ?? USUAL_PERCENTILE) : 0;
  if (percent <= 0 || percent > 100)
    issues.push({ path: "percentile", message: "must be a number above 0 and at most 100, such as 99" });
  const whole = (path: string, text: string | undefined, usual: number, least: number, most: number): number => {
    const number = text === undefined ? usual : /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    issues.push({ path, message: `must be a whole number from ${least} to ${most}` });
    return usual;
  };
  const marginPercent = whole("margin", margin, USUAL_MARGIN_PERCENT, 0, MAX_MARGIN_PERCENT);
  const read = whole("limit", limit, defaultLimit, 1, MAX_LIMIT);
  if (issues.length > 0) return { ok: false, error: issues };
  return ok({ percentile: percent, marginPercent, limit: read });
}

/** Advises what to reserve on a node, from what its recorded snapshots measured. A text: why nothing can be said. Errors: those of the history. */
export async function adviseNode(
  store: MeasuredStore & Pick<Store, "latestSnapshot">,
  node: string,
  { span, percentile, marginPercent, limit }: AdviceRequest,
): Promise<Result<ReservesAdvice | string, StoreFailure>> {
  const latest = await store.latestSnapshot(node);
  if (!latest.ok) return latest;
  if (latest.value === null) return ok("no snapshot of it is stored");
  const posted = postedSnapshot(latest.value);
  if (!posted.ok) return posted;
  const snapshot = decodeSnapshot(posted.value);
  if (!snapshot.ok) return ok("its latest snapshot cannot be read by this version");
  const measured = await measuredHistory(store, node, span, limit);
  if (!measured.ok) return measured;
  const profile = profileIn(snapshot.value);
  const question = { ...measured.value, snapshot: snapshot.value, profile, percentile, marginPercent };
  return ok(adviseReserves(question));
}
