import { nearName } from "../../base/near-name.ts";
import { PROFILES } from "../../profiles/index.ts";
import { type GateSpec, isGateOn, type Profile } from "../../profiles/profile.ts";
import { ENFORCEABLE } from "../allocatable/start-errors.ts";
import { settingFault } from "../setting-fault.ts";
import { entryField, type LintFinding, note, refusal, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

type Gates = Readonly<Record<string, boolean>>;
// the kubelet panics, since it cannot set defaults without the gates
export const GATES_OF_FILE =
  "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: ";
/** Gates of the command line are set before a file is loaded. */
export const GATES_OF_FLAGS = "failed to set feature gates from initial flags-based config: ";
const field = (gate: string): string => entryField("featureGates", gate);
const without = (gate: string): unknown => ({ featureGates: { [gate]: null } });

/**
 * Gates that cannot be set as given, and gates that will be removed. If there are several, the kubelet reports a
 * random one. kubelet 1.36: SetDefaults_KubeletConfiguration.
 */
export function gateFindings({ profile, gates: named }: LintInput): readonly LintFinding[] {
  const names = Object.keys(named).sort();
  const known = [...profile.gates.keys()];
  let sought = 0;
  const nearOf = (name: string): string | null =>
    name.length > LONGEST_NAME || ++sought > MAX_SOUGHT ? null : nearName(name, known);
  const faults = names.flatMap((name) => faultOf(name, profile.gates.get(name), named, nearOf));
  return [
    ...faults,
    ...(faults.length === 0 ? unmet(profile, named) : []),
    ...names.flatMap((name) => leaving(name, profile.gates.get(name), named)),
  ];
}

/** The maximum number of unknown names for which a similar gate is searched, since the sender may send any number. */
const MAX_SOUGHT = 20;
const LONGEST_NAME = 64;

function faultOf(
  name: string,
  spec: GateSpec | undefined,
  named: Gates,
  nearOf: (name: string) => string | null,
): readonly LintFinding[] {
  const value = named[name] === true;
  if (spec === undefined) {
    const fault = settingFault(field(name), `${GATES_OF_FILE}unrecognized feature gate: ${name}`);
    const others = PROFILES.filter(({ gates }) => gates.has(name)).map(({ version }) => version);
    const near = others.length > 0 ? null : nearOf(name);
    const has =
      others.length > 0
        ? `this version has no such gate; there is one in ${others.join(", ")}`
        : "this version has no such gate, or has it no longer";
    const advice = near === null ? `take it out: ${has}` : `was \`${near}\` meant?`;
    // a gate that is also set under its right name is not replaced
    const isThere = near === null || named[near] !== undefined;
    const fix = isThere ? without(name) : { featureGates: { [name]: null, [near]: value } };
    return [refusal("unknown-feature-gate", fault, advice, fix)];
  }
  if (!spec.locked || spec.isOn === value) return [];
  const why = `cannot set feature gate ${name} to ${value}, feature is locked to ${spec.isOn}`;
  const advice = "take it out: in this version it cannot be changed any more";
  return [refusal("locked-feature-gate", settingFault(field(name), GATES_OF_FILE + why), advice, without(name))];
}

function unmet(profile: Profile, named: Gates): readonly LintFinding[] {
  const isOn = (gate: string): boolean => isGateOn(profile, named, gate);
  return [...profile.gates].flatMap(([name, { requires }]) => {
    const off = isOn(name) ? requires.filter((gate) => !isOn(gate)) : [];
    if (off.length === 0) return [];
    const why = `${name} is enabled, but depends on features that are disabled: [${off.join(" ")}]`;
    const at = [name, ...off].find((gate) => named[gate] !== undefined) ?? name;
    const fault = settingFault(field(at), GATES_OF_FILE + why);
    const advice = `switch ${name} off as well, or ${off.join(" and ")} on`;
    const fix = Object.fromEntries([name, ...dependentGates(name, profile, isOn)].map((gate) => [gate, false]));
    return [refusal("feature-gate-dependency", fault, advice, { featureGates: fix })];
  });
}

/** The enabled gates that depend on this gate, directly or indirectly. */
function dependentGates(name: string, profile: Profile, isOn: (gate: string) => boolean): readonly string[] {
  const found = new Set([name]);
  for (const of of found)
    for (const [gate, { requires }] of profile.gates) if (requires.includes(of) && isOn(gate)) found.add(gate);
  return [...found].slice(1);
}

/** Gates that will be removed; the kubelet logs this and continues. kubelet 1.36. */
function leaving(name: string, spec: GateSpec | undefined, named: Gates): readonly LintFinding[] {
  if (spec === undefined || (spec.locked && spec.isOn !== named[name])) return [];
  if (spec.stage !== "stable" && spec.stage !== "deprecated") return [];
  const what = spec.stage === "stable" ? "GA" : "deprecated";
  const found = note({
    code: "leaving-feature-gate",
    field: field(name),
    message: `Warning: setting ${what} feature gate. It will be removed in a future release.`,
    advice: "take it out before the version that does not know it, with which the kubelet would not start",
    fix: spec.isOn === named[name] ? without(name) : null,
  });
  return [{ ...found, kubelet: true }];
}

/** Defaults that no longer apply because a related field was set. */
export function droppedDefaults(input: LintInput): readonly LintFinding[] {
  return [...evictionDefaults(input), ...enforcement(input), ...reportFrequency(input), ...replacedCpu(input)];
}

/** kubelet 1.36: loadConfigFile of cmd/kubelet/app. */
function evictionDefaults({ config }: LintInput): readonly LintFinding[] {
  const own = config.given.evictionHard;
  const { evictionHard: defaults } = config.profile.defaults;
  if (own === undefined) {
    if (!config.mergeDefaultEvictionSettings) return [];
    const message =
      "mergeDefaultEvictionSettings has nothing to merge into: without evictionHard the defaults hold as they are";
    const fix = { mergeDefaultEvictionSettings: null };
    return [
      note({
        code: "merge-without-thresholds",
        field: "mergeDefaultEvictionSettings",
        message,
        advice: "take it out",
        fix,
      }),
    ];
  }
  const lost = Object.keys(defaults).filter((signal) => config.evictionHard[signal] === undefined);
  if (lost.length === 0) return [];
  const list = lost.map((signal) => `${signal} ${defaults[signal]}`).join(", ");
  const named = Object.keys(own).sort();
  const message =
    named.length === 0
      ? `evictionHard is empty, so nothing is evicted for: ${list}`
      : `evictionHard names ${named.join(", ")}, and with that the other defaults do not hold: ${list}`;
  return [
    warning({
      code: "eviction-defaults-dropped",
      field: "evictionHard",
      message,
      advice: "set mergeDefaultEvictionSettings, or name every signal; a share of 0% says that a signal is not wanted",
      fix: { mergeDefaultEvictionSettings: true },
    }),
  ];
}

function enforcement({ config }: LintInput): readonly LintFinding[] {
  const keys = config.given.enforceNodeAllocatable;
  if (keys === undefined || keys.includes("pods") || keys.includes("none") || !config.cgroupsPerQOS) return [];
  const what = keys.length === 0 ? "is empty" : `names ${keys.join(", ")} and not pods`;
  return [
    warning({
      code: "pods-not-enforced",
      field: "enforceNodeAllocatable",
      message: `enforceNodeAllocatable ${what}: the default, pods, does not hold, so pods together may use what is reserved`,
      advice: "add pods; if that is meant, say so with none",
      fix: withPods(keys),
    }),
  ];
}

/** The words without duplicates, corrected. Null: no valid list follows from them. */
function withPods(keys: readonly string[]): unknown {
  const meant = keys.map((key) => nearName(key, ENFORCEABLE));
  if (meant.some((word) => word === null || word === "none")) return null;
  const list = [...new Set(["pods", ...meant])];
  const isTwice = list.some((word) => list.includes(`${word}-compressible`));
  return isTwice ? null : { enforceNodeAllocatable: list };
}

const FREQUENCY = "nodeStatusUpdateFrequency";
/** kubelet 1.36: SetDefaults_KubeletConfiguration. */
function reportFrequency({ given, profile: { defaults } }: LintInput): readonly LintFinding[] {
  const update = given.nanos(FREQUENCY);
  if (update <= 0 || given.nanos("nodeStatusReportFrequency") !== 0) return [];
  return [
    note({
      code: "report-frequency-dropped",
      field: "nodeStatusReportFrequency",
      message: `nodeStatusReportFrequency is ${given.text(FREQUENCY)} like ${FREQUENCY}: its default of ${defaults.nodeStatusReportFrequency} goes when that one is set`,
      advice: "set it too: a node whose status is as it was need not be written so often",
      fix: { nodeStatusReportFrequency: defaults.nodeStatusReportFrequency },
    }),
  ];
}

/** kubelet 1.36: run of cmd/kubelet/app. */
function replacedCpu({ config }: LintInput): readonly LintFinding[] {
  if (config.reservedSystemCPUs === "") return [];
  return (["kubeReserved", "systemReserved"] as const).flatMap((field) => {
    const cpu = config[field]["cpu"];
    if (cpu === undefined) return [];
    const message = `reservedSystemCPUs ${config.reservedSystemCPUs} takes the place of ${field}'s cpu ${cpu.text}, which counts for nothing`;
    const advice = "take it out, so that nobody reads it as true";
    return [
      note({
        code: "reserved-cpu-replaced",
        field: entryField(field, "cpu"),
        message,
        advice,
        fix: { [field]: { cpu: null } },
      }),
    ];
  });
}
