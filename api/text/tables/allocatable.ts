import type { AllocatableDecision, QuantityList } from "../../model/allocatable.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import { amountText, humanBytes, isBytes, magnitude, quantityText } from "../size.ts";
import { type Color, printable } from "../style.ts";
import { type BarPart, bar, type Column, type Glyph, legendText, type Row, table } from "../table.ts";
import type { Shown } from "./shown.ts";

/** The resources that a person asks for first. */
const NAMES = ["cpu", "memory", "pods"] as const;

export function allocatableVerdict({ capacity, allocatable, errors }: AllocatableDecision): string {
  if (errors.length > 0) return "The kubelet does not start with this configuration.";
  const amounts = NAMES.filter((name) => allocatable[name] !== undefined && capacity[name] !== undefined).map(
    (name) => `${name} ${amount(name, allocatable[name])} of ${amount(name, capacity[name])}`,
  );
  return amounts.length === 0
    ? "No capacity is known, so nothing is allocatable."
    : `Allocatable: ${amounts.join(", ")}.`;
}

const amount = (name: string, quantity = ""): string => (isBytes(name) ? humanBytes(magnitude(quantity)) : quantity);

const BAR_WIDTH = 24;
const EMPTY = "–";

interface Part {
  readonly title: string;
  readonly glyph: string;
  readonly color: Color;
  readonly amounts: (decision: AllocatableDecision) => QuantityList | undefined;
}
const PARTS: readonly Part[] = [
  { title: "allocatable", glyph: "█", color: "green", amounts: (d) => d.allocatable },
  { title: "kubeReserved", glyph: "▓", color: "cyan", amounts: (d) => d.reserved["kubeReserved"] },
  { title: "systemReserved", glyph: "▒", color: "yellow", amounts: (d) => d.reserved["systemReserved"] },
  { title: "evictionHard", glyph: "░", color: "red", amounts: (d) => d.reserved["evictionHard"] },
];

/** Capacity, what is taken off and what is left of each resource, then the node-level cgroups' limits. */
export function allocatableTable(shown: Shown<AllocatableDecision>): string {
  const { decision, paint, columns } = shown;
  const names = Object.keys(decision.capacity);
  const right = (title: string): Column => ({ title, align: "right" });
  const resources = table(
    [
      { title: "RESOURCE", shrinkTo: 12 },
      right("CAPACITY"),
      ...PARTS.slice(1).map(({ title }, i) => ({ ...right(title), giveUp: i + 2, giveUpTo: withoutEnding })),
      right("ALLOCATABLE"),
      { title: "", giveUp: 1 },
    ],
    names.map((name) => resourceRow(name, shown)),
    columns,
    paint,
  );
  const glyphs = PARTS.map(({ title, glyph, color }): Glyph => [color, glyph, title]);
  const cgroups = [
    ["kubepods", decision.kubepods.enforced ? "pods enforced" : "pods not enforced", decision.kubepods.values] as const,
    ...decision.enforcement.map((e) => [e.cgroup, e.key, e.values] as const),
  ];
  const refused = decision.errors
    .map((error) => paint("red", `the kubelet does not start: ${printable(error)}\n`))
    .join("");
  return `${resources}${isBarDrawn(resources) ? legendText(glyphs, ALL_GLYPHS, paint) : ""}\n${limitsTable(cgroups, shown)}${refused}`;
}

const ALL_GLYPHS = PARTS.map(({ glyph }) => glyph).join("");
const isBarDrawn = (drawn: string): boolean => PARTS.some(({ glyph }) => drawn.includes(glyph));
/** `kubeReserved`: `kube`. */
const withoutEnding = (text: string): string => text.replace(/(?:Reserved|Hard)$/, "");

function resourceRow(name: string, shown: Shown<AllocatableDecision>): Row {
  const { decision, isExact } = shown;
  const of = (list: QuantityList | undefined): string => list?.[name] ?? "";
  const quantities = [
    of(decision.capacity),
    ...PARTS.slice(1).map((p) => of(p.amounts(decision))),
    of(decision.allocatable),
  ];
  const cells = quantities.map((text) => (text === "" || text === "0" ? EMPTY : quantityText(name, text, isExact)));
  const notes = shown.notesAt(name).map((note) => `  ${note}`);
  return { cells: [printable(name), ...cells, barOf(name, shown)], notes };
}

function barOf(name: string, { decision, paint }: Shown<AllocatableDecision>): string {
  const parts: BarPart[] = PARTS.map(({ glyph, color, amounts }) => ({
    size: magnitude(amounts(decision)?.[name]),
    draw: (cells) => paint(color, glyph.repeat(cells)),
  }));
  const capacity = magnitude(decision.capacity[name]);
  const rest = capacity - parts.reduce((sum, part) => sum + part.size, 0);
  const drawn = bar([...parts, { size: rest, draw: (cells) => paint("dim", "·".repeat(cells)) }], BAR_WIDTH);
  if (drawn === "") return "";
  return `${drawn} ${String(Math.floor((magnitude(decision.allocatable[name]) / capacity) * 100)).padStart(3)} %`;
}

function limitsTable(
  cgroups: readonly (readonly [name: string, key: string, values: CgroupValues])[],
  { columns, paint, notesAt, isExact }: Shown<AllocatableDecision>,
): string {
  const number = (n: number | undefined): string => (n === undefined ? EMPTY : String(n));
  return table(
    [
      { title: "CGROUP", shrinkTo: 12 },
      { title: "SHARES", align: "right" },
      { title: "MEMORY", align: "right" },
      { title: "PIDS", align: "right" },
      { title: "enforceNodeAllocatable", giveUp: 1 },
    ],
    cgroups.map(([name, key, values]) => ({
      cells: [
        printable(name),
        number(values.cpuShares),
        values.memory === undefined ? EMPTY : amountText("memory", values.memory, isExact),
        number(values.pidsLimit),
        key,
      ],
      notes: notesAt(name).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}
