import type { NodeEvent, RemovalState } from "../../model/garbage-collection.ts";
import type { Color, Paint } from "../style.ts";
import { printable } from "../style.ts";
import type { Cell } from "../table.ts";

const END_COLOR: Readonly<Record<RemovalState, Color>> = {
  planned: "dim",
  removed: "green",
  failed: "red",
  stopped: "yellow",
};
interface Removal {
  readonly tie: boolean;
  readonly end: RemovalState;
  readonly message?: string;
}

/** What is to be known of a removal beside its reason; of what is only planned that goes without saying. */
export function removalMarks({ tie, end }: Removal, ...others: readonly string[]): Cell {
  const marks = [...(end === "planned" ? [] : [end]), ...others, ...(tie ? ["tie"] : [])];
  return { text: marks.join(", "), color: end === "planned" && tie ? "yellow" : END_COLOR[end] };
}

/** The runtime's words, as a line below the row. */
export const removalNotes = ({ message }: Removal): readonly string[] =>
  message === undefined ? [] : [`  ${printable(message)}`];

/** What the kubelet would record for its node, a line each; `told`: words that stand above already. */
export const eventLines = (events: readonly NodeEvent[], paint: Paint, told: string | null): string =>
  events
    .map(({ type, reason, message }) => {
      const text = message === told ? `${reason} in these words` : `${reason}: ${message}`;
      return paint(type === "Warning" ? "yellow" : "dim", `event ${printable(text)}\n`);
    })
    .join("");

/** Whether chance decides somewhere in the kubelet's order. */
export const tieLine = (removals: readonly Removal[], paint: Paint): string =>
  removals.some(({ tie }) => tie)
    ? paint("dim", "tie: equal in all that the kubelet sorts by; there chance decides, here the id\n")
    : "";
