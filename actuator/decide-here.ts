import { DECIDERS } from "../api/decide/index.ts";
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
  const decided = DECIDERS[kind]({ snapshot: decoded.value, facts: {}, ask: undefined, explain: "reasons" });
  if (!decided.ok) return err({ from: "decision", message: `${kind}: ${decided.error.message}` });
  const { decision, needs } = decided.value;
  return ok({ id: null, decidedBy: "here", decision, needs });
}
