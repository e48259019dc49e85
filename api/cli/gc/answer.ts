import type { GcKind } from "../../../actuator/gc/ports.ts";
import type { DecisionAnswer } from "../../../actuator/ports.ts";
import { type DecisionOf, type Explain, POLICY_VERSION } from "../../model/decision.ts";
import { answerText } from "../../text/tables/index.ts";
import { printData } from "../output.ts";
import type { Terminal } from "../terminal.ts";
import type { GcGiven } from "./given.ts";

export interface Printed {
  readonly kind: GcKind;
  readonly node: string;
  /** RFC 3339 */
  readonly at: string;
  readonly answer: DecisionAnswer;
  readonly assumed?: string | undefined;
}

/** As `nodewise decide` has it: tables without reasons, data with them. */
export const explainOf = ({ output, explain }: Pick<GcGiven, "output" | "explain">): Explain =>
  explain ?? (output === "table" ? "off" : "reasons");

/** An answer as `nodewise decide` prints it; `more` joins it in JSON and YAML. */
export function printAnswer(
  { kind, node, at, answer, assumed }: Printed,
  given: Pick<GcGiven, "output" | "explain">,
  terminal: Terminal,
  more: object = {},
): void {
  const { output } = given;
  const explain = explainOf(given);
  const { verdict, needs, next } = answer;
  const reasons = explain === "off" ? [] : answer.reasons;
  if (output === "table") {
    const decided = { decision: answer.decision as DecisionOf[GcKind], verdict, reasons, needs };
    terminal.write(answerText({ kind, node, decided, explain, assumed, observedAtMs: Date.parse(at) }, terminal));
    return;
  }
  const head = {
    kind,
    node,
    policyVersion: POLICY_VERSION,
    observedAt: at,
    ...(assumed === undefined ? {} : { assumed }),
  };
  printData(terminal, { ...head, ...more, decision: answer.decision, verdict, reasons, needs, next }, output);
}
