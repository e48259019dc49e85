import type { Fields } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import type { LintFinding } from "../../decide/lint/finding.ts";
import { adviceFor } from "../../documents/inputs/parts.ts";
import type { Decided, DecisionOf, Explain, Kind, Refusal } from "../../model/decision.ts";
import { verdictLabel } from "../../model/kinds.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Profile } from "../../profiles/profile.ts";
import { type Difference, decisionDifferences, differences, MAX_DIFFERENCES } from "../../service/difference.ts";
import { membersOf, ownConfiguration } from "../../service/own-configuration.ts";
import { changed, profileOfChange } from "../../service/replay/parsed.ts";
import { newReasons } from "../../service/upgrade/snapshot-decisions.ts";
import { newFindings, sidesOf } from "../../service/what-if.ts";
import { differenceTexts, fieldTexts, placeText } from "../../text/difference.ts";
import { many } from "../../text/sentences/words.ts";
import { assumedLine, type Color, printable } from "../../text/style.ts";
import { type Row, table } from "../../text/table.ts";
import { reasonText } from "../../text/tables/index.ts";
import { outcome, sentenceList } from "../../text/tables/shown.ts";
import type { Question } from "../inputs/question.ts";
import { EXIT, type Fault, fault, isGood, type Terminal } from "../terminal.ts";

type Answer = Result<Decided<DecisionOf[Kind]>, Refusal>;

/** The question that is decided under both configurations. */
export interface Compared extends Pick<Question, "ask" | "facts"> {
  readonly snapshot: Snapshot;
  /** The configuration as given, including fields that decisions do not read. */
  readonly configuration: unknown;
  /** The change to it, a merge patch. */
  readonly patch: Fields;
  readonly explain: Explain;
  /** The profile of the node's current kubelet. */
  readonly profile: Profile;
  /** The kubelet version that replaces it; undefined for no change. */
  readonly kubeletVersion: string | undefined;
}
/** Both answers, and their differences. */
interface Comparison {
  readonly snapshot: Snapshot;
  readonly patch: Fields;
  /** The profiles of both sides. */
  readonly profiles: readonly [before: Profile, after: Profile];
  /** Fields that have a default of the current kubelet, and count as left out for another one. */
  readonly leftOut: readonly string[];
  /** The changed fields of the configuration. */
  readonly changes: readonly Difference[];
  readonly before: Answer;
  readonly after: Answer;
  /** The differences; empty if one side is refused. */
  readonly differences: readonly Difference[];
  /** Lint findings of the new configuration that the old one does not have. */
  readonly findings: readonly LintFinding[];
}

/** Decides with and without a change to the configuration. Errors: faults of the new configuration. */
export function comparison(
  kind: Kind,
  { snapshot, configuration, patch, ask, facts, explain, profile, kubeletVersion }: Compared,
): Result<Comparison, Fault> {
  const change = { kubeletConfigurationPatch: patch, kubeletVersion };
  const then = profileOfChange(change, profile);
  const sides = sidesOf(snapshot, change, profile);
  if (!sides.ok)
    return fault(EXIT.badInput, ...sides.error.map(({ path, message }) => `with the change: ${path}: ${message}`));
  const [before, after] = [sides.value.before, sides.value.after].map((side) =>
    decideKind(kind, { snapshot: side, facts, ask, explain }),
  ) as [Answer, Answer];
  // what was assumed or set by another option counts as given
  const was = {
    ...membersOf(configuration),
    ...(JSON.parse(JSON.stringify(snapshot.kubeletConfiguration ?? {})) as Fields),
  };
  const is = changed({ kubeletConfiguration: was }, change, profile).kubeletConfiguration;
  return ok({
    snapshot,
    patch,
    profiles: [profile, then],
    leftOut: kubeletVersion === undefined ? [] : ownConfiguration(was, profile, then).assumed,
    changes: differences(was, is),
    before,
    after,
    differences: before.ok && after.ok ? decisionDifferences(before.value, after.value) : [],
    findings: newFindings(
      { configuration: was, snapshot, profile },
      { configuration: is, snapshot: sides.value.after, profile: then },
    ),
  });
}

const isSame = ({ before, after, differences: all }: Comparison): boolean =>
  before.ok && after.ok ? all.length === 0 : !before.ok && !after.ok && before.error.message === after.error.message;

/** The comparison as data: both answers in full, and their differences. */
export function comparisonData(compared: Comparison): object {
  const { patch, profiles, before, after, differences: all, findings } = compared;
  const [from, to] = profiles;
  const side = (answer: Answer, { policyVersion }: Profile): object => ({
    policyVersion,
    ...(answer.ok ? answer.value : { refusal: answer.error }),
  });
  return {
    change: patch,
    kubelet: { from: from.version, to: to.version },
    same: isSame(compared),
    verdict: { from: verdictOf(before), to: verdictOf(after) },
    differences: all.slice(0, MAX_DIFFERENCES).map(fromTo),
    truncated: all.length > MAX_DIFFERENCES,
    findings,
    before: side(before, from),
    after: side(after, to),
  };
}
/** The verdict; null if the question is refused. */
const verdictOf = (answer: Answer): string | null => (answer.ok ? answer.value.verdict : null);
const fromTo = ({ path, recorded, replayed }: Difference): object => ({
  path,
  ...(recorded === undefined ? {} : { from: recorded }),
  ...(replayed === undefined ? {} : { to: replayed }),
});

/** What both answers are about. */
interface Head {
  readonly kind: Kind;
  readonly node: string;
  readonly assumed: string | undefined;
  readonly explain: Explain;
}

/** The most places listed. */
const MAX_ROWS = 40;

/** The comparison as text: what was changed, the verdicts, and each place where the answers differ. */
export function comparisonText(
  { kind, node, assumed, explain }: Head,
  compared: Comparison,
  { paint, columns }: Terminal,
): string {
  const { changes, profiles, before, after, differences: all, findings } = compared;
  const policies = new Set(profiles.map(({ policyVersion }) => policyVersion));
  const title = `${paint("bold", printable(node))} · ${kind} · ${[...policies].join(" -> ")}\n`;
  const assumption = assumedLine(assumed, paint);
  const [from, to] = profiles;
  const changed = [
    ...(from === to ? [] : [`kubelet: ${from.version} -> ${to.version}`]),
    ...changes.map((one) => `${one.path}: ${fieldTexts(one, explain === "full").join(" -> ")}`),
  ];
  const none = "nothing: the configuration has these values already";
  const change = outcome(paint, "cyan", "WHAT IF", printable(changed.join(", ") || none));
  const verdicts: Row = { cells: ["verdict", verdictCell(kind, before), verdictCell(kind, after)] };
  const rows = all.slice(0, MAX_ROWS).map((one) => rowOf(one, explain === "full"));
  const isOther = verdictOf(before) !== verdictOf(after);
  const drawn =
    isOther || rows.length > 0
      ? table(
          [
            { title: "FIELD", shrinkTo: 20 },
            { title: "NOW", shrinkTo: 16 },
            { title: "THEN", shrinkTo: 16 },
          ],
          [...(isOther ? [verdicts] : []), ...rows],
          columns,
          paint,
        )
      : "";
  const more =
    all.length > MAX_ROWS
      ? paint("dim", `and ${many(all.length - MAX_ROWS, "more place")}: -o json has them all\n`)
      : "";
  const end = isSame(compared)
    ? outcome(paint, "green", "SAME", `${wordOf(kind, after)}: no decision would change`)
    : outcome(paint, "yellow", "DIFFERS", differsText(kind, compared));
  return [
    title,
    assumption,
    change,
    end,
    drawn === "" ? "" : `\n${drawn}`,
    more,
    whyText(compared, explain, paint),
    findingsText(findings, paint),
    needsText(compared, paint),
  ].join("");
}

/** The verdict's word in lists. */
const wordOf = (kind: Kind, answer: Answer): string =>
  answer.ok ? verdictLabel({ kind, verdict: answer.value.verdict }) : "refused";

function differsText(kind: Kind, { before, after, differences: all }: Comparison): string {
  const [from, to] = [wordOf(kind, before), wordOf(kind, after)];
  const count = all.length > MAX_DIFFERENCES ? `more than ${MAX_DIFFERENCES} places` : many(all.length, "place");
  const where = all.length === 0 ? "" : `, and ${count} of the answer`;
  return from === to ? `${to} as now, but different in ${count} of the answer` : `${from} -> ${to}${where}`;
}

function verdictCell(kind: Kind, answer: Answer): { readonly text: string; readonly color: Color } {
  if (!answer.ok) return { text: `refused (${answer.error.code})`, color: "red" };
  return { text: wordOf(kind, answer), color: isGood(answer.value.verdict) ? "green" : "yellow" };
}

const rowOf = (difference: Difference, isExact: boolean): Row => ({
  cells: [placeText(difference), ...differenceTexts(difference, isExact)],
});

/** The new reasons, if reasons are requested. */
function whyText({ before, after }: Comparison, explain: Explain, paint: Terminal["paint"]): string {
  if (explain === "off" || !after.ok) return "";
  const reasons = newReasons(before.ok ? before.value.reasons : [], after.value.reasons);
  const lines = reasons.flatMap(({ at, because }) =>
    because.map((reason) => printable(`${at}: ${reasonText(reason, explain === "full", at)}`)),
  );
  return lines.length === 0 ? "" : `\n${sentenceList(paint, "WHY", lines)}`;
}

const TONE: Readonly<Record<LintFinding["severity"], Color>> = {
  "refuses-start": "red",
  error: "red",
  warning: "yellow",
  note: "cyan",
};
const findingsText = (findings: readonly LintFinding[], paint: Terminal["paint"]): string =>
  findings.length === 0
    ? ""
    : `\n${sentenceList(
        paint,
        "WHAT `nodewise lint` FINDS IN THE CHANGE",
        findings.map(
          ({ severity, field, message, advice }) =>
            `${paint(TONE[severity], severity)} ${printable(`${field}: ${message}; ${advice}`)}`,
        ),
      )}`;

const needsText = ({ after, snapshot }: Comparison, paint: Terminal["paint"]): string =>
  !after.ok
    ? ""
    : after.value.needs
        .map((path) => paint("yellow", `not known: ${printable(path)} (${adviceFor(path, snapshot)})\n`))
        .join("");
