import type { Explain, Verdict } from "../../model/decision.ts";
import type { Machine } from "../../model/machine.ts";
import type { PodRef } from "../../model/managers.ts";
import type { Paint } from "../style.ts";

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
  /** The pod that asked to come in. */
  readonly asked?: PodRef | undefined;
  /** When it was so, in epoch ms: ages are told from then. */
  readonly observedAtMs?: number | undefined;
  /** `full`: no list is shortened. */
  readonly explain?: Explain | undefined;
}

/** Reasons of what a shortened list leaves out are not told elsewhere either. */
export function swallowNotes({ notesAt }: Pick<Shown<unknown>, "notesAt">, places: readonly string[]): void {
  for (const place of places) notesAt(place);
}

/** Parts of an answer below each other, an empty line between those that have something to say. */
export const sections = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join("\n");

/** A caption with the reasons of the node as a whole. */
export const caption = ({ paint, notesAt }: Shown<unknown>, text: string): string =>
  `${[paint("dim", text), ...notesAt("node").map((note) => `  ${note}`)].join("\n")}\n`;
