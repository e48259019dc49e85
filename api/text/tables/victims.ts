import type { Shortage, Victim } from "../../model/preemption.ts";
import { amountsText, amountText } from "../size.ts";
import { type Paint, printable } from "../style.ts";
import { bar, type Column, type Glyph, legendText, table } from "../table.ts";
import type { Shown } from "./shown.ts";
import { podName } from "./verdict.ts";

const BAR_WIDTH = 24;
const GLYPHS = [
  ["cyan", "█", "used"],
  ["green", "▓", "asked for, and there"],
  ["red", "×", "asked for, and short"],
  ["dim", "·", "left then"],
] as const satisfies readonly Glyph[];

/** Shows what the pod asks for beside what is used of each resource, and how much of it is short. */
export function resourcesTable(
  resources: readonly Shortage[],
  { columns, paint, notesAt }: Omit<Shown<unknown>, "decision">,
): string {
  if (resources.length === 0) return "";
  const right = (title: string): Column => ({ title, align: "right" });
  const drawn = table(
    [
      { title: "RESOURCE", shrinkTo: 12 },
      right("REQUESTED"),
      { title: "USED", align: "right", giveUp: 2 },
      { title: "CAPACITY", align: "right", giveUp: 3 },
      right("LEFT"),
      right("SHORT BY"),
      { title: "", giveUp: 1 },
    ],
    resources.map((r) => {
      const { resource, requested, used, capacity } = r;
      const short = shortOf(r);
      const amount = (units: number): string => amountText(resource, units);
      return {
        cells: [
          printable(resource),
          amount(requested),
          amount(used),
          amount(capacity),
          amount(capacity - used),
          { text: short > 0 ? amount(short) : "", color: "red" },
          barOf(r, paint),
        ],
        notes: notesAt(resource).map((note) => `  ${note}`),
      };
    }),
    columns,
    paint,
  );
  return `${drawn}${legendText(GLYPHS, drawn, paint)}`;
}

const shortOf = ({ requested, used, capacity }: Shortage): number => Math.max(0, requested - (capacity - used));

/** As long as what is there, or what would have to be there. */
function barOf(r: Shortage, paint: Paint): string {
  const short = Math.min(shortOf(r), r.requested);
  const given = r.requested - short;
  const sizes = [r.used, given, short, r.capacity - r.used - given];
  const parts = GLYPHS.map(([color, glyph], i) => ({
    size: sizes[i] as number,
    draw: (cells: number) => paint(color, glyph.repeat(cells)),
  }));
  return bar(parts, BAR_WIDTH);
}

/** Shows the pods that are ended, in kill order, with the reason of each choice. */
export function victimsTable(
  victims: readonly Victim[],
  { columns, paint, notesAt }: Omit<Shown<unknown>, "decision">,
): string {
  if (victims.length === 0) return "";
  return table(
    [
      { title: "", align: "right" },
      { title: "ENDED FOR IT, IN ORDER", shrinkTo: 12 },
      { title: "QOS" },
      { title: "PRIORITY", align: "right", giveUp: 1 },
      { title: "FREES", shrinkTo: 10 },
    ],
    victims.map((victim, i) => ({
      cells: [
        `${i + 1}`,
        podName(victim),
        victim.qos,
        victim.priority === null ? "none" : `${victim.priority}`,
        amountsText(victim.frees),
      ],
      notes: notesAt(`${victim.namespace}/${victim.name}`).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}
