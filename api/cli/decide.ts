import { decideKind } from "../decide/index.ts";
import { askedPodRef } from "../model/asks.ts";
import { type AskOf, type Explain, type Kind, POLICY_VERSION, type Refusal } from "../model/decision.ts";
import { ok } from "../model/result.ts";
import { EXIT, fault, type Outcome } from "./exit.ts";
import { readAsk } from "./inputs/ask.ts";
import { optionFor } from "./inputs/parts.ts";
import { READ_ONCE, readSnapshot, readsOnce, type SnapshotFiles } from "./inputs/snapshot.ts";
import { type WhatIf, type WhatIfOptions, whatIf } from "./inputs/what-if.ts";
import { type Form, printData } from "./output.ts";
import { answerText } from "./tables/index.ts";
import type { Terminal } from "./terminal.ts";

export interface DecideOptions extends WhatIfOptions {
  readonly output: Form;
  /** Absent: off for tables, reasons for data. */
  readonly explain?: Explain;
  /** A file with the pod that asks, or NAMESPACE/NAME of one of the snapshot. */
  readonly pod?: string;
}

/** Decides here, without API and history, and prints the answer. A refusal and a negative verdict end with 1. */
export async function decide(
  kind: Kind,
  files: SnapshotFiles,
  options: DecideOptions,
  terminal: Terminal,
): Promise<Outcome> {
  if (!readsOnce([...Object.values(files), options.pod])) return fault(EXIT.badInput, READ_ONCE);
  const snapshot = await readSnapshot(files);
  if (!snapshot.ok) return snapshot;
  const ask = await readAsk(kind, options.pod);
  if (!ask.ok) return ask;
  const asked = whatIf(kind, snapshot.value, options, files.machine !== undefined);
  if (!asked.ok) return asked;
  const machineName = files.machine === "-" ? undefined : files.machine;
  return decideOn(kind, { ...asked.value, machineName }, ask.value, options, terminal);
}

function decideOn(
  kind: Kind,
  { snapshot, assumed, machineName = "(no node given)" }: WhatIf & { readonly machineName: string | undefined },
  ask: AskOf[Kind],
  { output, explain = output === "table" ? "off" : "reasons" }: DecideOptions,
  terminal: Terminal,
): Outcome {
  const answer = decideKind(kind, { snapshot, facts: {}, ask, explain });
  const node = snapshot.node?.metadata.name ?? null;
  const assumption = assumed === undefined ? {} : { assumed: { kubeletConfiguration: assumed.kubeletConfiguration } };
  const head = { kind, node, policyVersion: POLICY_VERSION, ...assumption };
  if (!answer.ok) {
    if (output !== "table") printData(terminal, { ...head, refusal: answer.error }, output);
    return fault(EXIT.negative, refusalText(kind, answer.error));
  }
  const advice = (path: string): string => `give ${optionFor(path)}`;
  const question = {
    assumed: assumed?.text,
    machine: snapshot.machine ?? undefined,
    asked: askedPodRef(ask) ?? undefined,
  };
  const shown = { kind, node: node ?? machineName, decided: answer.value, explain, advice, ...question };
  if (output === "table") terminal.write(answerText(shown, terminal));
  else printData(terminal, { ...head, ...answer.value }, output);
  return ok(answer.value.verdict === "decided" ? EXIT.ok : EXIT.negative);
}

function refusalText(kind: Kind, { code, message, needs }: Refusal): string {
  const options = [...new Set(needs.map(optionFor))].join(", ");
  return `${kind} refused (${code}): ${message}${options === "" ? "" : `; here: ${options}`}`;
}
