import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { nearName } from "../base/near-name.ts";
import { fieldsOf } from "../base/own.ts";
import { configurationPath, unwrapped } from "../model/kubelet-configuration.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type ChosenProfile, chooseProfileFor, PROFILES } from "./index.ts";
import type { Profile } from "./profile.ts";

type Path = readonly (string | number)[];
/** The names of an object's fields, by its path without list indices. */
export type KnownFields = ReadonlyMap<string, readonly string[]>;
export interface UnknownField {
  readonly path: Path;
  /** The message of the kubelet's strict decoding. kubelet 1.36: DecodeKubeletConfiguration. */
  readonly fault: string;
  /** A similar field of the same object; null if there is none. */
  readonly near: string | null;
}

/**
 * Fields of a KubeletConfiguration that a kubelet of the version does not know, at every depth, in the order of the document. A
 * misspelt field silently keeps its default. Maps, whose keys are arbitrary, are not checked. `known`: `fieldNames` of a profile,
 * or those of another object.
 */
export const unknownFields = (configuration: unknown, known: KnownFields): readonly UnknownField[] => [
  ...below(configuration, [], "", known),
];

/**
 * Whether every field with a default is present, of those that a snapshot keeps: a kubelet reports them all, and no file sets them
 * all. `given`: without a wrapper.
 */
export const namesEveryField = (
  given: Readonly<Record<string, unknown>>,
  { configuration, defaults }: Profile,
): boolean =>
  Object.keys(configuration).every(
    (name) => defaults[name] === undefined || given[name] !== undefined || KEPT_LATER.has(name),
  );
/** Older stored snapshots of a /configz lack these fields, which were not kept then. */
const KEPT_LATER: ReadonlySet<string> = new Set(["crashLoopBackOff", "nodeStatusUpdateFrequency"]);

/** Whether a kubelet of some known version printed it as /configz: what is written by hand in that form has fewer fields. */
export function isPrinted(configuration: unknown): boolean {
  const own = fieldsOf(unwrapped(configuration));
  return own !== configuration && PROFILES.some((profile) => namesEveryField(own, profile));
}

/**
 * The fault of a /configz that was printed by another kubelet than the node's: the first field that the node's version does not
 * know, and what to do. A stored one has no wrapper and is recognised by having every field. Undefined if it may be the node's
 * own.
 */
export function othersConfiguration(
  configuration: unknown,
  node: string,
  { profile, note }: ChosenProfile,
): { readonly path: Path; readonly message: string; readonly note: string } | undefined {
  const { version, fieldNames } = profile;
  const [wrapper, own] = [configurationPath(configuration), unwrapped(configuration)];
  const isConfigz = wrapper.length > 0 || namesEveryField(fieldsOf(own), profile);
  if (!isConfigz || !note.exact) return undefined;
  // only as much of a long document is checked as the message needs
  const unknown = below(own, [], "", fieldNames).next().value;
  if (unknown === undefined) return undefined;
  const why = `a kubelet ${version}, which node ${node} has, does not know the field`;
  const message = `${why}, so this is another kubelet's /configz: give that of ${node}`;
  return { path: unknown.path, message, note: `${joinPath("", unknown.path)} counts as left out: ${why}` };
}

/** Does the same for a snapshot's node, which may have no version; `at`: where the configuration was given. */
export function configurationOfAnother(
  snapshot: Pick<Snapshot, "node"> | undefined,
  configuration: unknown,
  at = "kubeletConfiguration",
): InputIssue | undefined {
  const other = otherOfSnapshot(snapshot, configuration);
  return other && { path: joinPath(at, other.path), message: other.message };
}

/** The note about a recorded configuration with a field that counts as left out; undefined if there is none. */
export const noteOfRecorded = (snapshot: Pick<Snapshot, "node"> | undefined, configuration: unknown) =>
  otherOfSnapshot(snapshot, configuration)?.note;

function otherOfSnapshot(snapshot: Pick<Snapshot, "node"> | undefined, configuration: unknown) {
  const { metadata, status } = snapshot?.node ?? {};
  if (status?.nodeInfo?.kubeletVersion === undefined) return undefined;
  return othersConfiguration(configuration, metadata?.name ?? "", chooseProfileFor(snapshot));
}

/** The most fields that are named; a document with more has another format. */
const MAX_NAMED = 20;

/** Fields of a snapshot's configuration that decisions do not read because a kubelet ignores them, at most 20. */
export function leftOutOfSnapshot(snapshot: unknown, { fieldNames }: Profile): readonly InputIssue[] {
  const { kubeletConfiguration } = (snapshot ?? {}) as { readonly kubeletConfiguration?: unknown };
  // a configuration printed by a kubelet has exactly its version's fields
  if (kubeletConfiguration === undefined || isPrinted(kubeletConfiguration)) return [];
  const wrapper = configurationPath(kubeletConfiguration);
  const found: InputIssue[] = [];
  for (const { path, fault, near } of below(unwrapped(kubeletConfiguration), [], "", fieldNames)) {
    const message = near === null ? fault : `${fault}; \`${near}\`?`;
    found.push({ path: joinPath("snapshot.kubeletConfiguration", [...wrapper, ...path]), message });
    if (found.length === MAX_NAMED) break;
  }
  return found;
}

/** Longer names are not compared: they are no misspelling. */
const LONGEST_NAME = 64;

/** kubelet 1.36: sigs.k8s.io/json appendStrictFieldStackKey, which does not quote names. */
const strictPath = (path: Path): string =>
  path.map((step, i) => (typeof step === "number" ? `[${step}]` : i === 0 ? step : `.${step}`)).join("");

/** `form`: the path without list indices. */
function* below(value: unknown, path: Path, form: string, of: KnownFields): Generator<UnknownField, undefined> {
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) yield* below(item, [...path, i], form, of);
    return;
  }
  const known = of.get(form);
  if (known === undefined || typeof value !== "object" || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const at = [...path, name];
    if (known.includes(name)) yield* below(inner, at, form === "" ? name : `${form}.${name}`, of);
    else {
      const fault = `strict decoding error: unknown field ${JSON.stringify(strictPath(at))}`;
      yield { path: at, fault, near: name.length > LONGEST_NAME ? null : nearName(name, known) };
    }
  }
}
