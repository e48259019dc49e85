import { minorOf, PROFILES } from "./index.ts";
import type { VersionNote } from "./note.ts";
import type { Profile } from "./profile.ts";

export const DIRECTIONS = ["upgrade", "downgrade", "none"] as const;
type Direction = (typeof DIRECTIONS)[number];

/** The direction from one version to another; profiles are not needed. */
export function directionOf(from: string, to: string): Direction {
  const steps = (minorOf(to) ?? 0) - (minorOf(from) ?? 0);
  return steps > 0 ? "upgrade" : steps < 0 ? "downgrade" : "none";
}

interface NoteBetween {
  /** The version that introduced the change. */
  readonly version: string;
  readonly note: VersionNote;
  /** False: only `from` has it, and `to` no longer does. */
  readonly begins: boolean;
}

/** Notes about what is introduced and what is removed between two versions, in the order of the versions. */
export function notesBetween(from: Profile, to: Profile): readonly NoteBetween[] {
  const [before, after] = [PROFILES.indexOf(from), PROFILES.indexOf(to)];
  return PROFILES.flatMap(({ version, notes }, place) => {
    if (place <= before === place <= after) return [];
    return notes.map((note) => ({ version, note, begins: place <= after }));
  });
}
