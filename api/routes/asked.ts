import { decodeAsk, decodeFacts, REMEMBERING } from "../model/asks.ts";
import type { AskOf, Facts, Kind } from "../model/decision.ts";
import { err, ok, type Result } from "../model/result.ts";
import { inputProblem, type Problem } from "./problem.ts";

/** What is asked of a kind beside the snapshot. */
export interface Ask {
  readonly ask: AskOf[Kind];
  /** The same as canonical JSON text, as it is kept; null when nothing was asked. */
  readonly askText: string | null;
  /** What the caller remembers of the node, by kind; null: what the history remembers counts, where the kind remembers. */
  readonly facts: Facts | null;
}

/** An `ask` as posted or as kept. With kinds that remember, `facts` in it is the `next` of the node's last answer. */
export function readAsk(kind: Kind, posted: unknown): Result<Ask, Problem> {
  const { facts, rest } = REMEMBERING.has(kind) ? withoutFacts(posted) : { facts: undefined, rest: posted };
  const decoded = decodeAsk(kind, rest);
  if (!decoded.ok) return err(inputProblem(decoded.error));
  const ask = decoded.value;
  const isNothing = rest === undefined || rest === null;
  const bare: Ask = { ask, askText: isNothing ? null : JSON.stringify(ask), facts: null };
  if (facts === undefined) return ok(bare);
  const remembered = decodeFacts(kind, facts, "ask.facts");
  return remembered.ok ? ok(withFacts(kind, bare, facts)) : err(inputProblem(remembered.error));
}

/** The same with what is remembered of the node: it is part of the question, so that a replay asks it again. */
export const withFacts = (kind: Kind, { ask }: Pick<Ask, "ask">, facts: unknown): Ask => ({
  ask,
  askText: JSON.stringify({ ...ask, facts }),
  facts: { [kind]: facts },
});

function withoutFacts(posted: unknown): { readonly facts: unknown; readonly rest: unknown } {
  if (typeof posted !== "object" || posted === null || Array.isArray(posted)) return { facts: undefined, rest: posted };
  const { facts, ...rest } = posted as Readonly<Record<string, unknown>>;
  return { facts, rest };
}
