import { mergePatch } from "../../base/merge-patch.ts";
import { byText } from "../../base/order.ts";
import { type Fields, isObject } from "../../base/own.ts";
import { mergedConfiguration } from "../../decide/lint/drop-ins.ts";
import type { LintFinding } from "../../decide/lint/finding.ts";
import { readFlags } from "../../decide/lint/flags.ts";
import { lintConfiguration } from "../../decide/lint/lint.ts";
import { type FlagsAndDropIns, lintStart, withFlags } from "../../decide/lint/start.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { MIRROR_ANNOTATION, type Pod } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { directionOf, notesBetween } from "../../profiles/between.ts";
import { effectiveDocument } from "../../profiles/effective.ts";
import type { ChosenProfile } from "../../profiles/index.ts";
import { type GateSpec, isGateOn, type Profile } from "../../profiles/profile.ts";
import { listed, many } from "../../text/sentences/words.ts";
import { differences } from "../difference.ts";
import { membersOf, ownConfiguration } from "../own-configuration.ts";
import type { Subject } from "./asked.ts";
import type { DefaultChange, GateChange, NowFinding, ReportedNote, Step, UpgradeReport } from "./report.ts";
import { snapshotDecisions } from "./snapshot-decisions.ts";

export interface UpgradeInput extends Subject, FlagsAndDropIns {
  readonly from: ChosenProfile;
  readonly to: ChosenProfile;
}

/** Reports what another kubelet version changes on a node: what keeps it from starting, what it does differently, and what to do first. */
export function upgradeReport({ from: was, to: is, args, dropIns, ...subject }: UpgradeInput): UpgradeReport {
  const { configuration: given, snapshot, isReported } = subject;
  const [from, to] = [was.profile, is.profile];
  const members = membersOf(given);
  const { configuration: ofFile, assumed } = isReported
    ? ownConfiguration(members, from, to)
    : { configuration: members, assumed: [] };
  const flags = args === null ? null : readFlags(args, to);
  const started = (profile: Profile): Fields => {
    // each version merges over its own defaults
    const merged = dropIns === null ? ofFile : mergedConfiguration(ofFile, dropIns, profile);
    return flags === null ? merged : withFlags(merged, flags);
  };
  const [before, configuration] = [started(from), started(to)];
  const parts = {
    direction: directionOf(was.asked, is.asked),
    ...startFindings({ configuration: ofFile, args, dropIns, snapshot }, from, to),
    gates: gateChanges(configuration, from, to),
    defaults: defaultChanges([before, from], [configuration, to]),
    staticPods: from.behaviour.staticPodUid === to.behaviour.staticPodUid ? [] : renamedPods(snapshot?.pods ?? []),
    decisions: decisionsOf(snapshot, [before, from], [configuration, to]),
    // known flags have findings
    notes: reportedNotes(snapshot, [before, from], [configuration, to]).filter(
      ({ topic }) => args === null || topic !== "flag",
    ),
  };
  return {
    node: snapshot?.node?.metadata.name ?? null,
    from: was.note,
    to: is.note,
    outcome: outcomeOf(parts, was),
    configured: given !== undefined,
    assumed,
    ...parts,
    steps: stepsOf(parts, configuration, to),
  };
}

/** The report with the position of each field in the configuration's own text. `placeOf`: null if unknown. */
export function placed(report: UpgradeReport, placeOf: (field: string) => string | null): UpgradeReport {
  const at = <T extends Pick<NowFinding, "where">>(one: T, field: string): T => {
    const where = placeOf(field);
    return where === null ? one : { ...one, where };
  };
  return {
    ...report,
    starts: report.starts.map((finding) => at(finding, finding.field)),
    startsNow: report.startsNow.map((finding) => at(finding, finding.field)),
    gates: report.gates.map((gate) => (gate.named === null ? gate : at(gate, `featureGates.${gate.name}`))),
  };
}

function outcomeOf(
  parts: Pick<UpgradeReport, "starts" | "startsNow" | "gates" | "defaults" | "staticPods" | "decisions">,
  { note }: ChosenProfile,
): UpgradeReport["outcome"] {
  const { starts, startsNow, gates, defaults, staticPods, decisions } = parts;
  if (starts.some(isRefusal)) return "refuses-start";
  const isOther =
    // a version that is not known here always counts as a change
    !note.exact ||
    starts.length + startsNow.length > 0 ||
    gates.some(({ changes }) => changes === "value") ||
    defaults.length > 0 ||
    staticPods.length > 0 ||
    (decisions?.changed ?? []).length > 0;
  return isOther ? "changes" : "same";
}

/**
 * Everything that keeps the kubelet of `to` from starting or that only its lint finds, and what only the kubelet of `from` refuses
 * or ignores.
 */
function startFindings(
  { configuration, args, dropIns, snapshot }: Pick<UpgradeInput, "configuration" | "args" | "dropIns" | "snapshot">,
  from: Profile,
  to: Profile,
): Pick<UpgradeReport, "starts" | "startsNow"> {
  const found = (profile: Profile): readonly LintFinding[] => {
    const flags = args === null ? null : readFlags(args, profile);
    return lintStart({ configuration, dropIns, flags }, snapshot, profile);
  };
  const key = ({ code, field, severity }: LintFinding): string => JSON.stringify([code, field, severity]);
  const [before, after] = [found(from), found(to)];
  const [known, stay] = [before, after].map((findings) => new Set(findings.map(key))) as [Set<string>, Set<string>];
  return {
    starts: after.flatMap((finding) => {
      const isNew = !known.has(key(finding));
      return isNew || isRefusal(finding) ? [{ ...finding, isNew }] : [];
    }),
    startsNow: before
      .filter((finding) => (isRefusal(finding) || finding.code === "unknown-field") && !stay.has(key(finding)))
      .map((finding) => ({ ...finding, advice: adviceNow(finding, from, to) })),
  };
}

const adviceNow = (finding: LintFinding, from: Profile, to: Profile): string =>
  isRefusal(finding)
    ? `kubelet ${from.version} does not start so, and ${to.version} does; until then: ${finding.advice}`
    : `kubelet ${from.version} leaves it out, and ${to.version} goes by it: take it out, unless that is meant`;

/** Whether a kubelet made the uid for a manifest: such a uid is a hash of 128 bits, while others have dashes. */
const isHash = (uid: string | undefined): boolean => uid !== undefined && /^[0-9a-f]{32}$/.test(uid);
const SOURCE_ANNOTATION = "kubernetes.io/config.source";
const HASH_ANNOTATION = "kubernetes.io/config.hash";

/** The static pods, or their mirrors, whose uid derives from their manifest. */
function renamedPods(pods: readonly Pod[]): readonly string[] {
  return pods.flatMap(({ metadata: { namespace, name, annotations = {}, uid } }) => {
    const source = annotations[SOURCE_ANNOTATION];
    const isStatic = annotations[MIRROR_ANNOTATION] !== undefined || source === "file" || source === "http";
    return isStatic && isHash(annotations[HASH_ANNOTATION] ?? uid) ? [`${namespace}/${name}`] : [];
  });
}

/** The decisions; null if there is no snapshot, or the configuration is invalid for decisions, which lint reports. */
function decisionsOf(
  snapshot: Snapshot | undefined,
  from: ConfiguredKubelet,
  to: ConfiguredKubelet,
): UpgradeReport["decisions"] {
  if (snapshot === undefined) return null;
  const [before, after] = [from, to].map(([kubeletConfiguration]) => {
    const decoded = decodeSnapshot({ kubeletConfiguration });
    return decoded.ok ? { ...snapshot, ...decoded.value } : null;
  });
  return before && after ? snapshotDecisions([before, from[1]], [after, to[1]]) : null;
}

function reportedNotes(
  snapshot: Snapshot | undefined,
  from: ConfiguredKubelet,
  to: ConfiguredKubelet,
): readonly ReportedNote[] {
  return notesBetween(from[1], to[1]).flatMap(({ version, note, begins }) => {
    const texts = begins ? note.begins : note.ends;
    if (texts === undefined) return [];
    const [own, profile] = begins ? to : from;
    const gates = namedGates(own);
    const isOn = (gate: string): boolean => isGateOn(profile, gates, gate);
    const node = { configuration: effectiveDocument(profile, own), isOn, snapshot };
    if (note.concerns?.(node) === false) return [];
    const { topic, name, patch = null } = note;
    return [{ version, topic, name, ...texts, patch: begins ? patch : null }];
  });
}

type ReportParts = Pick<UpgradeReport, "starts" | "startsNow" | "gates" | "notes" | "staticPods" | "decisions">;

/** The steps before the other kubelet starts: first those without which it does not start, last those that only observe it. */
function stepsOf(parts: ReportParts, configuration: unknown, to: Profile): readonly Step[] {
  const { starts, startsNow, gates, notes, staticPods, decisions } = parts;
  const topics = (...wanted: readonly ReportedNote["topic"][]) =>
    notes.filter(({ topic }) => wanted.includes(topic)).flatMap(ofNote);
  return [
    ...starts.filter(isRefusal).map(ofFinding),
    ...topics("flag"),
    ...starts.filter((finding) => !isRefusal(finding)).map(ofFinding),
    ...startsNow.map(ofFinding),
    ...topics("behaviour"),
    ...ofGates(gates, configuration, to),
    ...ofDecisions(decisions),
    ...topics("file"),
    ...ofStaticPods(staticPods),
    ...topics("event", "metric"),
  ];
}

const isRefusal = ({ severity }: Pick<NowFinding, "severity">): boolean => severity === "refuses-start";

const ofFinding = ({ field, message, advice, fix }: NowFinding): Step => ({
  what: `${field}: ${advice}`,
  why: message,
  patch: fix,
});

const ofNote = ({ name, what, before, patch }: ReportedNote): readonly Step[] =>
  before === null ? [] : [{ what: `${name}: ${before}`, why: what, patch }];

function ofGates(gates: readonly GateChange[], configuration: unknown, to: Profile): readonly Step[] {
  const flips = gates.filter(({ changes }) => changes === "value");
  if (flips.length === 0) return [];
  const kept = flips.flatMap(({ keep }) => (keep === null ? [] : [keep]));
  const all = kept.reduce<unknown>((patch, keep) => mergePatch(patch, keep), {});
  const isTaken = kept.length > 0 && isStarted(mergePatch(configuration, all), to);
  const which = listed(flips.map(({ name, to: after }) => `${name} (${after?.isOn === true ? "on" : "off"})`));
  return [
    {
      what: `check whether the gates may change${isTaken ? "; the patch keeps those that can be kept as they are" : ""}`,
      why: which,
      patch: isTaken ? all : null,
    },
  ];
}

const isStarted = (configuration: unknown, to: Profile): boolean =>
  lintConfiguration(configuration, undefined, to).every(({ severity }) => severity !== "refuses-start");

function ofDecisions(decisions: ReportParts["decisions"]): readonly Step[] {
  const changed = (decisions?.kinds ?? []).filter(({ changed }) => changed > 0);
  if (changed.length === 0) return [];
  const why = changed.map(({ kind, changed }) => `${changed} of ${kind}`);
  return [{ what: "review the decisions that change on this node", why: listed(why), patch: null }];
}

function ofStaticPods(pods: readonly string[]): readonly Step[] {
  if (pods.length === 0) return [];
  return [
    {
      what: "upgrade node by node, and wait until the static pods run again: those of a control plane include its API server and etcd",
      why: `${many(pods.length, "static pod")} of this node: the other kubelet ends and starts each under another uid, and its folder in podLogsDir is another one`,
      patch: null,
    },
  ];
}

type Named = Readonly<Record<string, boolean>>;

/** The gates that a configuration sets; a value that is no boolean counts as not set, since lint reports it. */
function namedGates({ featureGates }: Fields): Named {
  if (!isObject(featureGates)) return {};
  const named = Object.entries(featureGates).filter(
    (entry): entry is [string, boolean] => typeof entry[1] === "boolean",
  );
  return Object.fromEntries(named);
}

/** The gates that change from on to off or from off to on, those that can no longer be set, and those that can be now. */
function gateChanges(configuration: Fields, from: Profile, to: Profile): readonly GateChange[] {
  const named = namedGates(configuration);
  const kubelets = [from, to].flatMap(({ gates }) =>
    [...gates].flatMap(([name, spec]) => (spec.isKubeletGate ? name : [])),
  );
  const names = [...kubelets, ...Object.keys(named)];
  const all = [...new Set(names)].flatMap((name) => changeOf(name, { named, from, to }));
  const flips = all.filter(({ changes }) => changes === "value");
  const before = new Map(flips.map(({ name, from: state }) => [name, state?.isOn === true]));
  const described = all.map((change): GateChange => {
    const kept = change.changes === "value" ? keeping(change.name, before, configuration, to) : STAYS;
    return { ...change, ...kept };
  });
  return described.sort((a, b) => rank(a) - rank(b) || byText(a.name, b.name));
}
/** Changed values come first, then gates that the configuration names. */
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
  if (!isValue && !settabilityDiffers(before, after, named[name] !== undefined)) return [];
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

/**
 * Whether a gate's settability differs; a gate that the configuration does not name counts only if both versions have
 * it.
 */
function settabilityDiffers(before: GateSpec | undefined, after: GateSpec | undefined, isNamed: boolean): boolean {
  const [was, is] = [settabilityOf(before), settabilityOf(after)];
  return was !== is && (isNamed || (was !== "unknown" && is !== "unknown"));
}

/** Whether a gate is on; a locked gate cannot be changed. */
function isOnIn(profile: Profile, named: Named, name: string): boolean {
  const spec = profile.gates.get(name);
  return spec?.locked === true ? spec.isOn : isGateOn(profile, named, name);
}

/**
 * Whether a gate's change has an effect: a gate that only the old version has changes nothing when it is removed, and
 * what a new gate guards did not exist before.
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

type KeepGate = Pick<GateChange, "keep" | "notKept">;
const notKept = (why: string): KeepGate => ({ keep: null, notKept: why });
const STAYS = notKept("no patch is needed to keep it: what it guards stays as it is");

/**
 * The patch that keeps a gate as it was, together with dependent gates that flip, or why the kubelet of `to` does not accept one.
 * `before`: the old values of the gates that flip.
 */
function keeping(name: string, before: ReadonlyMap<string, boolean>, configuration: Fields, to: Profile): KeepGate {
  const settability = settabilityOf(to.gates.get(name));
  if (settability === "unknown") return notKept(`kubelet ${to.version} does not know it`);
  if (settability === "locked") return notKept(`it is locked in kubelet ${to.version}`);
  const names = relatedGates(name, before, to);
  const keep = { featureGates: Object.fromEntries(names.map((one) => [one, before.get(one)])) };
  const refusals = (given: unknown): readonly string[] =>
    lintConfiguration(given, undefined, to).flatMap(({ severity, message }) =>
      severity === "refuses-start" ? [message] : [],
    );
  const known = new Set(refusals(configuration));
  const refusal = refusals(mergePatch(configuration, keep)).find((message) => !known.has(message));
  return refusal === undefined ? { keep, notKept: null } : notKept(`the kubelet would not start with it: ${refusal}`);
}

/** The gate and those gates in `before` that it requires, or that require it. */
function relatedGates(name: string, before: ReadonlyMap<string, boolean>, { gates }: Profile): readonly string[] {
  const requires = (a: string, b: string): boolean => gates.get(a)?.requires.includes(b) === true;
  const found = new Set([name]);
  for (const one of found) {
    for (const other of before.keys())
      if (before.get(name) ? requires(one, other) : requires(other, one)) found.add(other);
  }
  return [...found].sort();
}

/** The configuration of a kubelet after it has read everything it is started with, and its version. */
type ConfiguredKubelet = readonly [Fields, Profile];

/** The fields that the configuration leaves out and for which the versions have different defaults. */
const defaultChanges = (from: ConfiguredKubelet, to: ConfiguredKubelet): readonly DefaultChange[] => {
  const [before, after] = [from, to].map(([configuration, profile]) => effectiveDocument(profile, configuration));
  return differences(before, after).map(({ path, recorded, replayed }) => ({
    field: path,
    ...(recorded === undefined ? {} : { from: recorded }),
    ...(replayed === undefined ? {} : { to: replayed }),
  }));
};
