import type { CpusDecision, PodRef } from "../../model/managers.ts";
import { printable } from "../style.ts";
import type { Shown } from "./shown.ts";

type Managed = Pick<CpusDecision, "startErrors" | "warnings" | "refusal">;

/** How it ended, and below it what the kubelet takes without a word. */
export const verdictText = (shown: Shown<Managed>): string =>
  endText(shown) + shown.decision.warnings.map((line) => shown.paint("yellow", `${printable(line)}\n`)).join("");

/** In one line: admitted, refused and why in the kubelet's words, or each reason why the kubelet does not start. */
function endText({ decision, asked, paint }: Shown<Managed>): string {
  const { startErrors, refusal } = decision;
  if (startErrors.length > 0) {
    return startErrors.map((error) => paint("red", `the kubelet does not start: ${printable(error)}\n`)).join("");
  }
  if (asked === undefined) return paint("dim", "no pod asks to come in (--pod): this is what is there\n");
  const pod = podName(asked);
  if (refusal === null) return paint("green", `admitted: ${pod}\n`);
  const { reason, message, container } = refusal;
  const where = container === null ? "" : ` (container ${printable(container)})`;
  return paint("red", `refused: ${pod}${where}: ${printable(`${reason}: ${message}`)}\n`);
}

/** Printable; a pod that is gone from the snapshot has only its uid. */
export const podName = ({ namespace, name, uid }: PodRef): string =>
  printable(name === "" ? `(gone) ${uid}` : `${namespace}/${name}`);
export const isSamePod = (a: PodRef, b: PodRef | undefined): boolean =>
  b !== undefined && a.namespace === b.namespace && a.name === b.name;
