import { VERSION_PATTERN } from "../model/fields.ts";
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
 * How an answer tells whose it is. `why`: why it is another version's, that nobody named one, or that the node's own came before
 * the one that was named; null: it is its own.
 */
export interface ProfileNote {
  readonly version: string;
  readonly exact: boolean;
  readonly why: string | null;
}
export interface ChosenProfile {
  readonly profile: Profile;
  readonly note: ProfileNote;
}

/**
 * The profile of a kubelet's version (`v1.36.3`, `1.36`): its own, else that of the next older version, else the oldest. Without
 * a version, or with a text that is none, the newest.
 */
export function chooseProfile(version: string | undefined): ChosenProfile {
  const minor = minorOf(version ?? "");
  if (minor === null) {
    const named =
      version === undefined || version === ""
        ? "no kubelet version is given"
        : `${JSON.stringify(version)} is no kubelet version`;
    return chosen(NEWEST, `${named}: the newest that is known here answers`);
  }
  const profile = PROFILES.findLast((known) => (minorOf(known.version) ?? 0) <= minor) ?? PROFILES[0];
  if (minorOf(profile.version) === minor) return chosen(profile, null);
  return chosen(profile, `kubelet 1.${minor} is not known here: ${profile.version} is the nearest that is`);
}
const chosen = (profile: Profile, why: string | null): ChosenProfile => ({
  profile,
  note: { version: profile.version, exact: why === null, why },
});
export const profileOf = (version: string | undefined): Profile => chooseProfile(version).profile;

/** The form of versions that have a profile of their own. */
export const KNOWN_VERSION_PATTERN = VERSION_PATTERN.replace(
  "1\\.\\d{1,3}",
  `(?:${PROFILES.map(({ version }) => version.replace(".", "\\.")).join("|")})`,
);

/** What is said of a version that somebody names and that has no profile. */
export const unknownVersion = (text: string): string =>
  `kubelet ${text} is not known here: the versions are ${PROFILES.map(({ version }) => version).join(", ")}`;

/** The profile of a snapshot's kubelet; `asked` counts where the snapshot tells no version. */
export function chooseProfileFor(snapshot: Pick<Snapshot, "node"> | undefined, asked?: string | null): ChosenProfile {
  const own = snapshot?.node?.status?.nodeInfo?.kubeletVersion ?? "";
  const minor = minorOf(own);
  if (minor === null) return chooseProfile(asked ?? own);
  const { profile, note } = chooseProfile(own);
  if (typeof asked !== "string" || minorOf(asked) === minor) return { profile, note };
  const before = `the node tells kubelet ${own}, which counts before ${asked}`;
  return { profile, note: { ...note, why: note.why === null ? before : `${before}; ${note.why}` } };
}
export const profileIn = (snapshot: Pick<Snapshot, "node"> | undefined): Profile => chooseProfileFor(snapshot).profile;

/** The profile under which a recorded decision was made: `kubelet-1.36+7`, or an older form of it such as `kubelet-1.36.3+6`. */
export const profileOfPolicy = (policyVersion: string): Profile => profileOf(policyVersion.replace(/^kubelet-/, ""));
/** As whose a recorded decision was made; `own`: the version that its snapshot tells. One that a request named is not recorded. */
export function recordedNote(policyVersion: string, own: string | undefined): ProfileNote {
  const { version } = profileOfPolicy(policyVersion);
  if (minorOf(own ?? "") === null) {
    const why = `no snapshot tells the node's kubelet: a request named ${version}, or it was the newest known then`;
    return { version, exact: false, why };
  }
  const { note } = chooseProfile(own);
  if (note.version === version) return note;
  return { version, exact: false, why: `the node tells kubelet ${own}, and ${version} answered then` };
}
/** Whether decisions of today are made by this policy. */
export const isCurrentPolicy = (policyVersion: string): boolean =>
  PROFILES.some((known) => known.policyVersion === policyVersion);

function minorOf(version: string): number | null {
  const [, minor] = /^v?1\.(\d{1,3})(?:\D|$)/.exec(version) ?? [];
  return minor === undefined ? null : Number(minor);
}
