import { lintConfiguration } from "../../decide/lint/lint.ts";
import { mergePatch } from "../../model/merge-patch.ts";
import { isObject } from "../../model/own.ts";
import { directionOf } from "../../profiles/between.ts";
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
  const kubelets = [from, to].flatMap(({ gates }) =>
    [...gates].flatMap(([name, spec]) => (spec.isKubelets ? name : [])),
  );
  const names = [...kubelets, ...Object.keys(named)];
  const all = [...new Set(names)].flatMap((name) => changeOf(name, { named, from, to }));
  const flips = all.filter(({ changes }) => changes === "value");
  const before = new Map(flips.map(({ name, from: state }) => [name, state?.isOn === true]));
  const told = all.map((change): GateChange => {
    const kept = change.changes === "value" ? keeping(change.name, before, configuration, to) : STAYS;
    return { ...change, ...kept };
  });
  return told.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}
/** Values first, then what the configuration names. */
const rank = ({ changes, named }: GateChange): number => (changes === "value" ? 0 : named === null ? 2 : 1);

interface GateContext {
  readonly named: Named;
  readonly from: Profile;
  readonly to: Profile;
}

function changeOf(name: string, { named, from, to }: GateContext): readonly Omit<GateChange, "keep" | "notKept">[] {
  const [before, after] = [from.gates.get(name), to.gates.get(name)];
  const isWayBack = directionOf(from.version, to.version) === "downgrade";
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
  return spec?.locked === true ? spec.isOn : isGateOn(profile, named, name);
}

/**
 * A gate that only the older version has does nothing else once it is gone; what one guards that only the newer version has is
 * not there before.
 */
const isFlip = ([older, newer]: readonly [GateSpec | undefined, GateSpec | undefined], isOn: boolean): boolean =>
  newer !== undefined && (older !== undefined || isOn);

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

type Keeping = Pick<GateChange, "keep" | "notKept">;
const notKept = (why: string): Keeping => ({ keep: null, notKept: why });
const STAYS = notKept("no patch is needed to keep it: what it guards stays as it is");

/**
 * The patch that keeps a gate as it was, with the gates that flip and hang on it, or why the kubelet of `to` takes none. `before`: what
 * was on of the gates that flip.
 */
function keeping(name: string, before: ReadonlyMap<string, boolean>, configuration: Members, to: Profile): Keeping {
  const settability = settabilityOf(to.gates.get(name));
  if (settability === "unknown") return notKept(`kubelet ${to.version} does not know it`);
  if (settability === "locked") return notKept(`it is locked in kubelet ${to.version}`);
  const names = hangingOn(name, before, to);
  const keep = { featureGates: Object.fromEntries(names.map((one) => [one, before.get(one)])) };
  const refusals = (given: unknown): readonly string[] =>
    lintConfiguration(given, undefined, to).flatMap(({ severity, message }) =>
      severity === "refuses-start" ? [message] : [],
    );
  const known = new Set(refusals(configuration));
  const refusal = refusals(mergePatch(configuration, keep)).find((message) => !known.has(message));
  return refusal === undefined ? { keep, notKept: null } : notKept(`the kubelet would not start with it: ${refusal}`);
}

/** The gate and those of `before` without which it cannot be on again, or that cannot be on without it. */
function hangingOn(name: string, before: ReadonlyMap<string, boolean>, { gates }: Profile): readonly string[] {
  const wants = (a: string, b: string): boolean => gates.get(a)?.wants.includes(b) === true;
  const found = new Set([name]);
  for (const one of found) {
    for (const other of before.keys()) if (before.get(name) ? wants(one, other) : wants(other, one)) found.add(other);
  }
  return [...found].sort();
}
