import { nearName } from "../../model/near-name.ts";
import { FEATURE_GATES, isGateOn } from "../gate-table.ts";
import { settingFault } from "../setting-fault.ts";
import { entryField, type LintFinding, note, refusal } from "./finding.ts";

type Gates = Readonly<Record<string, boolean>>;
// it is a panic: the defaults cannot be set without the gates
const PREFIX = "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: ";
const field = (gate: string): string => entryField("featureGates", gate);
const without = (gate: string): unknown => ({ featureGates: { [gate]: null } });

/** Gates that cannot be set so, and those that will go. Of several a kubelet names any. kubelet 1.36: SetDefaults_KubeletConfiguration. */
export function gateFindings(named: Gates): readonly LintFinding[] {
  const names = Object.keys(named).sort();
  const known = [...FEATURE_GATES.keys()];
  let sought = 0;
  const nearOf = (name: string): string | null =>
    name.length > LONGEST_NAME || ++sought > MOST_SOUGHT ? null : nearName(name, known);
  const faults = names.flatMap((name) => faultOf(name, named, nearOf));
  return [...faults, ...(faults.length === 0 ? unmet(named) : []), ...names.flatMap((name) => leaving(name, named))];
}

/** What was meant is looked for among all gates, so not for everything that somebody may send. */
const MOST_SOUGHT = 20;
const LONGEST_NAME = 64;

function faultOf(name: string, named: Gates, nearOf: (name: string) => string | null): readonly LintFinding[] {
  const spec = FEATURE_GATES.get(name);
  const value = named[name] === true;
  if (spec === undefined) {
    const fault = settingFault(field(name), `${PREFIX}unrecognized feature gate: ${name}`);
    const near = nearOf(name);
    const advice =
      near === null ? "take it out: this version has no such gate, or has it no longer" : `was \`${near}\` meant?`;
    // what is set under the right name is not replaced
    const isThere = near === null || named[near] !== undefined;
    const fix = isThere ? without(name) : { featureGates: { [name]: null, [near]: value } };
    return [refusal("unknown-feature-gate", fault, advice, fix)];
  }
  if (!spec.locked || spec.isOn === value) return [];
  const why = `cannot set feature gate ${name} to ${value}, feature is locked to ${spec.isOn}`;
  const advice = "take it out: in this version it cannot be changed any more";
  return [refusal("locked-feature-gate", settingFault(field(name), PREFIX + why), advice, without(name))];
}

function unmet(named: Gates): readonly LintFinding[] {
  const isOn = (gate: string): boolean => isGateOn(named, gate);
  return [...FEATURE_GATES].flatMap(([name, { wants }]) => {
    const off = isOn(name) ? wants.filter((gate) => !isOn(gate)) : [];
    if (off.length === 0) return [];
    const why = `${name} is enabled, but depends on features that are disabled: [${off.join(" ")}]`;
    const at = [name, ...off].find((gate) => named[gate] !== undefined) ?? name;
    const fault = settingFault(field(at), PREFIX + why);
    const advice = `switch ${name} off as well, or ${off.join(" and ")} on`;
    return [refusal("feature-gate-dependency", fault, advice, { featureGates: { [name]: false } })];
  });
}

/** kubelet 1.36: it logs so, and goes on. */
function leaving(name: string, named: Gates): readonly LintFinding[] {
  const spec = FEATURE_GATES.get(name);
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
