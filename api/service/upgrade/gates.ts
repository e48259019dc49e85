import { lintConfiguration } from "../../decide/lint/lint.ts";
import { mergePatch } from "../../model/merge-patch.ts";
import { isObject } from "../../model/own.ts";
import { directionOf } from "../../profiles/between.ts";
import { KUBELET_GATES } from "../../profiles/kubelet-gates.ts";
import { type GateSpec, isGateOn, type Profile } from "../../profiles/profile.ts";
import type { GateChange } from "./report.ts";

type Members = Readonly<Record<string, unknown>>;
type Named = Readonly<Record<string, boolean>>;

/** The gates that a configuration sets; what is no boolean counts as not set, since lint refuses it. */
export function namedGates({ featureGates }: Members): Named {
  if (!isObject(featureGates)) return {};
  const named = Object.entries(featureGates).filter(
    (entry): entry is [string, boolean] => typeof entry[1] === "boolean",
  );
  return Object.fromEntries(named);
}

/** The kubelet's gates that are on and were off, or off and were on, and those that can no longer be set, or can be now. */
export function gateChanges(configuration: Members, from: Profile, to: Profile): readonly GateChange[] {
  const named = namedGates(configuration);
  const names = [...KUBELET_GATES, ...Object.keys(named)];
  const all = [...new Set(names)].flatMap((name) => changeOf(name, { named, configuration, from, to }));
  return all.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}
/** Values first, then what the configuration names. */
const rank = ({ changes, named }: GateChange): number => (changes === "value" ? 0 : named === null ? 2 : 1);

interface GateContext {
  readonly named: Named;
  readonly configuration: Members;
  readonly from: Profile;
  readonly to: Profile;
}

function changeOf(name: string, { named, configuration, from, to }: GateContext): readonly GateChange[] {
  const [before, after] = [from.gates.get(name), to.gates.get(name)];
  const isWayBack = directionOf(from, to) === "downgrade";
  const [was, is] = [isOnIn(from, named, name), isOnIn(to, named, name)];
  const isValue = was !== is && isFlip(isWayBack ? [after, before] : [before, after], was || is);
  if (!isValue && !isOtherToSet(before, after, named[name] !== undefined)) return [];
  return [
    {
      name,
      from: before === undefined ? null : stateOf(before, was),
      to: after === undefined ? null : stateOf(after, is),
      changes: isValue ? "value" : "settability",
      named: named[name] ?? null,
      why: whyOf(before, after, isWayBack),
      keep: isValue ? patchToKeep({ name, isOn: was }, configuration, to) : null,
    },
  ];
}

type Settability = "unknown" | "locked" | "free";
const settabilityOf = (spec: GateSpec | undefined): Settability =>
  spec === undefined ? "unknown" : spec.locked ? "locked" : "free";

/** One that the configuration does not name is of interest where it was free, and both versions have it. */
function isOtherToSet(before: GateSpec | undefined, after: GateSpec | undefined, isNamed: boolean): boolean {
  const [was, is] = [settabilityOf(before), settabilityOf(after)];
  return was !== is && (isNamed || (was !== "unknown" && is !== "unknown"));
}

/** A locked gate is what it is: a configuration that says otherwise is refused. */
function isOnIn(profile: Profile, named: Named, name: string): boolean {
  const spec = profile.gates.get(name);
  return spec?.locked === true ? spec.isOn : spec !== undefined && isGateOn(profile, named, name);
}

/**
 * A gate that only the older version has does nothing else once it is gone; what one guards that only the newer version has is
 * not there before.
 */
const isFlip = ([older, newer]: readonly [GateSpec | undefined, GateSpec | undefined], isOn: boolean): boolean =>
  newer !== undefined && (older !== undefined || (isOn && !newer.locked));

const stateOf = ({ stage, locked }: GateSpec, isOn: boolean): NonNullable<GateChange["to"]> => ({
  isOn,
  stage,
  locked,
});

function whyOf(before: GateSpec | undefined, after: GateSpec | undefined, isWayBack: boolean): string {
  if (after === undefined) return isWayBack ? "not there yet" : "removed";
  if (before === undefined) {
    const byDefault = `${after.stage}, ${onOff(after.isOn)} by default`;
    return isWayBack ? `there again: ${byDefault}` : `new: ${byDefault}`;
  }
  const moved = before.stage === after.stage ? "" : `${before.stage} -> ${after.stage}`;
  const byDefault = before.isOn === after.isOn ? "" : `${onOff(after.isOn)} by default`;
  const locked = after.locked === before.locked ? "" : after.locked ? "locked" : "no longer locked";
  return [moved, byDefault, locked].filter((part) => part !== "").join(", ");
}
const onOff = (isOn: boolean): string => (isOn ? "on" : "off");

/** The patch that keeps a gate as it was, where a kubelet takes it: others may want the gate. */
function patchToKeep({ name, isOn }: { name: string; isOn: boolean }, configuration: Members, to: Profile): unknown {
  if (settabilityOf(to.gates.get(name)) !== "free") return null;
  const patch = { featureGates: { [name]: isOn } };
  const refusals = (given: unknown): number =>
    lintConfiguration(given, undefined, to).filter(({ severity }) => severity === "refuses-start").length;
  return refusals(mergePatch(configuration, patch)) > refusals(configuration) ? null : patch;
}
