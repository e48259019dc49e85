import type { Decided, DecisionOf, Explain, Kind } from "../../model/decision.ts";
import { POLICY_VERSION } from "../../model/decision.ts";
import { reasonText } from "../reason-text.ts";
import { printable } from "../style.ts";
import type { Terminal } from "../terminal.ts";
import { allocatableTable } from "./allocatable.ts";
import { cgroupsTable } from "./cgroups.ts";
import type { Shown } from "./shown.ts";

/** How each kind looks to a person. */
const TABLES: { readonly [K in Kind]: (shown: Shown<DecisionOf[K]>) => string } = {
  allocatable: allocatableTable,
  cgroups: cgroupsTable,
};

export interface Answer<K extends Kind> {
  readonly kind: K;
  readonly node: string;
  readonly decided: Pick<Decided<DecisionOf[K]>, "decision" | "reasons" | "needs">;
  /** How much of each reason is shown. */
  readonly explain: Explain;
  /** What a person can do about an input that was not there: `give --stats`. */
  readonly advice?: (path: string) => string;
}

/** A whole answer for a person: whose it is, the kind's table, and what would have made it fuller. */
export function answerText<K extends Kind>(answer: Answer<K>, { paint, columns }: Terminal): string {
  const { kind, node, decided, explain, advice } = answer;
  const reasons = Map.groupBy(decided.reasons, ({ at }) => at);
  const notesAt = (at: string): readonly string[] =>
    (reasons.get(at) ?? []).map((reason) => paint("dim", printable(reasonText(reason, explain === "full"))));
  const title = `${paint("bold", printable(node))} · ${kind} · ${POLICY_VERSION}`;
  const missing = decided.needs.map((path) => {
    const hint = advice === undefined ? "" : ` (${advice(path)})`;
    return paint("yellow", `not known: ${path}${hint}\n`);
  });
  return `${title}\n${TABLES[kind]({ decision: decided.decision, columns, paint, notesAt })}${missing.join("")}`;
}
