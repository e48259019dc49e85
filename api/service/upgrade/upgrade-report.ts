import { mergedConfiguration } from "../../decide/lint/drop-ins.ts";
import type { LintFinding } from "../../decide/lint/finding.ts";
import { readFlags } from "../../decide/lint/flags.ts";
import { type BesideFile, lintStart, withFlags } from "../../decide/lint/start.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { MIRROR_ANNOTATION, type Pod } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { directionOf, notesBetween } from "../../profiles/between.ts";
import { effectiveDocument } from "../../profiles/effective.ts";
import type { ChosenProfile } from "../../profiles/index.ts";
import { isGateOn, type Profile } from "../../profiles/profile.ts";
import type { Subject } from "./asked.ts";
import { type ConfiguredKubelet, defaultChanges, type Members, membersOf, ownConfiguration } from "./configuration.ts";
import { gateChanges, namedGates } from "./gates.ts";
import type { NowFinding, ReportedNote, UpgradeReport } from "./report.ts";
import { snapshotDecisions } from "./snapshot-decisions.ts";
import { isRefusal, stepsOf } from "./steps.ts";

export interface UpgradeInput extends Subject, BesideFile {
  readonly from: ChosenProfile;
  readonly to: ChosenProfile;
}

/** Reports what another kubelet does to a node: what keeps it from starting, what it does otherwise, and what to do before. */
export function upgradeReport({ from: was, to: is, args, dropIns, ...subject }: UpgradeInput): UpgradeReport {
  const { configuration: given, snapshot, isTold } = subject;
  const [from, to] = [was.profile, is.profile];
  const members = membersOf(given);
  const { configuration: ofFile, assumed } = isTold
    ? ownConfiguration(members, from, to)
    : { configuration: members, assumed: [] };
  const flags = args === null ? null : readFlags(args, to);
  const started = (profile: Profile): Members => {
    // each version merges over its own defaults
    const merged = dropIns === null ? ofFile : mergedConfiguration(ofFile, dropIns, profile);
    return flags === null ? merged : withFlags(merged, flags);
  };
  const [before, configuration] = [started(from), started(to)];
  const told = {
    direction: directionOf(was.asked, is.asked),
    ...startFindings({ configuration: ofFile, args, dropIns, snapshot }, from, to),
    gates: gateChanges(configuration, from, to),
    defaults: defaultChanges([before, from], [configuration, to]),
    staticPods: from.behaviour.staticPodUid === to.behaviour.staticPodUid ? [] : renamedPods(snapshot?.pods ?? []),
    decisions: decisionsOf(snapshot, [before, from], [configuration, to]),
    // flags that are known have findings
    notes: reportedNotes(snapshot, [before, from], [configuration, to]).filter(
      ({ topic }) => args === null || topic !== "flag",
    ),
  };
  return {
    node: snapshot?.node?.metadata.name ?? null,
    from: was.note,
    to: is.note,
    outcome: outcomeOf(told, was),
    configured: given !== undefined,
    assumed,
    ...told,
    steps: stepsOf(told, configuration, to),
  };
}

/** The report with the place of each field that the configuration's own text has. `placeOf`: null where it is not known. */
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
  told: Pick<UpgradeReport, "starts" | "startsNow" | "gates" | "defaults" | "staticPods" | "decisions">,
  { note }: ChosenProfile,
): UpgradeReport["outcome"] {
  const { starts, startsNow, gates, defaults, staticPods, decisions } = told;
  if (starts.some(isRefusal)) return "refuses-start";
  const isOther =
    // a version that is not known here is another one, whatever is told of it
    !note.exact ||
    starts.length + startsNow.length > 0 ||
    gates.some(({ changes }) => changes === "value") ||
    defaults.length > 0 ||
    staticPods.length > 0 ||
    (decisions?.changed ?? []).length > 0;
  return isOther ? "changes" : "same";
}

/**
 * All that keeps the kubelet of `to` from starting, and what else only that one's lint finds; and what only the kubelet of `from`
 * does not start with or leaves out.
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

/** Checks that a kubelet made the uid of its manifest: a hash of 128 bits, where one that somebody gave has dashes. */
const isHash = (uid: string | undefined): boolean => uid !== undefined && /^[0-9a-f]{32}$/.test(uid);
const SOURCE_ANNOTATION = "kubernetes.io/config.source";
const HASH_ANNOTATION = "kubernetes.io/config.hash";

/** The static pods, or their mirrors, whose uid follows from their manifest. */
function renamedPods(pods: readonly Pod[]): readonly string[] {
  return pods.flatMap(({ metadata: { namespace, name, annotations = {}, uid } }) => {
    const source = annotations[SOURCE_ANNOTATION];
    const isStatic = annotations[MIRROR_ANNOTATION] !== undefined || source === "file" || source === "http";
    return isStatic && isHash(annotations[HASH_ANNOTATION] ?? uid) ? [`${namespace}/${name}`] : [];
  });
}

/** Null: there is nothing to decide on, or a configuration is none that a decision takes, which lint tells. */
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
    const told = begins ? note.begins : note.ends;
    if (told === undefined) return [];
    const [own, profile] = begins ? to : from;
    const gates = namedGates(own);
    const isOn = (gate: string): boolean => isGateOn(profile, gates, gate);
    const node = { configuration: effectiveDocument(profile, own), isOn, snapshot };
    if (note.concerns?.(node) === false) return [];
    const { topic, name, patch = null } = note;
    return [{ version, topic, name, ...told, patch: begins ? patch : null }];
  });
}
