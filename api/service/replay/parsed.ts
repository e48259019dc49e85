import { corruptRow, type StoreFailure } from "../../../db/failure.ts";
import type { DecisionHead, DecisionRow, SnapshotRow } from "../../../db/rows.ts";
import { mergePatch } from "../../base/merge-patch.ts";
import { fieldsOf, isObject } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { isKind, type Kind } from "../../model/decision.ts";
import { inFormOfNow } from "../../model/decode.ts";
import { type ProfileNote, profileOf, recordedNote } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { membersOf, ownConfiguration } from "../own-configuration.ts";

/** JSON text from the history -> value. Errors: invalid JSON is `corrupt`; `what` names its row. */
export function parsed(what: string, text: string): Result<unknown, StoreFailure> {
  try {
    return ok(JSON.parse(text) as unknown);
  } catch {
    return broken(what, "not JSON");
  }
}

/** JSON text from the history that must be an object. */
export function parsedObject(what: string, text: string): Result<Readonly<Record<string, unknown>>, StoreFailure> {
  const found = parsed(what, text);
  if (!found.ok) return found;
  return isObject(found.value) ? ok(found.value) : broken(what, "no object");
}

const broken = (what: string, is: string): Result<never, StoreFailure> =>
  corruptRow(`${what}: what is stored of it is ${is}; restore the database from a backup`);

/** A stored snapshot's own text as what was posted. Errors: it cannot be read; names the snapshot. */
export function postedSnapshot({ id, body }: Pick<SnapshotRow, "id" | "body">): ReturnType<typeof parsedObject> {
  const found = parsedObject(`snapshot \`${id}\``, body);
  return found.ok ? ok(inFormOfNow(found.value)) : found;
}

/** The most characters shown of a damaged name. */
const MAX_NAMED = 64;

/** The kind of a stored decision. Errors: a kind that this version does not know; names the decision. */
export const knownKind = ({ id, kind }: Pick<DecisionHead, "id" | "kind">): Result<Kind, StoreFailure> =>
  isKind(kind)
    ? ok(kind)
    : corruptRow(
        `decision \`${id}\` is of a kind that this version does not know: \`${kind.slice(0, MAX_NAMED)}\`; read it with the version that wrote it, or restore the database from a backup`,
      );

/** The contents of a decision's body. */
export interface Recorded {
  readonly decision: Readonly<Record<string, unknown>>;
  readonly reasons: readonly unknown[];
  readonly needs: readonly unknown[];
  /** The version in the request; undefined if it had none. */
  readonly kubeletVersion: string | undefined;
}

/** The recorded answer. Errors: it cannot be read; names the decision. */
export function recordedAnswer({ id, body }: Pick<DecisionRow, "id" | "body">): Result<Recorded, StoreFailure> {
  const what = `decision \`${id}\``;
  const found = parsedObject(what, body);
  if (!found.ok) return found;
  const { decision, reasons, needs, kubeletVersion } = found.value;
  if (!isObject(decision) || !Array.isArray(reasons) || !Array.isArray(needs)) return broken(what, "no answer");
  return ok({
    decision,
    reasons,
    needs,
    kubeletVersion: typeof kubeletVersion === "string" ? kubeletVersion : undefined,
  });
}

/**
 * The profile under which a recorded decision was made. `stored`: its snapshot; null if there is none, or it is no longer stored.
 * A damaged one counts as having no version.
 */
export function recordedProfile(
  { policyVersion }: Pick<DecisionRow, "policyVersion">,
  { kubeletVersion: asked }: Recorded,
  stored: SnapshotRow | null,
): ProfileNote {
  if (stored === null) return recordedNote(policyVersion, { own: null, asked });
  const posted = postedSnapshot(stored);
  const node = fieldsOf(posted.ok ? posted.value["node"] : null);
  const { kubeletVersion } = fieldsOf(fieldsOf(node["status"])["nodeInfo"]);
  return recordedNote(policyVersion, { own: typeof kubeletVersion === "string" ? kubeletVersion : "", asked });
}

/** The change to a recorded input before it is decided again. Without any field, nothing changes. */
export interface Change {
  /** Replaces the whole recorded configuration; `undefined` keeps it. */
  readonly kubeletConfiguration?: unknown;
  /** A merge patch (RFC 7396) for the recorded configuration; `undefined` changes nothing. */
  readonly kubeletConfigurationPatch?: unknown;
  /**
   * The kubelet version to decide as; `undefined` for the recorded one. Defaults of the recorded version are dropped from a
   * recorded configuration that has all fields, since a kubelet reports them although its file did not set them.
   */
  readonly kubeletVersion?: string | undefined;
  /** True: the replay is part of an upgrade report, whose page tokens differ from a replay's. */
  readonly isUpgrade?: boolean;
}

/** The profile for deciding again. `recorded`: that of the record. */
export const profileOfChange = ({ kubeletVersion }: Change, recorded: Profile): Profile =>
  kubeletVersion === undefined ? recorded : profileOf(kubeletVersion);

/** Whether a change changes nothing, so that the recorded input is decided as it was. */
export const isNothing = ({ kubeletConfiguration, kubeletConfigurationPatch, kubeletVersion }: Change): boolean =>
  kubeletConfiguration === undefined && kubeletConfigurationPatch === undefined && kubeletVersion === undefined;

interface RecordedInput {
  readonly kubeletConfiguration?: unknown;
}

/** What `changed` removes from recorded configurations if another kubelet version is requested. */
export const LEFT_OUT =
  "a recorded configuration that names every field, as /configz does, may hold defaults of its own version that differ in the new one; they count as left out of the kubelet's own file, as in `nodewise upgrade`";

function ofFile(configuration: unknown, { kubeletVersion }: Change, recorded: Profile | undefined): unknown {
  if (kubeletVersion === undefined || recorded === undefined || !isObject(configuration)) return configuration;
  return ownConfiguration(membersOf(configuration), recorded, profileOf(kubeletVersion)).configuration;
}

/** The stored snapshot with the change applied. `recorded`: the record's profile. */
export function changed(input: RecordedInput, change: Change, recorded?: Profile): RecordedInput {
  const own = ofFile(input.kubeletConfiguration, change, recorded);
  const { kubeletConfiguration = own, kubeletConfigurationPatch } = change;
  if (!isObject(kubeletConfigurationPatch)) return { ...input, kubeletConfiguration };
  // a patch in /configz form would replace everything if merged as it is
  const patch = kubeletConfigurationPatch["kubeletconfig"] ?? kubeletConfigurationPatch;
  return { ...input, kubeletConfiguration: mergePatch(own, patch) };
}
