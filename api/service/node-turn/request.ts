import * as z from "zod";
import { memo } from "../../base/cache.ts";
import { ref } from "../../base/json-schema.ts";
import { type Fields, isObject } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { issuesOf } from "../../model/decode.ts";
import { optional } from "../../model/fields.ts";
import { type SnapshotChanges, snapshotChanges } from "../../model/turn.ts";
import { idText, readBody } from "../body-form.ts";
import { type DecisionRequest, decisionRequest, lineForm } from "../decision-request.ts";
import { inputProblem, invalid, type Problem } from "../problem.ts";
import type { TurnInput } from "./node-state.ts";

/** A decision that a turn requests. */
export interface TurnAsk extends DecisionRequest {
  /** The id of the caller's last answer; null if it has none. */
  readonly holds: string | null;
  /** Equal for questions that differ only in the snapshot. */
  readonly key: string;
}
/** The body of `POST /v1/nodes/{node}/turns`, with a whole snapshot not decoded yet. */
export interface TurnRequest {
  readonly from:
    | { readonly snapshot: unknown }
    | { readonly base: string; readonly changes: SnapshotChanges }
    /** A whole snapshot that is decoded already. It is written at once. */
    | { readonly input: TurnInput };
  readonly asks: readonly TurnAsk[];
}
/** A decision about a whole snapshot, as a turn of its node. */
export interface PostedTurn {
  readonly node: string;
  readonly request: TurnRequest;
}

/** The most decisions in a turn: one per kind, and for some kinds one per pod. */
export const MAX_ASKS = 64;
const notAsks = `must be a list of at most ${MAX_ASKS} decisions such as {"kind": "cgroups"}`;
export const turnForm = z.strictObject({
  base: optional(idText("must be the snapshotId that an earlier turn answered: 32 hex digits")).describe(
    "the snapshotId in the answer of the last turn",
  ),
  changes: optional(snapshotChanges).describe(
    "the changes since the snapshot `base`; no part and no entry may be named twice",
  ),
  snapshot: optional(z.unknown().meta(ref("SnapshotOfNode"))),
  decisions: optional(z.array(z.unknown(), notAsks).max(MAX_ASKS, notAsks)).describe(
    "the requested decisions, answered in this order; without any, the snapshot is only stored",
  ),
});
const holds = optional(idText("must be the id of a decision: 32 hex digits")).describe(
  "the id of the decision of this kind that the caller has kept, so that the answer may be a patch of it",
);
/** A requested decision, about the turn's snapshot. */
export const askForm = lineForm.omit({ snapshot: true, snapshotId: true }).extend({ holds });

/** Parses the body without looking at the node. Errors: the first fault. */
export function turnRequest(input: unknown): Result<TurnRequest, Problem> {
  const body = readBody(turnForm, input, '{"snapshot": {...}, "decisions": [{"kind": "cgroups"}]}');
  if (!body.ok) return body;
  const { base, changes, snapshot, decisions = [] } = body.value;
  const asks = asksIn(decisions);
  if (!asks.ok) return asks;
  if (base !== undefined && snapshot === undefined)
    return ok({ from: { base, changes: changes ?? {} }, asks: asks.value });
  if (snapshot !== undefined && base === undefined) {
    if (changes === undefined) return ok({ from: { snapshot }, asks: asks.value });
    return invalid("changes", "a whole snapshot has no changes: name a base, or leave them out");
  }
  const found = base === undefined ? "neither" : "both";
  return invalid("snapshot", `exactly one of snapshot and base is needed, found ${found}`);
}

type TurnAskResult = Result<TurnAsk, Problem>;
function turnAsk(posted: Fields): TurnAskResult {
  const read = decisionRequest({ ...posted, snapshot: {} }, null);
  if (!read.ok) return read;
  return ok(askOf(read.value));
}
/** A question by itself. */
export function askOf(request: DecisionRequest): TurnAsk {
  const { kind, explain, askText, kubeletVersion, record } = request;
  return { ...request, key: JSON.stringify([kind, explain, askText, kubeletVersion, record]), holds: null };
}
/** The most asks that are remembered, and the longest: turn after turn, all nodes of a fleet ask the same. */
const MAX_KNOWN = 256;
const MAX_KNOWN_LENGTH = 512;
const knownAsk = memo(MAX_KNOWN, (text): TurnAskResult => turnAsk(JSON.parse(text)));

function asksIn(decisions: readonly unknown[]): Result<readonly TurnAsk[], Problem> {
  const asks: TurnAsk[] = [];
  for (const [i, posted] of decisions.entries()) {
    const at = `decisions[${i}]`;
    if (!isObject(posted)) return invalid(at, 'must be an object such as {"kind": "cgroups"}');
    const { holds: held, ...rest } = posted;
    for (const name of ["snapshot", "snapshotId"] as const)
      if (name in rest) return invalid(`${at}.${name}`, "the turn has one snapshot for all of its decisions");
    const id = holds.safeParse(held ?? undefined);
    if (!id.success) return err(inputProblem(issuesOf(id.error, held, `${at}.holds`)));
    const text = JSON.stringify(rest);
    const read = text.length > MAX_KNOWN_LENGTH ? turnAsk(rest) : knownAsk(text);
    if (!read.ok) return err(placed(read.error, at));
    asks.push({ ...read.value, holds: id.data ?? null });
  }
  return ok(asks);
}

/** The problem of one requested decision, with its path. */
function placed({ detail, issues }: Problem, at: string): Problem {
  const own = issues ?? [{ path: "kind", message: detail }];
  return inputProblem(own.map(({ path, message }) => ({ path: `${at}.${path}`, message })));
}
