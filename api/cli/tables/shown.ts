import type { Paint } from "../style.ts";

/** A decision with what its table needs of the terminal. */
export interface Shown<D> {
  readonly decision: D;
  readonly columns: number;
  readonly paint: Paint;
  /** The reasons of a place (a resource's name, a cgroup's path) as dim lines; empty where none are asked for. */
  readonly notesAt: (at: string) => readonly string[];
}
