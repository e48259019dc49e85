import { differenceLine } from "../../text/difference.ts";
import { many } from "../../text/sentences/words.ts";
import type { Color } from "../../text/style.ts";
import type { Column } from "../../text/table.ts";
import { reasonText } from "../../text/tables/index.ts";
import { podsText } from "../replay/tally.ts";
import type { ChangedAnswer, GateChange, NowFinding, UpgradeReport } from "./report.ts";

/** A line below a row: a text, or a patch as JSON. */
export interface SectionNote {
  /** How a cell's text is meant; `kubelet`: the kubelet's own message. */
  readonly as: "kubelet" | "text" | "do" | "patch";
  readonly text: string;
}
export interface SectionRow {
  readonly cells: readonly string[];
  readonly tone?: Color;
  readonly notes: readonly SectionNote[];
}
/** A part of the report, to be shown in a terminal, a change request or a page. */
export interface Section {
  readonly id: string;
  readonly title: string;
  /** The columns; empty if the rows are the steps of a list. */
  readonly columns: readonly Column[];
  readonly rows: readonly SectionRow[];
  /** A line about entries that are counted and not listed. */
  readonly more?: string;
}

const note = (as: SectionNote["as"], text: string): SectionNote => ({ as, text });
/** A JSON value on one line; undefined if there is none. */
const valueText = (value: unknown): string => (value === undefined ? "(none)" : JSON.stringify(value));
const patchNote = (patch: unknown): readonly SectionNote[] =>
  patch === null ? [] : [note("patch", JSON.stringify(patch))];

/** `kubelet 1.36 -> 1.37: it would not start with this configuration`. */
export function headline({ node, from, to, outcome, direction, configured }: UpgradeReport): string {
  const ends = {
    "refuses-start": "it would not start with this configuration",
    changes: "it would start; some things change",
    same: "nothing changes",
  }[outcome];
  const whose = node === null ? "" : `${node}: `;
  const back = direction === "downgrade" ? " (a downgrade)" : "";
  const unknown = configured ? "" : "; no configuration is known, so the kubelet's defaults are assumed";
  const nearest = from.exact ? "" : " (the nearest known)";
  return `${whose}kubelet ${from.version}${nearest} -> ${to.version}${back}: ${ends}${unknown}`;
}

/** Notes on how the report was made. */
export function caveats({ from, assumed }: UpgradeReport): readonly string[] {
  const between = from.exact ? "" : "; what changed between the two is not listed";
  const whys = from.why === null ? [] : [`${from.why}${between}`];
  if (assumed.length === 0) return whys;
  return [...whys, leftOutText(assumed, from.version)];
}
/** `fields`: what `ownConfiguration` removed. */
export const leftOutText = (fields: readonly string[], version: string): string =>
  `${fields.join(", ")}: the configuration names every field, as /configz does, and has the default of ${version} here; counted as left out of the kubelet's own file: give that where it sets it`;

/** All non-empty parts in reading order. */
export const sectionsOf = (report: UpgradeReport): readonly Section[] =>
  [starts, startsNow, gates, defaults, staticPods, decisions, changedAnswers, notes, steps]
    .map((sectionOf) => sectionOf(report))
    .filter(({ rows, more }) => rows.length > 0 || more !== undefined);

const steps = ({ steps: all }: UpgradeReport): Section => ({
  id: "steps",
  title: "What to do before, in order",
  columns: [],
  rows: all.map(({ what, why, patch }) => ({ cells: [what], notes: [note("text", why), ...patchNote(patch)] })),
});

const toneOf = ({ severity }: NowFinding): Color =>
  severity === "note" ? "cyan" : severity === "warning" ? "yellow" : "red";

const starts = ({ starts: all }: UpgradeReport): Section => ({
  id: "starts",
  title: "Findings in the configuration",
  columns: [
    { title: "SEVERITY" },
    { title: "FIELD" },
    { title: "WHERE", giveUp: 2, cut: "start" },
    { title: "NEW" },
    { title: "CODE", giveUp: 1 },
  ],
  rows: all.map((finding) => findingRow(finding, finding.isNew ? "new" : "as before")),
});

const startsNow = ({ startsNow: all, from }: UpgradeReport): Section => ({
  id: "starts-now",
  title: `What kubelet ${from.version} alone does not take`,
  columns: [
    { title: "SEVERITY" },
    { title: "FIELD" },
    { title: "WHERE", giveUp: 2, cut: "start" },
    { title: "CODE", giveUp: 1 },
  ],
  rows: all.map((finding) => findingRow(finding)),
});

/** A row for a finding. `middle`: the cells before the last. */
function findingRow(finding: NowFinding, ...middle: readonly string[]): SectionRow {
  const { severity, field, where = "", code, kubelet, message, advice, fix } = finding;
  const notes = [note(kubelet ? "kubelet" : "text", message), note("do", advice), ...patchNote(fix)];
  return { cells: [severity, field, where, ...middle, code], tone: toneOf(finding), notes };
}

function gates({ gates: all }: UpgradeReport): Section {
  const listed = all.filter(({ changes, named }) => changes === "value" || named !== null);
  const others = all.filter((gate) => !listed.includes(gate)).map(({ name }) => name);
  const section: Section = {
    id: "gates",
    title: "Feature gates",
    columns: [{ title: "GATE" }, { title: "NOW" }, { title: "THEN" }, { title: "SET", giveUp: 1 }, { title: "WHY" }],
    rows: listed.map((gate) => ({
      cells: [gate.name, stateText(gate.from), stateText(gate.to), setText(gate), gate.why],
      ...(gate.changes === "value" ? { tone: "yellow" } : {}),
      notes: keepNotes(gate),
    })),
  };
  if (others.length === 0) return section;
  const which = `${many(others.length, "gate")} that the configuration does not name can no longer be set, or can be now: ${others.join(", ")}`;
  return { ...section, more: which };
}
const stateText = (state: GateChange["from"]): string =>
  state === null ? "unknown" : `${state.isOn ? "on" : "off"}${state.locked ? ", locked" : ""}`;
const setText = ({ named, where }: GateChange): string =>
  named === null ? "" : `${named}${where === undefined ? "" : ` (${where})`}`;
/** Why no patch keeps the gate as it is. The patches that do are combined in the steps. */
const keepNotes = ({ changes, notKept }: GateChange): readonly SectionNote[] =>
  notKept === null ? [] : [note("text", changes === "value" ? `cannot be kept: ${notKept}` : notKept)];

const defaults = ({ defaults: all }: UpgradeReport): Section => ({
  id: "defaults",
  title: "Defaults of fields that the configuration leaves out",
  columns: [{ title: "FIELD" }, { title: "NOW" }, { title: "THEN" }],
  rows: all.map(({ field, from, to }) => ({ cells: [field, valueText(from), valueText(to)], notes: [] })),
});

const staticPods = ({ staticPods: all }: UpgradeReport): Section => ({
  id: "static-pods",
  title: "Static pods that restart",
  columns: [{ title: "POD" }],
  rows: all.map((pod) => ({ cells: [pod], notes: [] })),
});

/** The end of a line about answers that differ without an effect. */
export const KERNEL_DEFAULTS = "would differ only in writing what the kernel has by itself";

function decisions({ decisions: all }: UpgradeReport): Section {
  const kinds = all?.kinds ?? [];
  const undecided = kinds.filter(({ undecided }) => undecided !== null).map(({ kind }) => kind);
  const silent = kinds.filter(({ kernelDefaults }) => kernelDefaults > 0);
  const more = [
    ...(silent.length === 0
      ? []
      : [
          `these ${KERNEL_DEFAULTS}: ${silent.map(({ kind, kernelDefaults }) => `${kernelDefaults} of ${kind}`).join(", ")}`,
        ]),
    ...(undecided.length === 0 ? [] : [`the snapshot lacks input for: ${undecided.join(", ")}`]),
  ];
  const section: Section = {
    id: "decisions",
    title: "Decisions on the snapshot",
    columns: [{ title: "KIND" }, { title: "ASKED", align: "right" }, { title: "CHANGED", align: "right" }],
    rows: kinds
      .filter(({ undecided }) => undecided === null)
      .map(({ kind, asked, changed }) => ({
        cells: [kind, String(asked), String(changed)],
        ...(changed > 0 ? { tone: "yellow" } : {}),
        notes: [],
      })),
  };
  return more.length === 0 ? section : { ...section, more: more.join("; ") };
}

const changedAnswers = ({ decisions: all }: UpgradeReport): Section => ({
  id: "changed",
  title: "Decisions that change",
  columns: [{ title: "KIND" }, { title: "OF" }, { title: "NOW" }, { title: "THEN" }],
  rows: (all?.changed ?? []).map((one) => ({
    cells: [one.kind, podsText(one) || "the node", one.from ?? "(refused)", one.to ?? "(refused)"],
    ...(one.from === one.to ? {} : { tone: "yellow" }),
    notes: answerNotes(one),
  })),
});

/** Why an answer changed: where it differs, and its new reasons. */
export function answerNotes({
  problem,
  differences,
  differenceCount,
  reasons,
}: Pick<ChangedAnswer, "differences" | "differenceCount" | "reasons"> & {
  readonly problem: string | null;
}): readonly SectionNote[] {
  const more = differenceCount - differences.length;
  return [
    ...(problem === null ? [] : [note("text", problem)]),
    ...differences.map((one) => note("text", differenceLine(one))),
    ...(more > 0 ? [note("text", `and ${many(more, "more difference")}`)] : []),
    ...reasons.flatMap(({ at, because }) => because.map((one) => note("do", `${at}: ${reasonText(one, false, at)}`))),
  ];
}

const notes = ({ notes: all }: UpgradeReport): Section => ({
  id: "notes",
  title: "Flags, files, events and the like",
  columns: [{ title: "SINCE" }, { title: "TOPIC" }, { title: "WHAT" }],
  rows: all.map(({ version, topic, name, what, before, patch }) => ({
    cells: [version, topic, name],
    notes: [note("text", what), ...(before === null ? [] : [note("do", before)]), ...patchNote(patch)],
  })),
});
