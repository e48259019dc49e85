import type { Section, SectionNote } from "../../service/upgrade/sections.ts";
import { printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import type { Terminal } from "../terminal.ts";

/** Draws a part of the report: its title, its rows and what is below them. */
export function sectionText({ title, columns, rows, more }: Section, { columns: width, paint }: Terminal): string {
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

/** The same for a change request. */
export function sectionMarkdown({ title, columns, rows, more }: Section): string {
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
    if (as === "kubelet") return `   - the kubelet says: ${code(text)}`;
    return `   - ${escaped(text)}`;
  });

/** Text in back-ticks stays as it is, with a fence that is longer than any in it. */
function code(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `${fence}${printable(text)}${fence}` : `${fence} ${printable(text)} ${fence}`;
}
/** Names come from callers: nothing of them is markup. */
export const escaped = (text: string): string => printable(text).replace(/[\\*_[\]<>|#]/g, "\\$&");
