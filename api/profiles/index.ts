import type { InputIssue } from "../base/input-issue.ts";
import { err, ok, type Result } from "../base/result.ts";
import { isVersion, VERSION_FORM, VERSION_PATTERN } from "../model/fields.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Profile } from "./profile.ts";
import { v1_34 } from "./v1_34.ts";
import { v1_35 } from "./v1_35.ts";
import { v1_36 } from "./v1_36.ts";
import { v1_37 } from "./v1_37.ts";

/** All profiles, oldest first: a version without a profile uses a neighbour's. */
export const PROFILES: readonly [Profile, ...Profile[]] = [v1_34, v1_35, v1_36, v1_37];
export const NEWEST: Profile = PROFILES.at(-1) ?? v1_37;

/**
 * The kubelet version that was used. `why`: why it is not the node's own: another version was used, none was known, or the node's
 * own overrode the requested one; null if it is the node's own.
 */
export interface ProfileNote {
  readonly version: string;
  readonly exact: boolean;
  readonly why: string | null;
}
export interface ChosenProfile {
  readonly profile: Profile;
  /** The version that the profile was chosen for; the profile's own if there was none. */
  readonly asked: string;
  readonly note: ProfileNote;
}

/**
 * The profile of a kubelet's version (`v1.36.3`, `1.36`): its own, or else that of the next older version, or else the oldest.
 * Without a version, or with a text that is none, the newest.
 */
export function chooseProfile(version: string | undefined): ChosenProfile {
  const minor = minorOf(version ?? "");
  if (minor === null) {
    const why = version ? `${JSON.stringify(version)} is no kubelet version: ${NEWEST_ANSWERS}` : NO_VERSION;
    return chosen(NEWEST, NEWEST.version, why);
  }
  const profile = PROFILES.findLast((_, i) => (MINORS[i] ?? 0) <= minor) ?? PROFILES[0];
  const asked = `1.${minor}`;
  if (profile.version === asked) return chosen(profile, asked, null);
  return chosen(profile, asked, `kubelet ${asked} is not known here: ${profile.version} is the nearest that is`);
}
const MINORS = PROFILES.map(({ version }) => minorOf(version) ?? 0);
const NEWEST_ANSWERS = `${NEWEST.version}, the newest that is known here, answers`;
const NO_VERSION = `no kubelet version is given: ${NEWEST_ANSWERS}`;
const chosen = (profile: Profile, asked: string, why: string | null): ChosenProfile => ({
  profile,
  asked,
  note: { version: profile.version, exact: why === null, why },
});
/** The note for a command-line user, who may have given a version. Null if the answer is for that version. */
export const otherProfileReason = ({ why }: ProfileNote): string | null =>
  why === NO_VERSION ? `${why}; --kubelet takes another` : why;
export const profileOf = (version: string | undefined): Profile => chooseProfile(version).profile;

/** The form of versions that have a profile of their own. */
export const KNOWN_VERSION_PATTERN = VERSION_PATTERN.replace(
  "1\\.\\d{1,3}",
  `(?:${PROFILES.map(({ version }) => version.replace(".", "\\.")).join("|")})`,
);

/** The profile of a version in the field `path`, its own or a neighbour's. Errors: the text is no version. */
export const namedVersion = (path: string, text: unknown): Result<ChosenProfile, InputIssue> =>
  typeof text === "string" && isVersion(text) ? ok(chooseProfile(text)) : err({ path, message: VERSION_FORM });

/**
 * The profile of a version that must be known, since a neighbour would answer unnoticed. Errors: also a version
 * without a profile.
 */
export function knownVersion(path: string, text: unknown): Result<ChosenProfile, InputIssue> {
  const named = namedVersion(path, text);
  if (!named.ok || named.value.note.exact) return named;
  const known = PROFILES.map(({ version }) => version).join(", ");
  return err({ path, message: `kubelet ${text} is not known here: the versions are ${known}` });
}

/** The profile of a snapshot's kubelet; `asked` is used if the snapshot has no version. */
export const chooseProfileFor = (snapshot: Pick<Snapshot, "node"> | undefined, asked?: string | null): ChosenProfile =>
  choose(snapshot?.node?.status?.nodeInfo?.kubeletVersion ?? "", asked);

/** `own`: the version that the node reports. */
function choose(own: string, asked: string | null | undefined): ChosenProfile {
  const minor = minorOf(own);
  if (minor === null) return chooseProfile(asked ?? own);
  const ofNode = chooseProfile(own);
  if (typeof asked !== "string" || minorOf(asked) === minor) return ofNode;
  const before = `the node reports kubelet ${own}, which takes precedence over ${asked}`;
  const { note } = ofNode;
  return { ...ofNode, note: { ...note, why: note.why === null ? before : `${before}; ${note.why}` } };
}
export const profileIn = (snapshot: Pick<Snapshot, "node"> | undefined): Profile => chooseProfileFor(snapshot).profile;

/** The profile under which a recorded decision was made: `kubelet-1.36+7`, or an older form of it such as `kubelet-1.36.3+6`. */
export const profileOfPolicy = (policyVersion: string): Profile => profileOf(policyVersion.replace(/^kubelet-/, ""));
/** The note of a recorded decision. `own`: its snapshot's version; null if not stored. `asked`: the version in its request. */
export function recordedNote(
  policyVersion: string,
  { own, asked }: { readonly own: string | null; readonly asked: string | undefined },
): ProfileNote {
  const { version } = profileOfPolicy(policyVersion);
  const other = (why: string): ProfileNote => ({ version, exact: false, why });
  if (own === null)
    return other(`no snapshot of it is stored: whether the node reported kubelet ${version} is not known`);
  const isReported = minorOf(own) !== null;
  if (!isReported && asked === undefined) {
    return other(`no kubelet version was given: ${version}, the newest that was known then, answered`);
  }
  const { note } = choose(own, asked);
  if (note.version === version) return note;
  return other(
    `${isReported ? `the node reports kubelet ${own}` : `the request named kubelet ${asked}`}, and ${version} answered then`,
  );
}
/** Whether decisions are currently made by this policy. */
export const isCurrentPolicy = (policyVersion: string): boolean =>
  PROFILES.some((known) => known.policyVersion === policyVersion);

export function minorOf(version: string): number | null {
  const [, minor] = /^v?1\.(\d{1,3})(?:\D|$)/.exec(version) ?? [];
  return minor === undefined ? null : Number(minor);
}
