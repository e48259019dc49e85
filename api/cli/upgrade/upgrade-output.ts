import type { ChosenProfile } from "../../profiles/index.ts";
import { passedOf } from "../../service/replay/tally.ts";
import { type HistorySum, historyLine, historySections } from "../../service/upgrade/history-sections.ts";
import type { UpgradeReport } from "../../service/upgrade/report.ts";
import { caveats, headline, type Section, type SectionNote, sectionsOf } from "../../service/upgrade/sections.ts";
import { many } from "../../text/sentences/words.ts";
import { printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { EXIT, type ExitCode, printData, printText, type Terminal } from "../terminal.ts";

export type UpgradeForm = "table" | "json" | "yaml" | "markdown";

export interface UpgradeReports {
  readonly to: ChosenProfile;
  readonly reports: readonly UpgradeReport[];
  /** Nodes without a report. */
  readonly unreported: readonly { readonly node: string; readonly why: string }[];
  /** Null if it was not requested. */
  readonly history:
    | (HistorySum & {
        readonly until: string | null;
        readonly reachedAt: string | null;
        readonly nextPageToken: string | null;
      })
    | null;
  /** True: this run continued an earlier one and may have no decisions. */
  readonly isRest?: boolean;
}

/** Prints the report, and returns the exit code. */
export function printUpgrade(found: UpgradeReports, form: UpgradeForm, terminal: Terminal): ExitCode {
  const { reports, unreported, history } = found;
  if (form === "json" || form === "yaml") {
    printData(terminal, { to: found.to.note, reports, unreported, history }, form);
  } else if (form === "markdown") terminal.write(markdownOf(found));
  else printText(terminal, textOf(found, terminal));
  if (reports.length + unreported.length === 0) terminal.warn("no such nodes");
  return exitOf(found);
}

function exitOf(found: UpgradeReports): ExitCode {
  const { reports, history } = found;
  if (reports.some(({ outcome }) => outcome === "refuses-start")) return EXIT.refusesStart;
  const { differs = 0, refused = 0, unreadable = 0 } = history?.counts ?? {};
  if (unreadable > 0) return EXIT.failed;
  if (reports.some(({ outcome }) => outcome === "changes") || differs + refused > 0) return EXIT.negative;
  return isAllKnown(found) ? EXIT.ok : EXIT.cannotRun;
}

/** Whether there is a result, and nothing is missing from it. */
function isAllKnown({ reports, unreported, history, isRest = false }: UpgradeReports): boolean {
  if (unreported.length > 0 || reports.length === 0) return false;
  return history === null || (history.counts.gone === 0 && (isRest || passedOf(history.counts) > 0));
}

/** Reports that differ only in what is on their nodes are printed once. */
interface Group {
  readonly first: UpgradeReport;
  readonly all: readonly UpgradeReport[];
}
function groupsOf(reports: readonly UpgradeReport[]): readonly Group[] {
  const groups = new Map<string, UpgradeReport[]>();
  for (const report of reports) {
    const { from, to, starts, startsNow, gates, defaults, notes, assumed } = report;
    const key = JSON.stringify([from, to, starts, startsNow, gates, defaults, notes, assumed]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [report]);
    else known.push(report);
  }
  return [...groups.values()].map((all) => ({ first: all[0] as UpgradeReport, all }));
}

/** A heading with its lines and sections. */
interface Part {
  readonly title: string;
  readonly lines: readonly string[];
  readonly sections: readonly Section[];
}

const NODES = 20;

function partsOf({ to, reports, unreported, history }: UpgradeReports): readonly Part[] {
  const groups = groupsOf(reports);
  const parts: Part[] = groups.map(({ first, all }) => ({
    title: headline(first),
    lines: [...caveats(first), ...likeIt(all)],
    sections: [...sectionsOf(first), ...all.slice(1).flatMap(ofNode)],
  }));
  const lines = unreported.map(({ node, why }) => `${node}: ${why}`);
  if (lines.length > 0) parts.push({ title: "Nodes that could not be checked", lines, sections: [] });
  if (history === null) return parts;
  const looked = history.until === null ? [] : [`until ${history.until}`];
  const rule = "compared with what was recorded, each with its own recorded configuration";
  const stopped = history.nextPageToken === null ? [] : [`not all: up to ${history.reachedAt}`];
  parts.push({
    title: `History: ${historyLine(history, to.note.version)}`,
    lines: [[...looked, rule, ...stopped].join("; ")],
    sections: historySections(history),
  });
  return parts;
}

function likeIt(all: readonly UpgradeReport[]): readonly string[] {
  const others = all.slice(1).map(({ node }) => node ?? "");
  if (others.length === 0) return [];
  const more = others.length - NODES;
  const names = `${others.slice(0, NODES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return [`the same for ${many(others.length, "other node")}, apart from their pods: ${names}`];
}

/** The sections of a node that is printed together with another one. */
const ofNode = (report: UpgradeReport): readonly Section[] =>
  sectionsOf(report)
    .filter(({ id }) => id === "static-pods" || id === "changed")
    .map((section) => ({ ...section, title: `${report.node}: ${section.title}` }));

function textOf(found: UpgradeReports, terminal: Terminal): string {
  const { paint } = terminal;
  const parts = partsOf(found).map(({ title, lines, sections }) => {
    const head = [paint("bold", title), ...lines].join("\n");
    return [`${head}\n`, ...sections.map((section) => sectionText(section, terminal))].join("\n");
  });
  return parts.join("\n");
}

function markdownOf(found: UpgradeReports): string {
  const parts = partsOf(found).map(({ title, lines, sections }) => {
    const head = [`# ${escaped(title)}`, ...lines.map(escaped)].join("\n\n");
    return [`${head}\n`, ...sections.map(sectionMarkdown)].join("\n");
  });
  return parts.join("\n");
}

/** A section of the report as text: its title, its rows and what is below them. */
function sectionText({ title, columns, rows, more }: Section, { columns: width, paint }: Terminal): string {
  const noteText = ({ as, text }: SectionNote): string => {
    const lead = { kubelet: "kubelet: ", patch: "patch: ", do: "-> ", text: "" }[as];
    return `  ${paint("dim", lead)}${printable(text)}`;
  };
  const drawn = rows.map(({ cells, tone, notes }) => ({
    cells: cells.map((cell, i) => ({
      text: printable(cell),
      ...(i === 0 && tone !== undefined ? { color: tone } : {}),
    })),
    notes: notes.map(noteText),
  }));
  const steps = rows.map(({ cells, notes }, i) =>
    [`${i + 1}. ${printable(cells.join(" "))}`, ...notes.map((one) => ` ${noteText(one)}`)].join("\n"),
  );
  const body =
    columns.length === 0 ? `${steps.join("\n")}\n` : rows.length === 0 ? "" : table(columns, drawn, width, paint);
  return `${paint("bold", title)}\n${body}${more === undefined ? "" : `${printable(more)}\n`}`;
}

/** A section as Markdown, for a change request. */
function sectionMarkdown({ title, columns, rows, more }: Section): string {
  const parts = [`## ${title}`];
  if (columns.length === 0)
    parts.push(
      rows.map(({ cells, notes }) => [`1. ${escaped(cells.join(" "))}`, ...listed(notes)].join("\n")).join("\n"),
    );
  else if (rows.length > 0) {
    const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
    const head = [
      line(columns.map((c) => c.title.toLowerCase())),
      line(columns.map(({ align }) => (align === "right" ? "--:" : "---"))),
    ];
    parts.push([...head, ...rows.map(({ cells }) => line(cells.map(escaped)))].join("\n"));
    const noted = rows.filter(({ notes }) => notes.length > 0);
    if (noted.length > 0) {
      parts.push(
        noted.map(({ cells, notes }) => [`- **${escaped(namesIn(cells))}**`, ...listed(notes)].join("\n")).join("\n"),
      );
    }
  }
  if (more !== undefined) parts.push(escaped(more));
  return `${parts.join("\n\n")}\n`;
}

const namesIn = (cells: readonly string[]): string =>
  cells
    .slice(0, 3)
    .filter((cell) => cell !== "")
    .join(" ");

const listed = (notes: readonly SectionNote[]): readonly string[] =>
  notes.map(({ as, text }) => {
    if (as === "patch") return `   - patch: ${code(text)}`;
    if (as === "kubelet") return `   - kubelet's message: ${code(text)}`;
    return `   - ${escaped(text)}`;
  });

/** Text in backticks, with a fence longer than any in it. */
function code(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `${fence}${printable(text)}${fence}` : `${fence} ${printable(text)} ${fence}`;
}
/** Names come from callers, so markup in them is escaped. */
const escaped = (text: string): string => printable(text).replace(/[\\*_[\]<>|#]/g, "\\$&");
