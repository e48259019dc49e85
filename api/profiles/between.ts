import { minorOf, PROFILES } from "./index.ts";
import type { VersionNote } from "./note.ts";
import type { Profile } from "./profile.ts";

export const DIRECTIONS = ["upgrade", "downgrade", "none"] as const;
export type Direction = (typeof DIRECTIONS)[number];

/** From one version to another, whether or not they have profiles. */
export function directionOf(from: string, to: string): Direction {
  const steps = (minorOf(to) ?? 0) - (minorOf(from) ?? 0);
  return steps > 0 ? "upgrade" : steps < 0 ? "downgrade" : "none";
}

export interface NoteBetween {
  /** The version that began it. */
  readonly version: string;
  readonly note: VersionNote;
  /** False: `from` has it, and `to` has not. */
  readonly begins: boolean;
}

/** What begins and what ends on the way from one version to another, in the order of the versions. */
export function notesBetween(from: Profile, to: Profile): readonly NoteBetween[] {
  return PROFILES.flatMap(({ version, notes }) =>
    notes.flatMap((note) => {
      const [before, after] = [from, to].map((profile) => holdsIn(profile, version, note));
      return before === after ? [] : [{ version, note, begins: after === true }];
    }),
  );
}

const placeOf = (version: string): number => PROFILES.findIndex((known) => known.version === version);

function holdsIn(profile: Profile, since: string, { until }: VersionNote): boolean {
  const place = placeOf(profile.version);
  return place >= placeOf(since) && (until === undefined || place < placeOf(until));
}
