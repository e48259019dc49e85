import { decideKind } from "../api/decide/index.ts";
import { decodeAsk } from "../api/model/asks.ts";
import type { Kind } from "../api/model/decision.ts";
import { decodeSnapshot } from "../api/model/decode.ts";
import { err, ok, type Result } from "../api/model/result.ts";
import type { DecisionAnswer, Problem } from "./ports.ts";

/** The same core that the API runs, for the times when there is none. Errors: the refusal, or what is wrong with the snapshot. */
export function decideHere(kind: Kind, snapshot: unknown): Result<DecisionAnswer, Problem> {
  const decoded = decodeSnapshot(snapshot, "snapshot");
  if (!decoded.ok) {
    const first = decoded.error.slice(0, 3).map((issue) => `${issue.path}: ${issue.message}`);
    return err({
      from: "decision",
      message: `${kind}: the snapshot has ${decoded.error.length} faults: ${first.join("; ")}`,
    });
  }
  const ask = decodeAsk(kind, null);
  if (!ask.ok) return err({ from: "decision", message: `${kind}: it cannot be decided without an ask` });
  const decided = decideKind(kind, { snapshot: decoded.value, facts: {}, ask: ask.value, explain: "reasons" });
  if (!decided.ok) return err({ from: "decision", message: `${kind}: ${decided.error.message}` });
  const { decision, needs } = decided.value;
  return ok({ id: null, decidedBy: "here", decision, needs });
}
