import { joinPath } from "../../base/input-issue.ts";
import { mergePatch } from "../../base/merge-patch.ts";
import { type Fields, isObject } from "../../base/own.ts";
import { unwrapped } from "../../model/kubelet-configuration.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { profileIn } from "../../profiles/index.ts";
import { isGateOn, type Profile } from "../../profiles/profile.ts";
import { unknownFields } from "../../profiles/unknown-fields.ts";
import { goDuration } from "../eviction/threshold.ts";
import { decodeFaults, dropInHead, readable } from "./decode-faults.ts";
import { error, inOrder, type LintFinding, RawConfiguration } from "./finding.ts";
import { gatesIn, type RelativePaths } from "./input.ts";
import { lintConfiguration } from "./lint.ts";

/** A file of the kubelet's `--config-dir`. */
export interface DropIn {
  readonly file: string;
  /** The content, not checked. */
  readonly document: unknown;
}

/**
 * Findings about a KubeletConfiguration and its drop-ins, merged in the given order: for each file, what keeps it from
 * being loaded; for the merged configuration, everything. `over`: findings that take precedence. kubelet 1.37:
 * loadConfigFile, mergeKubeletConfigurations of cmd/kubelet/app.
 */
export function lintWithDropIns(
  configuration: unknown,
  dropIns: readonly DropIn[],
  snapshot?: Snapshot,
  profile: Profile = profileIn(snapshot),
  over: (merged: Fields) => Fields = (merged) => merged,
): readonly LintFinding[] {
  const ofFile = lintConfiguration(configuration, snapshot, profile).filter(({ code }) => OF_LOADING.has(code));
  const base = unwrapped(configuration);
  const heads = dropIns.map((dropIn) => dropInHead(dropIn.file, dropIn.document));
  const readDropIns = dropIns.filter(isRead);
  const { merged, relativePaths } = mergedOver(isObject(base) ? base : {}, readDropIns, profile);
  return inOrder([
    ...ofFile,
    ...heads.filter((finding) => finding !== null),
    ...readDropIns.flatMap((dropIn) => leftOut(dropIn, profile)),
    ...lintConfiguration(over(merged), snapshot, profile, relativePaths).map(afterMerge),
  ]);
}

const isRead = ({ file, document }: DropIn): boolean => dropInHead(file, document) === null;

/** A file's configuration with the drop-ins that the kubelet reads merged over it, and with all its defaults. */
export const mergedConfiguration = (base: Fields, dropIns: readonly DropIn[], profile: Profile): Fields =>
  mergedOver(base, dropIns.filter(isRead), profile).merged;

/** Codes of findings about loading a file, which count before any drop-in is read. */
const OF_LOADING: ReadonlySet<string> = new Set([
  "feature-gate-dependency",
  "kind-missing",
  "locked-feature-gate",
  "no-configuration",
  "too-large",
  "unknown-feature-gate",
  "unknown-field",
  "wrong-api-version",
  "wrong-kind",
  "wrong-type",
]);

const OF_FILE = "failed to decode: ";
const OF_MERGED = "failed to unmarshal merged JSON into kubelet configuration: ";
const afterMerge = (found: LintFinding): LintFinding =>
  found.code === "wrong-type" && found.message.startsWith(OF_FILE)
    ? { ...found, message: OF_MERGED + found.message.slice(OF_FILE.length) }
    : found;

/** Fields of a drop-in that this version does not have. */
function leftOut({ file, document }: DropIn, { fieldNames, version }: Profile): readonly LintFinding[] {
  return unknownFields(document, fieldNames).map(({ path, near }) => {
    const name = String(path.at(-1));
    const isCase = near !== null && near.toLowerCase() === name.toLowerCase();
    const meant = near === null ? "take it out" : `was \`${near}\` meant?`;
    return error({
      code: "unknown-field",
      field: joinPath("", path),
      message: `${file}: a KubeletConfiguration of ${version} has no field ${joinPath("", path)}`,
      advice: isCase
        ? `write \`${near}\`: in other letters it counts only where nothing else, no default either, sets the field`
        : `the kubelet leaves it out of a drop-in without a word: ${meant}`,
    });
  });
}

interface Merged {
  readonly merged: Fields;
  readonly relativePaths: RelativePaths;
}

/**
 * The file with all its defaults, and the drop-ins applied to it as merge patches (RFC 7396): a default derived from
 * another field stays even if a drop-in changes that field.
 */
export function mergedOver(base: Fields, dropIns: readonly DropIn[], profile: Profile): Merged {
  const patches = dropIns.map(({ document }) => {
    const { apiVersion: _version, kind: _kind, ...fields } = known(document, "", profile) as Fields;
    return fields;
  });
  const all = patches.reduce<unknown>(mergePatch, loaded(base, profile)) as Fields;
  // the thresholds are merged when the file is loaded, without defaults after that
  const { mergeDefaultEvictionSettings: _, ...merged }: Fields = { evictionHard: {}, ...all };
  // the file's paths were made absolute when it was loaded
  const isKept = patches.some((patch) => patch["podLogsDir"] !== undefined);
  return { merged, relativePaths: isKept ? "kept" : "resolved" };
}

/** The value without fields that this version does not know. `path`: without list indexes. */
function known(value: unknown, path: string, profile: Profile): unknown {
  if (Array.isArray(value)) return value.map((item) => known(item, path, profile));
  const names = profile.fieldNames.get(path);
  if (names === undefined || !isObject(value)) return value;
  const fields = Object.entries(value).filter(([name]) => names.includes(name));
  return Object.fromEntries(
    fields.map(([name, inner]) => [name, known(inner, path === "" ? name : `${path}.${name}`, profile)]),
  );
}

/**
 * A configuration with its defaults, as the kubelet serialises it before it merges. kubelet 1.37:
 * SetDefaults_KubeletConfiguration.
 */
function loaded(document: Fields, profile: Profile): Fields {
  const given = known(readable(document, decodeFaults(document, profile)), "", profile) as Fields;
  const named = gatesIn(new RawConfiguration(given));
  const defaults: Record<string, unknown> = { ...profile.defaults };
  for (const [gate, fields] of Object.entries(profile.gatedDefaults)) {
    if (isGateOn(profile, named, gate)) Object.assign(defaults, fields);
    else for (const name of Object.keys(fields)) delete defaults[name];
  }
  if (Number(given["maxParallelImagePulls"]) > 1) defaults["serializeImagePulls"] = false;
  const update = given["nodeStatusUpdateFrequency"];
  if (!isLeftOut(update, "v1.Duration")) defaults["nodeStatusReportFrequency"] = update;
  const all = filled(given, defaults, "", profile);
  const own = given["evictionHard"];
  if (!isObject(own) || given["mergeDefaultEvictionSettings"] !== true) return all;
  return { ...all, evictionHard: { ...profile.defaults.evictionHard, ...own } };
}

function filled(given: Fields, defaults: Fields, path: string, profile: Profile): Fields {
  const all: Record<string, unknown> = { ...defaults };
  for (const [name, value] of Object.entries(given)) {
    const at = path === "" ? name : `${path}.${name}`;
    const byDefault = defaults[name];
    if (profile.fieldNames.has(at) && isObject(value)) {
      all[name] = filled(value, isObject(byDefault) ? byDefault : {}, at, profile);
    } else if (!isLeftOut(value, profile.fields.get(at) ?? "")) all[name] = value;
  }
  return all;
}

/** Whether Go omits the value when it serialises: a zero where the field is no pointer, or an empty list. */
export function isLeftOut(value: unknown, type: string): boolean {
  if (value === null || value === undefined) return true;
  if (type.startsWith("*")) return false;
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== "string" || !/Duration$/.test(type)) return value === "" || value === 0;
  const read = goDuration(value);
  return read.ok && read.value.nanos === 0;
}
