import type { CpusDecision } from "../../model/cpus.ts";
import type { Explain, Verdict } from "../../model/decision.ts";
import type { PodRef } from "../../model/forms.ts";
import type { Machine } from "../../model/machine.ts";
import type { Hint, Placement } from "../../model/managers.ts";
import { type Color, type Paint, printable } from "../style.ts";
import { type Row, table } from "../table.ts";

/** The hints of each container (with pod scope: of the pod), and below them the merged hint. */
export function placementsTable(
  { decision, asked, columns, paint, notesAt }: Shown<{ readonly placements: readonly Placement[] }>,
  /** True: a container's reasons are shown here, and not beside its assignments. */
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

const MAX_ITEMS = 8;
/** A list that may be long: its first, and how many more. */
export function listText(items: readonly string[], separator = " | "): string {
  const shown = items.slice(0, MAX_ITEMS).map(printable).join(separator);
  return items.length > MAX_ITEMS ? `${shown}${separator}(${items.length - MAX_ITEMS} more)` : shown;
}

type Managed = Pick<CpusDecision, "startErrors" | "warnings" | "refusal">;

/** The verdict, and below it what the kubelet accepts silently. */
export const verdictText = (shown: Shown<Managed>): string =>
  endText(shown) + shown.decision.warnings.map((line) => shown.paint("yellow", `${printable(line)}\n`)).join("");

/** In one line: admitted, refused and why in the kubelet's words, or each reason why the kubelet does not start. */
function endText({ decision, asked, paint }: Shown<Managed>): string {
  const { startErrors, refusal } = decision;
  if (startErrors.length > 0) {
    return startErrors.map((error) => paint("red", `the kubelet does not start: ${printable(error)}\n`)).join("");
  }
  if (asked === undefined) return paint("dim", "no pod is given (--pod): this is the current state\n");
  const pod = podName(asked);
  if (refusal === null) return paint("green", `admitted: ${pod}\n`);
  const { reason, message, container } = refusal;
  const where = container === null ? "" : ` (container ${printable(container)})`;
  return paint("red", `refused: ${pod}${where}: ${printable(`${reason}: ${message}`)}\n`);
}

/** A pod's name, printable; a pod that is no longer in the snapshot has only its uid. */
export const podName = ({ namespace, name, uid }: PodRef): string =>
  printable(name === "" ? `(gone) ${uid}` : `${namespace}/${name}`);
export const isSamePod = (a: PodRef, b: PodRef | undefined): boolean =>
  b !== undefined && a.namespace === b.namespace && a.name === b.name;

/** A decision with what its table needs of the terminal, and of the question. */
export interface Shown<D> {
  readonly decision: D;
  readonly verdict?: Verdict | undefined;
  readonly columns: number;
  readonly paint: Paint;
  /** The reasons of a place (a resource's name, a cgroup's path) as dim lines; empty where none are asked for. */
  readonly notesAt: (at: string) => readonly string[];
  /** The machine that was decided on, for pictures of it. */
  readonly machine?: Machine | undefined;
  /** The asked pod. */
  readonly asked?: PodRef | undefined;
  /** The time of the snapshot, in epoch ms, from which ages count. */
  readonly observedAtMs?: number | undefined;
  /** `full`: no list is shortened. */
  readonly explain?: Explain | undefined;
  /** Amounts are exact, and not for the eye. */
  readonly isExact?: boolean | undefined;
  /**
   * For an eviction: without the rankings for resources that are not short, only these, or all rankings in the
   * decision's order.
   */
  readonly rankings?: "acted-on" | "idle" | "all" | undefined;
}

/** Drops the reasons of entries that a shortened list leaves out. */
export function dropNotes({ notesAt }: Pick<Shown<unknown>, "notesAt">, places: readonly string[]): void {
  for (const place of places) notesAt(place);
}

/** Joins the non-empty parts of an answer with an empty line between them. */
export const sections = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join("\n");

/** A caption with the reasons of the node as a whole. */
export const caption = ({ paint, notesAt }: Shown<unknown>, text: string): string =>
  `${[paint("dim", text), ...notesAt("node").map((note) => `  ${note}`)].join("\n")}\n`;

/** The verdict as a headline: a coloured word in capitals, and what it is about. */
export const outcome = (paint: Paint, color: Color, word: string, text: string): string =>
  `${paint("bold", paint(color, word))}  ${text}\n`;

/** Sentences below a title; empty without any. The texts must be printable. */
export const sentenceList = (paint: Paint, title: string, sentences: readonly string[]): string =>
  sentences.length === 0 ? "" : [paint("bold", title), ...sentences.map((text) => `- ${text}`), ""].join("\n");

interface Shortened<T> {
  readonly first: readonly T[];
  /** `and 212 more (in use 210, pinned 2)`; empty where all are shown. */
  readonly more: string;
}

/** The first `most` entries of a list, unless everything is wanted, and a count of the rest by a word of each. */
export function shortened<T>(
  all: readonly T[],
  most: number,
  { explain, paint }: Pick<Shown<unknown>, "explain" | "paint">,
  wordOf: (one: T) => string,
): Shortened<T> {
  if (explain === "full" || all.length <= most) return { first: all, more: "" };
  const rest = all.slice(most);
  const counts = [...Map.groupBy(rest, wordOf)].map(([word, { length }]) => [word, length] as const);
  const totals = counts.sort((a, b) => b[1] - a[1]).map(([word, count]) => `${word} ${count}`);
  return { first: all.slice(0, most), more: paint("dim", `and ${rest.length} more (${totals.join(", ")})\n`) };
}
