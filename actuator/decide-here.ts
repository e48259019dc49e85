import { decideKind } from "../api/decide/index.ts";
import { decodeAsk } from "../api/model/asks.ts";
import type { Explain, Facts, Kind } from "../api/model/decision.ts";
import { decodeSnapshot } from "../api/model/decode.ts";
import { err, ok, type Result } from "../api/model/result.ts";
import type { DecisionAnswer, Problem } from "./ports.ts";

export interface AskedHere {
  /** As the API takes it. */
  readonly ask?: unknown;
  readonly facts?: Facts;
  /** `reasons` if absent. */
  readonly explain?: Explain;
}

/**
 * The same core that the API runs, for the times when there is none. Errors: the refusal, or what is wrong with the
 * snapshot or the ask.
 */
export function decideHere(
  kind: Kind,
  snapshot: unknown,
  { ask, facts = {}, explain = "reasons" }: AskedHere = {},
): Result<DecisionAnswer, Problem> {
  const decoded = decodedOnce(snapshot);
  if (!decoded.ok) return faulty(kind, "snapshot", decoded.error);
  const asked = decodeAsk(kind, ask ?? null);
  if (!asked.ok) return faulty(kind, "ask", asked.error);
  const decided = decideKind(kind, { snapshot: decoded.value, facts, ask: asked.value, explain });
  if (!decided.ok) return err({ from: "decision", message: `${kind}: ${decided.error.message}` });
  return ok({ id: null, decidedBy: "here", ...decided.value });
}

type Decoded = ReturnType<typeof decodeSnapshot>;
let last: { readonly snapshot: unknown; readonly decoded: Decoded } | null = null;
/** A snapshot, checked. A pass asks more than one kind about its own, one right after the other. */
export function decodedOnce(snapshot: unknown): Decoded {
  if (last !== null && last.snapshot === snapshot) return last.decoded;
  const decoded = decodeSnapshot(snapshot, "snapshot");
  last = { snapshot, decoded };
  // nothing is kept from pass to pass
  setImmediate(() => {
    last = null;
  });
  return decoded;
}

function faulty(
  kind: Kind,
  what: string,
  issues: readonly { readonly path: string; readonly message: string }[],
): Result<never, Problem> {
  const first = issues.slice(0, 3).map(({ path, message }) => `${path}: ${message}`);
  return err({ from: "decision", message: `${kind}: the ${what} has ${issues.length} faults: ${first.join("; ")}` });
}
