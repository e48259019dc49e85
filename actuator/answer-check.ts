import * as z from "zod";
import { decodeFacts, REMEMBERING } from "../api/model/asks.ts";
import { isVerdict, type Kind } from "../api/model/decision.ts";
import { err, ok, type Result } from "../api/model/result.ts";
import { unsafeOrder } from "./answer-guard.ts";
import { DECISION_SHAPES, STATE_FILES } from "./answer-shape.ts";
import type { DecisionAnswer } from "./ports.ts";

const LONGEST_ID = 200;
const answerId = z.string().min(1).max(LONGEST_ID).nullable();
const answer = z.looseObject({
  id: answerId,
  verdict: z.string().refine(isVerdict, "is no verdict"),
  reasons: z.array(z.looseObject({ at: z.string(), because: z.array(z.unknown()) })).nullish(),
  needs: z.array(z.string()).nullish(),
});
/** Kinds whose `next` is written to the node's state files. */
const OF_STATE_FILES: ReadonlySet<Kind> = new Set<Kind>(["cpus", "memory", "topology", "devices", "admission"]);

/**
 * An API's answer, before anything of it is carried out. INVARIANT: what passes has the shape and the ranges that the core
 * here answers with, and orders nothing that `unsafeOrder` names. Errors: the first place that has not, in one line.
 */
export function checkAnswer(
  kind: Kind,
  snapshot: unknown,
  reply: Readonly<Record<string, unknown>>,
  ask?: object,
): Result<DecisionAnswer, string> {
  const fault =
    faultIn(answer, reply, "") ??
    faultIn(DECISION_SHAPES[kind], reply["decision"], "decision") ??
    faultOfNext(kind, reply["next"]) ??
    unsafeOrder({ kind, snapshot, ask, decision: reply["decision"] });
  if (fault !== null) return err(fault);
  const { id, decision, verdict, reasons, needs, next } = reply as unknown as DecisionAnswer;
  return ok({ id, decidedBy: "api", decision, verdict, reasons: reasons ?? [], needs: needs ?? [], next });
}

/** Of an answer only what names it in the history. Errors: it has no such thing. */
export function checkId(reply: Readonly<Record<string, unknown>>): Result<string | null, string> {
  const fault = faultIn(answerId, reply["id"], "id");
  return fault === null ? ok(reply["id"] as string | null) : err(fault);
}

function faultIn(shape: z.ZodType, value: unknown, at: string): string | null {
  const parsed = shape.safeParse(value);
  if (parsed.success) return null;
  const [issue] = parsed.error.issues;
  const path = [at, ...(issue?.path ?? [])].filter((part) => part !== "").join(".");
  return `${path || "the answer"}: ${issue?.message ?? ""}`;
}

function faultOfNext(kind: Kind, next: unknown): string | null {
  if (OF_STATE_FILES.has(kind)) return next === null ? null : faultIn(STATE_FILES, next, "next");
  if (!REMEMBERING.has(kind)) return null;
  const facts = decodeFacts(kind, next, "next");
  if (facts.ok) return next === null || next === undefined ? "next: is missing" : null;
  const [issue] = facts.error;
  return `${issue?.path ?? "next"}: ${issue?.message ?? ""}`;
}
