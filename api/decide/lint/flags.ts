import { nearName } from "../../base/near-name.ts";
import { PROFILES } from "../../profiles/index.ts";
import type { FlagSpec, Profile } from "../../profiles/profile.ts";
import { quote } from "../go/strconv.ts";
import { type LintFinding, refusal } from "./finding.ts";
import { flagValue } from "./flag-values.ts";

/** A flag that a command line gives. */
export interface GivenFlag {
  readonly spec: FlagSpec;
  /** The combined value of all its occurrences; undefined: it cannot be parsed, see `faults`. */
  readonly value: unknown;
}
/** A command line as the kubelet reads it. */
export interface GivenFlags {
  /** The flags by name, without leading dashes. */
  readonly flags: ReadonlyMap<string, GivenFlag>;
  /** All faults that keep the kubelet from starting; the kubelet reports the first. */
  readonly faults: readonly LintFinding[];
  /** Index of the last argument that gives a flag, `--NAME`, or that a field of `faults` is about. */
  readonly places: ReadonlyMap<string, number>;
}

const PARSING = "failed to parse kubelet flag: ";

/** The arguments behind the program's name. kubelet 1.37: NewKubeletCommand; FlagSet.Parse of pflag, to which `_` is `-` here. */
export function readFlags(args: readonly string[], profile: Profile): GivenFlags {
  const flags = new Map<string, GivenFlag>();
  const places = new Map<string, number>();
  const faults: LintFinding[] = [];
  for (const { at, ...given } of argumentsIn(args, profile)) {
    // a kubelet names the first
    if (given.field === NO_FLAG && places.has(NO_FLAG)) continue;
    places.set(given.field, at);
    if (given.fault !== undefined) faults.push(given.fault);
    else {
      const { name, spec, text } = given;
      const read = flagValue(spec, text, flags.get(name)?.value);
      flags.set(name, { spec, value: read.ok ? read.value : undefined });
      if (!read.ok) faults.push(unreadable(name, spec, text, read.error));
    }
  }
  const refused = [unknownLabels(flags.get("node-labels")?.value), cloudProvider(flags.get("cloud-provider")?.value)];
  return { flags, faults: [...faults, ...refused.filter((finding) => finding !== null)], places };
}

function unreadable(name: string, spec: FlagSpec, text: string, why: string): LintFinding {
  const field = `--${name}`;
  const shown = name === VERBOSITY ? `-${name}, ${field}` : field;
  const message = `${PARSING}invalid argument ${quote(text)} for ${quote(shown)} flag: ${why}`;
  return refusal("cannot-parse", { field, message }, `give it ${kindOf(spec)}`);
}

const VERBOSITY = "v";

const KINDS: Readonly<Record<string, string>> = {
  bool: "true or false, behind `=`",
  int32: "a whole number",
  int64: "a whole number",
  "v1.Duration": "a duration such as 90s or 1m30s",
  "v1.TimeOrMetaDuration": "a duration such as 5s",
  "v1.VerbosityLevel": "a whole number from 0 on",
  "resource.QuantityValue": "an amount such as 64Ki",
  "map[string]bool": "NAME=true or NAME=false, with commas between them",
  "map[string]string": "NAME=VALUE with commas between them (thresholds of evictions: NAME<VALUE)",
  "[]v1.Taint": "KEY=VALUE:EFFECT with commas between them",
  "[]v1beta1.MemoryReservation": "NODE:memory=AMOUNT, such as 0:memory=1Gi",
};
const kindOf = ({ type }: FlagSpec): string => KINDS[type.replace(/^\*|^flag\./, "")] ?? "a value";

/** An argument, or two of them: a flag with its value, or what is wrong with it. */
type Argument = { readonly at: number; readonly field: string } & (
  | { readonly name: string; readonly spec: FlagSpec; readonly text: string; readonly fault?: undefined }
  | { readonly fault: LintFinding }
);

/**
 * Splits the command line into arguments. An unknown flag takes the next argument as its value, unless that is a flag
 * itself.
 */
function* argumentsIn(args: readonly string[], profile: Profile): Generator<Argument, undefined> {
  let isWord = false;
  for (let at = 0; at < args.length; at++) {
    const written = args[at] as string;
    if (isWord || !/^-[\s\S]/.test(written)) yield { at, field: NO_FLAG, fault: notAFlag(written) };
    else if (written === "--") isWord = true;
    else {
      const { field, name, spec, value, fault, inWords } = readArgument(written, profile);
      const next = args[at + 1];
      if (fault !== undefined) {
        yield { at, field, fault };
        if (value === undefined && next?.startsWith("-") === false) at++;
      } else if (spec !== undefined) {
        const text = value ?? (BOOL.test(spec.type) ? "true" : next);
        const missing = `${PARSING}flag needs an argument: ${inWords}`;
        yield text === undefined
          ? { at, field, fault: refusal("bad-flag", { field, message: missing }, `give it ${kindOf(spec)}`) }
          : { at, field, name, spec, text };
        if (value === undefined && !BOOL.test(spec.type)) at++;
      }
    }
  }
}
const BOOL = /^(?:\*|flag\.)?(?:bool|version)$/;

interface ReadArgument {
  readonly field: string;
  readonly name: string;
  /** The flag's spec; undefined without a fault: the argument asks for help. */
  readonly spec?: FlagSpec | undefined;
  /** The value within the same argument; undefined: none. */
  readonly value: string | undefined;
  readonly fault?: LintFinding;
  /** The flag's name in pflag's message about a missing value. */
  readonly inWords: string;
}

function readArgument(written: string, profile: Profile): ReadArgument {
  const { commandLine } = profile;
  const [, long, value] = /^--([^-=][^=]*)(?:=([\s\S]*))?$/.exec(written) ?? [];
  if (long !== undefined) {
    const name = long.replaceAll("_", "-");
    const known = { field: `--${name}`, name, value, inWords: `--${long}` };
    const spec = commandLine.get(name);
    return spec === undefined
      ? { ...known, fault: unknownFlag(name, `unknown flag: --${long}`, profile) }
      : { ...known, spec };
  }
  // a group of letters: v takes the rest as its value, h takes none
  const [, letter = "", behind = ""] = /^-h*([^-h]?)([\s\S]*)$/.exec(written) ?? [];
  if (letter === "" && behind === "") return { field: "--help", name: "help", value: "", inWords: "" };
  const own = behind === "" ? undefined : behind.replace(/^=(?=[\s\S])/, "");
  const known = { field: written, name: letter, value: own, inWords: `'${letter}' in -${letter}` };
  if (letter === VERBOSITY) return { ...known, field: `--${letter}`, spec: commandLine.get(letter) };
  const message =
    letter === "" ? `bad flag syntax: ${written}` : `unknown shorthand flag: '${letter}' in -${letter}${behind}`;
  return {
    ...known,
    fault: refusal("bad-flag", { field: written, message: PARSING + message }, "write it as --NAME=VALUE"),
  };
}

/** The field of arguments that are no flags. */
const NO_FLAG = "--";
const notAFlag = (word: string): LintFinding =>
  refusal(
    "no-flag",
    { field: NO_FLAG, message: `unknown command ${word}` },
    "take it out: true or false stand behind `=`, as in --fail-swap-on=false",
  );

function unknownFlag(name: string, message: string, { version, commandLine }: Profile): LintFinding {
  const fault = { field: `--${name}`, message: PARSING + message };
  const last = PROFILES.findLast((known) => known.commandLine.has(name));
  if (last !== undefined)
    return refusal("removed-flag", fault, `take it out: kubelet ${last.version} was the last that had it`);
  const near = nearName(name, [...commandLine.keys()]);
  return refusal(
    "unknown-flag",
    fault,
    near === null ? `take it out: kubelet ${version} has no such flag` : `was \`--${near}\` meant?`,
  );
}

/** kubelet 1.37: KubeletLabels, KubeletLabelNamespaces. */
const LABELS: readonly string[] = [
  ...["beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os"],
  ...["failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone", "kubernetes.io/arch"],
  ...["kubernetes.io/hostname", "kubernetes.io/os", "node.kubernetes.io/instance-type"],
  ...["topology.kubernetes.io/region", "topology.kubernetes.io/zone"],
];
const NAMESPACES: readonly string[] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const isBelow = (name: string, domain: string): boolean => name === domain || name.endsWith(`.${domain}`);

/** Labels that no kubelet may give its own node. kubelet 1.37: ValidateKubeletFlags. */
function unknownLabels(labels: unknown): LintFinding | null {
  const unknown = Object.keys(labels ?? {}).filter((label) => {
    const [namespace = ""] = label.includes("/") ? label.split("/") : [];
    const isReserved = ["kubernetes.io", "k8s.io"].some((domain) => isBelow(namespace, domain));
    return isReserved && !LABELS.includes(label) && !NAMESPACES.some((domain) => isBelow(namespace, domain));
  });
  if (unknown.length === 0) return null;
  const message = `failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${unknown.sort().join(" ")}]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (${NAMESPACES.join(", ")}) or be in the specifically allowed set (${LABELS.join(", ")})`;
  const advice = "take them out, and label the node with kubectl or what creates it";
  return refusal("unknown-label", { field: "--node-labels", message }, advice);
}

/** A provider that was built into older kubelets. kubelet 1.37: NewMainKubelet, ErrorForDisabledProvider of k8s.io/cloud-provider. */
function cloudProvider(name: unknown): LintFinding | null {
  if (typeof name !== "string" || name === "" || name === "external") return null;
  const message = `cloud provider ${quote(name)} was specified, but built-in cloud providers are disabled. Please set --cloud-provider=external and migrate to an external cloud provider`;
  const advice = "say external where a cloud controller manager runs in the cluster, else take it out";
  return refusal("disabled-cloud-provider", { field: "--cloud-provider", message }, advice);
}
