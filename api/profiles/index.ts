import type { Snapshot } from "../model/snapshot.ts";
import type { Profile } from "./profile.ts";
import { v1_34 } from "./v1_34.ts";
import { v1_35 } from "./v1_35.ts";
import { v1_36 } from "./v1_36.ts";
import { v1_37 } from "./v1_37.ts";

/** The register, oldest first: a version that is not here is answered by its neighbour. */
export const PROFILES: readonly [Profile, ...Profile[]] = [v1_34, v1_35, v1_36, v1_37];
export const NEWEST: Profile = PROFILES.at(-1) ?? v1_37;

/** The profile that answers for a kubelet. `why`: why it is another version's, or that nobody named one; null: it is its own. */
export interface Choice {
  readonly profile: Profile;
  readonly exact: boolean;
  readonly why: string | null;
}

/**
 * The profile of a kubelet's version (`v1.36.3`, `1.36`): its own, else that of the next older version, else the oldest. Without
 * a version, or with a text that is none, the newest.
 */
export function chooseProfile(version: string | undefined): Choice {
  const minor = minorOf(version ?? "");
  if (minor === null) {
    const why =
      version === undefined || version === ""
        ? "no kubelet version is named"
        : `${JSON.stringify(version)} is no version of a kubelet`;
    return { profile: NEWEST, exact: false, why: `${why}: the newest one known here answers` };
  }
  const profile = PROFILES.findLast((known) => (minorOf(known.version) ?? 0) <= minor) ?? PROFILES[0];
  if (minorOf(profile.version) === minor) return { profile, exact: true, why: null };
  return { profile, exact: false, why: `kubelet 1.${minor} is not known here: ${profile.version} is the nearest` };
}
export const profileOf = (version: string | undefined): Profile => chooseProfile(version).profile;

/** The profile of a snapshot's kubelet. */
export const profileIn = (snapshot: Pick<Snapshot, "node"> | undefined): Profile =>
  profileOf(snapshot?.node?.status?.nodeInfo?.kubeletVersion);

function minorOf(version: string): number | null {
  const [, minor] = /^v?1\.(\d{1,3})(?:\D|$)/.exec(version) ?? [];
  return minor === undefined ? null : Number(minor);
}
