import { issuesOf } from "../../model/decode.ts";
import { isObject } from "../../model/own.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { type SnapshotChanges, snapshotChanges } from "../../model/turn.ts";
import { type DecisionRequest, decisionRequest, isId, unknownField } from "../decision-request.ts";
import { inputProblem, invalid, type Problem } from "../problem.ts";

/** A decision that a turn asks for, and the id of the one that the caller has kept of it; null: none. */
export interface TurnAsk extends DecisionRequest {
  readonly holds: string | null;
}
/** The body of `POST /v1/nodes/{node}/turns`; a whole snapshot is not decoded yet. */
export interface TurnRequest {
  readonly from: { readonly snapshot: unknown } | { readonly base: string; readonly changes: SnapshotChanges };
  readonly asks: readonly TurnAsk[];
}

const FIELDS: ReadonlySet<string> = new Set(["base", "changes", "snapshot", "decisions"]);
/** Each kind has its place, and some are asked of several pods. */
export const MAX_ASKS = 64;
const given = (value: unknown): boolean => value !== undefined && value !== null;
const changesOrNone = snapshotChanges.nullish();

/** Errors: the first place that is wrong. Nothing of the node is known here. */
export function turnRequest(input: unknown): Result<TurnRequest, Problem> {
  if (typeof input !== "object" || input === null || Array.isArray(input))
    return invalid("$", 'expected an object such as {"snapshot": {...}, "decisions": [{"kind": "cgroups"}]}');
  const body = input as Readonly<Record<string, unknown>>;
  for (const name in body) if (!FIELDS.has(name)) return unknownField(name, FIELDS);
  const { base, changes, snapshot, decisions } = body;
  const asks = asksIn(decisions);
  if (!asks.ok) return asks;
  if (given(snapshot) === given(base)) {
    const found = given(base) ? "both" : "neither";
    return invalid("snapshot", `exactly one of snapshot and base is needed, found ${found}`);
  }
  if (given(snapshot)) {
    if (given(changes)) return invalid("changes", "a whole snapshot has no changes: name a base, or leave them out");
    return ok({ from: { snapshot }, asks: asks.value });
  }
  if (typeof base !== "string" || !isId(base))
    return invalid("base", "must be the snapshotId that an earlier turn answered: 32 hex digits");
  const read = changesOrNone.safeParse(changes);
  if (!read.success) return err(inputProblem(issuesOf(read.error, changes, "changes")));
  return ok({ from: { base, changes: read.data ?? {} }, asks: asks.value });
}

function asksIn(decisions: unknown): Result<readonly TurnAsk[], Problem> {
  const listed: unknown = decisions ?? [];
  if (!Array.isArray(listed) || listed.length > MAX_ASKS)
    return invalid("decisions", `must be a list of at most ${MAX_ASKS} decisions such as {"kind": "cgroups"}`);
  const asks: TurnAsk[] = [];
  for (const [i, posted] of listed.entries()) {
    const at = `decisions[${i}]`;
    if (!isObject(posted)) return invalid(at, 'must be an object such as {"kind": "cgroups"}');
    const { holds, ...rest } = posted;
    for (const name of ["snapshot", "snapshotId"] as const)
      if (name in rest) return invalid(`${at}.${name}`, "the turn has one snapshot for all of its decisions");
    if (given(holds) && (typeof holds !== "string" || !isId(holds)))
      return invalid(`${at}.holds`, "must be the id of a decision: 32 hex digits");
    const read = decisionRequest({ ...rest, snapshot: {} }, null);
    if (!read.ok) return err(placed(read.error, at));
    asks.push({ ...read.value, holds: (holds ?? null) as string | null });
  }
  return ok(asks);
}

/** The same problem of an ask that is one of several. */
function placed({ detail, issues }: Problem, at: string): Problem {
  const own = issues ?? [{ path: "kind", message: detail }];
  return inputProblem(own.map(({ path, message }) => ({ path: `${at}.${path}`, message })));
}
