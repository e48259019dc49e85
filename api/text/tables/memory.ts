import type { MemoryBlock, MemoryDecision, MemoryTable } from "../../model/memory.ts";
import { humanBytes } from "../size.ts";
import { type Paint, printable } from "../style.ts";
import { bar, type Column, table } from "../table.ts";
import { caption, placementsTable, podName, type Shown, sections, verdictText } from "./shown.ts";

const BAR_WIDTH = 24;

/** The memory of each NUMA node and who holds it, and the asked pod's part. */
export function memoryTable(shown: Shown<MemoryDecision>): string {
  const { decision } = shown;
  const verdict = verdictText(shown);
  if (decision.startErrors.length > 0) return verdict;
  const isOff = decision.policy === "None";
  const head = `memoryManagerPolicy ${decision.policy}${isOff ? ": memory is taken from any NUMA node" : ""}`;
  return sections(
    `${verdict}${caption(shown, head)}`,
    nodesTable(shown),
    assignedTable(shown),
    isOff ? "" : assignmentsTable(shown),
    placementsTable(shown, decision.refusal !== null),
  );
}

function nodesTable({ decision, columns, paint, notesAt }: Shown<MemoryDecision>): string {
  const rows = decision.numaNodes.flatMap(({ id, group, assignments, memory }) =>
    Object.entries(memory)
      .filter(([, { total }]) => total > 0)
      .map(([resource, table]) => ({ id, group, assignments, resource, table })),
  );
  if (rows.length === 0) return "";
  const right = (title: string): Column => ({ title, align: "right" });
  const drawn = table(
    [
      right("NUMA"),
      { title: "RESOURCE", shrinkTo: 8 },
      right("TOTAL"),
      { title: "SYSTEM", align: "right", giveUp: 2 },
      right("HELD"),
      right("FREE"),
      { title: "GROUP", giveUp: 3 },
      { title: "", giveUp: 1 },
    ],
    rows.map(({ id, group, resource, table: t }) => ({
      cells: [
        `${id}`,
        printable(resource),
        humanBytes(t.total),
        humanBytes(t.systemReserved),
        humanBytes(t.reserved),
        humanBytes(t.free),
        group.length > 1 ? group.join("+") : "",
        barOf(t, paint),
      ],
      notes: resource === "memory" ? notesAt(`NUMA node ${id}`).map((note) => `  ${note}`) : [],
    })),
    columns,
    paint,
  );
  const legend = GLYPHS.map(([color, glyph, text]) => `${paint(color, glyph)} ${text}`).join("   ");
  // in a narrow terminal there are no bars
  return GLYPHS.some(([, glyph]) => drawn.includes(glyph)) ? `${drawn}${legend}\n` : drawn;
}
const GLYPHS = [
  ["yellow", "▒", "reserved for the system"],
  ["green", "█", "held by containers"],
  ["dim", "·", "free"],
] as const;

function barOf({ systemReserved, reserved, free }: MemoryTable, paint: Paint): string {
  const sizes = [systemReserved, reserved, free];
  const parts = GLYPHS.map(([color, glyph], i) => ({
    size: sizes[i] as number,
    draw: (cells: number) => paint(color, glyph.repeat(cells)),
  }));
  return bar(parts, BAR_WIDTH);
}

/** `512 MiB of 0`, `2 GiB of 0+1`; what an init container had goes to those after it. */
export const blockText = ({ size, numaNodes }: MemoryBlock): string =>
  `${humanBytes(size)} of ${numaNodes.join("+")}${size === 0 ? " (handed on)" : ""}`;

function assignedTable({ decision, columns, paint, notesAt }: Shown<MemoryDecision>): string {
  if (decision.assigned.length === 0) return "";
  return table(
    [{ title: "CONTAINER", shrinkTo: 10 }, { title: "RESOURCE", shrinkTo: 8 }, { title: "FROM NUMA NODES" }],
    decision.assigned.flatMap(({ container, blocks }) => {
      const notes = notesAt(container).map((note) => `  ${note}`);
      if (blocks.length === 0)
        return [{ cells: [printable(container), "", { text: "any", color: "dim" } as const], notes }];
      return blocks.map((block, i) => ({
        cells: [i === 0 ? printable(container) : "", printable(block.resource), blockText(block)],
        notes: i === blocks.length - 1 ? notes : [],
      }));
    }),
    columns,
    paint,
  );
}

function assignmentsTable({ decision, columns, paint }: Shown<MemoryDecision>): string {
  if (decision.assignments.length === 0) return paint("dim", "no container has memory of one NUMA node\n");
  return table(
    [
      { title: "POD", shrinkTo: 12 },
      { title: "CONTAINER", shrinkTo: 8 },
      { title: "RESOURCE", shrinkTo: 8 },
      { title: "SIZE", align: "right" },
      { title: "NUMA" },
    ],
    decision.assignments.flatMap(({ pod, container, blocks }) =>
      blocks.map(({ resource, size, numaNodes }) => ({
        cells: [podName(pod), printable(container), printable(resource), humanBytes(size), numaNodes.join("+")],
      })),
    ),
    columns,
    paint,
  );
}
