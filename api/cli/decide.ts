import { DECIDERS } from "../decide/index.ts";
import { type Decider, type Explain, type Kind, POLICY_VERSION, type Refusal } from "../model/decision.ts";
import { ok } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { EXIT, fault, type Outcome } from "./exit.ts";
import { optionFor } from "./inputs/parts.ts";
import { readSnapshot, type SnapshotFiles } from "./inputs/snapshot.ts";
import { type Form, printData } from "./output.ts";
import { answerText } from "./tables/index.ts";
import type { Terminal } from "./terminal.ts";

export interface DecideOptions {
  readonly output: Form;
  /** Absent: off for tables, reasons for data. */
  readonly explain?: Explain;
}

/** Decides here, without API and history, and prints the answer. A refusal and a negative verdict end with 1. */
export async function decide(
  kind: Kind,
  files: SnapshotFiles,
  options: DecideOptions,
  terminal: Terminal,
): Promise<Outcome> {
  const snapshot = await readSnapshot(files);
  return snapshot.ok ? decideOn(kind, snapshot.value, options, terminal) : snapshot;
}

export function decideOn<K extends Kind>(
  kind: K,
  snapshot: Snapshot,
  { output, explain = output === "table" ? "off" : "reasons" }: DecideOptions,
  terminal: Terminal,
): Outcome {
  const decider: Decider<K> = DECIDERS[kind];
  const answer = decider({ snapshot, facts: {}, ask: undefined, explain });
  const node = snapshot.node?.metadata.name ?? null;
  const head = { kind, node, policyVersion: POLICY_VERSION };
  if (!answer.ok) {
    if (output !== "table") printData(terminal, { ...head, refusal: answer.error }, output);
    return fault(EXIT.negative, refusalText(kind, answer.error));
  }
  const advice = (path: string): string => `give ${optionFor(path)}`;
  const shown = { kind, node: node ?? "(no node given)", decided: answer.value, explain, advice };
  if (output === "table") terminal.write(answerText(shown, terminal));
  else printData(terminal, { ...head, ...answer.value }, output);
  return ok(answer.value.verdict === "decided" ? EXIT.ok : EXIT.negative);
}

function refusalText(kind: Kind, { code, message, needs }: Refusal): string {
  const options = [...new Set(needs.map(optionFor))].join(", ");
  return `${kind} refused (${code}): ${message}${options === "" ? "" : `; here: ${options}`}`;
}
