import { decideKind } from "../decide/index.ts";
import { optionFor } from "../inputs/parts.ts";
import { askedPodRef } from "../model/asks.ts";
import { type Explain, type Kind, POLICY_VERSION, type Refusal } from "../model/decision.ts";
import { ok } from "../model/result.ts";
import { answerText } from "../text/tables/index.ts";
import { EXIT, fault, isGood, type Outcome } from "./exit.ts";
import { type FileSystemOptions, fileSystemSize } from "./inputs/file-system.ts";
import { type Question, type QuestionFiles, readQuestion } from "./inputs/question.ts";
import { READ_ONCE, readSnapshot, readsOnce, type SnapshotFiles } from "./inputs/snapshot.ts";
import { type WhatIf, type WhatIfOptions, whatIf } from "./inputs/what-if.ts";
import { type Form, printData } from "./output.ts";
import type { Terminal } from "./terminal.ts";

export interface DecideOptions extends WhatIfOptions, QuestionFiles, FileSystemOptions {
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
  const { pod, ask, facts } = options;
  if (!readsOnce([...Object.values(files), pod, ask, facts])) return fault(EXIT.badInput, READ_ONCE);
  const imageFs = fileSystemSize(kind, options);
  if (!imageFs.ok) return imageFs;
  const isAlone = ALONE.has(kind) && Object.keys(files).length === 0;
  const snapshot = isAlone
    ? ok({})
    : await readSnapshot(imageFs.value === undefined ? files : { ...files, imageFs: imageFs.value });
  if (!snapshot.ok) return snapshot;
  const question = await readQuestion(kind, options);
  if (!question.ok) return question;
  const asked = whatIf(kind, snapshot.value, options, files.machine !== undefined);
  if (!asked.ok) return asked;
  const machineName = files.machine === "-" ? undefined : files.machine;
  return decideOn(kind, { ...asked.value, machineName }, question.value, options, terminal);
}

/** Kinds that can do without a snapshot. */
const ALONE: ReadonlySet<Kind> = new Set<Kind>(["probes", "probe-guard"]);

function decideOn(
  kind: Kind,
  { snapshot, assumed, machineName = "(no node given)" }: WhatIf & { readonly machineName: string | undefined },
  { ask, facts }: Question,
  { output, explain = output === "table" ? "off" : "reasons" }: DecideOptions,
  terminal: Terminal,
): Outcome {
  const answer = decideKind(kind, { snapshot, facts, ask, explain });
  const node = snapshot.node?.metadata.name ?? null;
  const assumption = assumed === undefined ? {} : { assumed: assumed.data };
  const head = { kind, node, policyVersion: POLICY_VERSION, ...assumption };
  if (!answer.ok) {
    if (output !== "table") printData(terminal, { ...head, refusal: answer.error }, output);
    return fault(EXIT.negative, refusalText(kind, answer.error));
  }
  const advice = (path: string): string => `give ${optionFor(path)}`;
  const question = {
    assumed: assumed?.text,
    machine: snapshot.machine ?? undefined,
    observedAtMs: snapshot.observedAt === undefined ? undefined : Date.parse(snapshot.observedAt),
    asked: askedPodRef(ask) ?? undefined,
  };
  const shown = { kind, node: node ?? machineName, decided: answer.value, explain, advice, ...question };
  if (output === "table") terminal.write(answerText(shown, terminal));
  else printData(terminal, { ...head, ...answer.value }, output);
  return ok(isGood(answer.value.verdict) ? EXIT.ok : EXIT.negative);
}

function refusalText(kind: Kind, { code, message, needs }: Refusal): string {
  const options = [...new Set(needs.map(optionFor))].join(", ");
  return `${kind} refused (${code}): ${message}${options === "" ? "" : `; here: ${options}`}`;
}
