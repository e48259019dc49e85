import { type Fields, fieldsOf, isObject } from "../../base/own.ts";
import { configurationPath } from "../../model/kubelet-configuration.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { PROFILES } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { type DropIn, isLeftOut, lintWithDropIns } from "./drop-ins.ts";
import { GATES_OF_FILE, GATES_OF_FLAGS } from "./dropped.ts";
import { entryField, inOrder, type LintFinding, note, warning } from "./finding.ts";
import type { GivenFlag, GivenFlags } from "./flags.ts";
import { lintConfiguration } from "./lint.ts";

/** The file, drop-ins and flags that a kubelet is started with. */
export interface KubeletStart {
  /** The configuration, not checked; undefined: none is known, and only the flags are checked. */
  readonly configuration: unknown;
  /** The files of its `--config-dir`, in order; null: there is none. */
  readonly dropIns: readonly DropIn[] | null;
  /** The flags; null: the command line is not known. */
  readonly flags: GivenFlags | null;
}

/** What a kubelet is started with besides its configuration. */
export interface FlagsAndDropIns extends Pick<KubeletStart, "dropIns"> {
  /** The kubelet's command line, without its name; null: it is not known. */
  readonly args: readonly string[] | null;
}

/**
 * Checks everything that a kubelet is started with: its file, its drop-ins, and the flags, which override both.
 * kubelet 1.37: NewKubeletCommand, kubeletConfigFlagPrecedence of cmd/kubelet/app.
 */
export function lintStart(
  { configuration, dropIns, flags }: KubeletStart,
  snapshot: Snapshot | undefined,
  profile: Profile,
): readonly LintFinding[] {
  if (flags === null) {
    return dropIns === null
      ? lintConfiguration(configuration, snapshot, profile)
      : lintWithDropIns(configuration, dropIns, snapshot, profile);
  }
  const file = configuration ?? {};
  const found =
    dropIns === null
      ? [
          // these keep the file from being loaded, even if a flag sets the field
          ...lintConfiguration(file, snapshot, profile).filter(({ code }) => code === "wrong-type"),
          ...lintConfiguration(withFlags(file, flags), snapshot, profile),
        ]
      : lintWithDropIns(file, dropIns, snapshot, profile, (merged) => withFlags(merged, flags));
  const files = [documentOf(file), ...(dropIns ?? []).map(({ document }) => document)];
  const isRefused = (name: string): boolean =>
    found.some(({ severity, field }) => severity === "refuses-start" && flagOf(field, flags) === `--${name}`);
  return inOrder([
    ...flags.faults,
    ...[...flags.flags].flatMap(([name, given]) =>
      flagFindings({ name, ...given, isRefused: isRefused(name) }, files, profile),
    ),
    ...found.map((finding) => ofFlag(finding, flags)),
  ]);
}

/** The document without the wrapper of /configz. */
const documentOf = (configuration: unknown): unknown =>
  configurationPath(configuration).reduce<unknown>((at, name) => (at as Fields)[name], configuration);

/** A configuration with the flags' values in place of its own. Feature gates are merged one by one. */
export function withFlags<C>(configuration: C, { flags }: GivenFlags): C {
  let all: unknown = configuration;
  const wrapper = configurationPath(configuration);
  if (!isObject(documentOf(configuration))) return configuration;
  for (const { spec, value } of flags.values()) {
    if (spec.field === null || value === undefined) continue;
    all = setAt(all, [...wrapper, ...spec.field.split(".")], value);
    // the defaults were merged into what the file has, when it was loaded
    if (spec.field === "evictionHard") all = setAt(all, [...wrapper, "mergeDefaultEvictionSettings"], false);
  }
  return all as C;
}

function setAt(at: unknown, [name = "", ...rest]: readonly string[], value: unknown): Fields {
  const members = isObject(at) ? at : {};
  const known = members[name];
  if (rest.length > 0) return { ...members, [name]: setAt(known, rest, value) };
  if (name === GATES && isObject(known)) return { ...members, [name]: { ...known, ...(value as Fields) } };
  if (ADDED_TO.endsWith(`.${name}`) && Array.isArray(known))
    return { ...members, [name]: [...known, ...(value as unknown[])] };
  return { ...members, [name]: value };
}
const GATES = "featureGates";
/** The one list to which a flag adds. */
const ADDED_TO = "logging.vmodule";

function valueAt(document: unknown, field: string): unknown {
  return field.split(".").reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), document);
}

/**
 * Flags that override a different value in a file, and flags that will be removed. `files`: the last that sets a field
 * counts.
 */
function flagFindings(
  { name, spec, value, isRefused }: GivenFlag & { readonly name: string; readonly isRefused: boolean },
  files: readonly unknown[],
  profile: Profile,
): readonly LintFinding[] {
  const field = `--${name}`;
  const { field: path, type, deprecated } = spec;
  const named = path === null ? [] : files.map((file) => valueAt(file, path)).filter((one) => one !== undefined);
  const inFile = path === GATES && isObject(value) ? pick(named.at(-1), Object.keys(value)) : named.at(-1);
  const others = path === null || path === ADDED_TO || value === undefined ? null : differing(path, value, inFile);
  const isUnsayable = isLeftOut(value, type);
  const fix = path === null || isUnsayable || isRefused ? null : setAt({}, path.split("."), value);
  if (others !== null) {
    const message = `${field} sets ${others.flag}, and ${others.file} of the file does not count`;
    const advice = `write what shall count into the file, and take the flag out${fix === null ? "" : "; the patch writes what counts now"}`;
    return [warning({ code: "flag-before-file", field, message, advice, fix })];
  }
  if (deprecated === null) return [];
  const later = PROFILES.slice(PROFILES.indexOf(profile)).find(({ commandLine }) => !commandLine.has(name));
  const message = `Flag ${field} has been deprecated, ${deprecated}`;
  const flagFinding = (advice: string, patch: unknown = null): readonly LintFinding[] => [
    { ...note({ code: "deprecated-flag", field, message, advice, fix: patch }), kubelet: true },
  ];
  if (later !== undefined) return flagFinding(`take it out: kubelet ${later.version} no longer starts with it`);
  if (path === null) return flagFinding("take it out");
  if (inFile !== undefined) return flagFinding(`take it out: ${path} of the file says the same`);
  return value !== undefined && isUnsayable
    ? flagFinding(
        `take it out if the default of ${path} will do: the file cannot say so, as this value counts as left out there`,
      )
    : flagFinding(`set ${path} in the file in its place`, fix);
}

const pick = (members: unknown, names: readonly string[]): Fields | undefined => {
  const found = Object.entries(fieldsOf(members)).filter(([name]) => names.includes(name));
  return found.length === 0 ? undefined : Object.fromEntries(found);
};

/** The first place where a flag and the file differ; null: none. */
function differing(
  path: string,
  value: unknown,
  inFile: unknown,
): { readonly flag: string; readonly file: string } | null {
  if (inFile === undefined || sorted(inFile) === sorted(value)) return null;
  const entryText = (at: string, one: unknown): string => `${at}: ${cut(JSON.stringify(one))}`;
  if (path !== GATES || !isObject(inFile)) return { flag: entryText(path, value), file: entryText(path, inFile) };
  const gate = Object.keys(inFile).find((name) => inFile[name] !== (value as Fields)[name]);
  if (gate === undefined) return null;
  const at = entryField(GATES, gate);
  return { flag: entryText(at, (value as Fields)[gate]), file: entryText(at, inFile[gate]) };
}
const sorted = (value: unknown): string => JSON.stringify(isObject(value) ? Object.entries(value).sort() : value);
const MAX_SHOWN = 120;
const cut = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text);

/** The flag that sets a field of a configuration, or one that it is below of; null: none does. */
export function flagOf(field: string, { flags }: GivenFlags): string | null {
  for (const [name, { spec, value }] of flags) {
    if (spec.field === null || value === undefined) continue;
    const isSet =
      spec.field === GATES
        ? Object.keys(value as Fields).some((gate) => field === entryField(GATES, gate))
        : field === spec.field || field.startsWith(`${spec.field}.`) || field.startsWith(`${spec.field}[`);
    if (isSet) return `--${name}`;
  }
  return null;
}

/** The finding without a fix, since a patch of the file does not change a flag. */
function ofFlag(finding: LintFinding, flags: GivenFlags): LintFinding {
  const flag = flagOf(finding.field, flags);
  if (flag === null) return finding;
  const { code } = finding;
  const isGate = code === "unknown-feature-gate" || code === "locked-feature-gate";
  const message = isGate ? finding.message.replace(GATES_OF_FILE, GATES_OF_FLAGS) : finding.message;
  return { ...finding, message, advice: `${finding.advice}; ${flag} sets it`, fix: null };
}
