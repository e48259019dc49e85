import type { Snapshot } from "../model/snapshot.ts";
import type { Profile } from "./profile.ts";
import { v1_34 } from "./v1_34.ts";
import { v1_35 } from "./v1_35.ts";
import { v1_36 } from "./v1_36.ts";
import { v1_37 } from "./v1_37.ts";

/** The register, oldest first: a version that is not here is answered by its neighbour. */
export const PROFILES: readonly [Profile, ...Profile[]] = [v1_34, v1_35, v1_36, v1_37];
export const NEWEST: Profile = PROFILES.at(-1) ?? v1_37;

/**
 * The profile of a kubelet's version (`v1.36.3`, `1.36`): its own, else that of the next older version, else the oldest. Without
 * a version, or with a text that is none, the newest.
 */
export function profileOf(version: string | undefined): Profile {
  const asked = minorOf(version ?? "");
  if (asked === null) return NEWEST;
  return PROFILES.findLast((profile) => (minorOf(profile.version) ?? 0) <= asked) ?? PROFILES[0];
}

/** The profile of a snapshot's kubelet. */
export const profileIn = (snapshot: Pick<Snapshot, "node"> | undefined): Profile =>
  profileOf(snapshot?.node?.status?.nodeInfo?.kubeletVersion);

function minorOf(version: string): number | null {
  const [, minor] = /^v?1\.(\d{1,3})(?:\D|$)/.exec(version) ?? [];
  return minor === undefined ? null : Number(minor);
}
