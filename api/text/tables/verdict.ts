import type { PodRef } from "../../model/forms.ts";
import type { CpusDecision, Hint, Placement } from "../../model/managers.ts";
import { printable } from "../style.ts";
import { type Row, table } from "../table.ts";
import type { Shown } from "./shown.ts";

/** The hints of each container (with pod scope: of the pod), and below them what they merge to. */
export function placementsTable(
  { decision, asked, columns, paint, notesAt }: Shown<{ readonly placements: readonly Placement[] }>,
  /** True: a container's reasons are told here, and not beside what it gets. */
  withReasons: boolean,
): string {
  if (decision.placements.length === 0) return "";
  const rows = decision.placements.flatMap((placement): readonly Row[] => {
    const { container, hints, merged, admitted } = placement;
    const name = container === null ? "(whole pod)" : printable(container);
    const at = container ?? asked?.name;
    const notes = at !== undefined && (withReasons || container === null) ? notesAt(at) : [];
    const own = Object.entries(hints).map(([resource, list], i) => [
      i === 0 ? name : "",
      printable(resource),
      ...cellsOf(list),
      "",
    ]);
    const to = nodesText(merged);
    const verdict = { text: admitted ? "admitted" : "refused", color: admitted ? "green" : "red" } as const;
    const mergedRow = {
      cells: [
        own.length === 0 ? name : "",
        { text: "merged", color: "bold" } as const,
        merged.preferred ? to : "",
        merged.preferred ? "" : to,
        verdict,
      ],
      notes: notes.map((note) => `  ${note}`),
    };
    return [...own.map((cells) => ({ cells })), mergedRow];
  });
  return table(
    [
      { title: "HINTS OF", shrinkTo: 10 },
      { title: "RESOURCE", shrinkTo: 10 },
      { title: "PREFERRED NUMA NODES", shrinkTo: 8 },
      { title: "OTHERS", shrinkTo: 8, giveUp: 1 },
      { title: "" },
    ],
    rows,
    columns,
    paint,
  );
}

function cellsOf(list: readonly Hint[] | null): readonly [preferred: string, others: string] {
  if (list === null) return ["no preference", ""];
  if (list.length === 0) return ["nowhere", ""];
  const of = (preferred: boolean): string =>
    listText(list.filter((hint) => hint.preferred === preferred).map(nodesText));
  return [of(true), of(false)];
}
const nodesText = ({ numaNodes }: Hint): string => (numaNodes === null ? "any" : numaNodes.join("+"));

const MOST = 8;
/** A list that may be long: its first, and how many more. */
export function listText(items: readonly string[], separator = " | "): string {
  const shown = items.slice(0, MOST).map(printable).join(separator);
  return items.length > MOST ? `${shown}${separator}(${items.length - MOST} more)` : shown;
}

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
