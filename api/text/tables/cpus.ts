import { countCpus, formatCpuSet, parseCpuSet } from "../../model/cpu-set.ts";
import type { CpuAssignment, CpusDecision } from "../../model/cpus.ts";
import { type Machine, numaText } from "../../model/machine.ts";
import { type Color, type Paint, printable } from "../style.ts";
import { type Cell, table } from "../table.ts";
import { caption, isSamePod, placementsTable, podName, type Shown, sections, verdictText } from "./shown.ts";

type Cpu = NonNullable<Machine["cpus"]>[number];

/** A picture of more CPUs would be too large to read. */
const MAX_CPUS = 1024;
const WIDEST = 104;
const LABELS = "SOCKET  NUMA  ".length;
const NARROWEST = 12;

/**
 * The machine's CPUs: a row for each NUMA node of a socket, a cell for each CPU, threads of one core side by side, a bar
 * between uncore caches. Empty for a machine that is too large to look at.
 */
export function cpuPicture(
  cpus: readonly Cpu[],
  draw: (cpu: Cpu) => string,
  { columns, paint }: { readonly columns: number; readonly paint: Paint },
): string {
  if (cpus.length === 0 || cpus.length > MAX_CPUS) return "";
  const width = Math.max(NARROWEST, Math.min(WIDEST, columns - LABELS));
  const groups = Map.groupBy(cpus, ({ socket, numa }) => `${socket}/${numa}`);
  const rows = [...groups.values()].sort(byPlace).flatMap((group) => {
    const [{ socket, numa }] = group as [Cpu];
    const list = formatCpuSet(group.map(({ cpu }) => cpu).sort((a, b) => a - b));
    return linesOf(group, draw, width).map((line, i): { cells: readonly (string | Cell)[] } => ({
      cells: i === 0 ? [`${socket}`, `${numa}`, line, { text: list, color: "dim" }] : ["", "", line, ""],
    }));
  });
  return table(
    [
      { title: "SOCKET", align: "right" },
      { title: "NUMA", align: "right" },
      { title: "CPUS" },
      { title: "", giveUp: 1 },
    ],
    rows,
    columns,
    paint,
  );
}
const byPlace = ([a]: readonly Cpu[], [b]: readonly Cpu[]): number =>
  (a as Cpu).socket - (b as Cpu).socket || (a as Cpu).numa - (b as Cpu).numa;

interface Piece {
  readonly text: string;
  readonly width: number;
}

/** Breaks lines between caches if a cache fits on a line, otherwise between cores. */
function linesOf(group: readonly Cpu[], draw: (cpu: Cpu) => string, width: number): readonly string[] {
  const cores = [...Map.groupBy(group, ({ core }) => core).values()].map((threads) => ({
    cache: threads[0]?.uncoreCache ?? 0,
    text: threads
      .toSorted((a, b) => a.cpu - b.cpu)
      .map(draw)
      .join(""),
    width: threads.length,
  }));
  const gap = cores.some((core) => core.width > 1) ? " " : "";
  const caches = [...Map.groupBy(cores, ({ cache }) => cache)].sort(([a], [b]) => a - b).map(([, own]) => own);
  const whole = caches.map((own) => joined(own, gap));
  if (whole.every((piece) => piece.width <= width)) return linesFrom(whole, " │ ", width);
  return caches.flatMap((own) => linesFrom(own, gap, width));
}

const joined = (pieces: readonly Piece[], gap: string): Piece => ({
  text: pieces.map(({ text }) => text).join(gap),
  width: pieces.reduce((sum, piece) => sum + piece.width, gap.length * (pieces.length - 1)),
});

/** As few lines as the width allows, of about as many pieces each. */
function linesFrom(pieces: readonly Piece[], gap: string, width: number): readonly string[] {
  const widest = Math.max(...pieces.map((piece) => piece.width));
  const perLine = Math.max(1, Math.floor((width + gap.length) / (widest + gap.length)));
  const lines = Math.ceil(pieces.length / perLine);
  const each = Math.ceil(pieces.length / lines);
  return Array.from({ length: lines }, (_, i) => joined(pieces.slice(i * each, (i + 1) * each), gap).text);
}

/** Shows who has which CPUs: a picture of the machine, the exclusive CPUs by pod, the asked pod's, and what must change. */
export function cpusTable(shown: Shown<CpusDecision>): string {
  const { decision } = shown;
  const verdict = verdictText(shown);
  if (decision.startErrors.length > 0) return verdict;
  const marks = marksOf(shown);
  return sections(
    `${verdict}${caption(shown, captionOf(decision))}`,
    decision.policy === "static" ? pictureOf(shown, marks) : "",
    assignedTable(shown),
    assignmentsTable(shown, marks),
    placementsTable(shown, decision.refusal !== null),
    changesTable(shown),
  );
}

function captionOf({ policy, options, reserved, sharedPool }: CpusDecision): string {
  if (policy === "none") return "cpuManagerPolicy none: every container may run on every CPU";
  const given = Object.entries(options).map(([name, value]) => printable(`${name}=${value}`));
  const rules = given.length === 0 ? "" : ` with ${given.join(", ")}`;
  const pool = sharedPool === "" ? "empty" : `${sharedPool} (${cpuCount(sharedPool)})`;
  return `cpuManagerPolicy static${rules}: reserved ${reserved}, shared pool ${pool}`;
}

const cpuCount = (list: string): string => {
  const count = countCpus(list);
  return `${count} CPU${count === 1 ? "" : "s"}`;
};

interface Mark {
  readonly glyph: string;
  readonly color: Color;
}
/** Pod -> its mark in the picture. */
type Marks = ReadonlyMap<string, Mark>;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ASKED: Mark = { glyph: "█", color: "green" };
const RESERVED: Mark = { glyph: "▒", color: "yellow" };
const SHARED: Mark = { glyph: "·", color: "dim" };
const NOBODY: Mark = { glyph: "_", color: "dim" };

function marksOf({ decision, asked }: Shown<CpusDecision>): Marks {
  const marks = new Map<string, Mark>();
  let letter = 0;
  for (const { pod } of decision.assignments) {
    if (marks.has(pod.uid)) continue;
    if (isSamePod(pod, asked)) marks.set(pod.uid, ASKED);
    else marks.set(pod.uid, { glyph: LETTERS[letter++] ?? "#", color: "cyan" });
  }
  return marks;
}

function pictureOf({ decision, machine, asked, columns, paint }: Shown<CpusDecision>, marks: Marks): string {
  const shared = new Set(parseCpuSet(decision.sharedPool));
  const reserved = new Set(parseCpuSet(decision.reserved));
  const owners = new Map<number, Mark>();
  for (const { pod, cpus } of decision.assignments) {
    for (const cpu of parseCpuSet(cpus) ?? []) owners.set(cpu, marks.get(pod.uid) as Mark);
  }
  const markOf = ({ cpu }: Cpu): Mark =>
    owners.get(cpu) ?? (reserved.has(cpu) ? RESERVED : shared.has(cpu) ? SHARED : NOBODY);
  const picture = cpuPicture(machine?.cpus ?? [], (cpu) => drawn(markOf(cpu), paint), { columns, paint });
  if (picture === "") return "";
  const used = new Set((machine?.cpus ?? []).map(markOf));
  const letters = [...marks.values()].filter((mark) => mark !== ASKED);
  const [first] = letters;
  const legend = [
    [ASKED, asked === undefined ? "" : podName(asked)],
    [first, "and on: the pods below"],
    [RESERVED, "reserved"],
    [SHARED, "shared pool"],
    [NOBODY, "in neither pool"],
  ] as const;
  const listed = legend.filter(([mark]) => mark !== undefined && used.has(mark));
  return `${picture}${listed.map(([mark, text]) => `${drawn(mark as Mark, paint)} ${text}`).join("   ")}\n`;
}
const drawn = ({ glyph, color }: Mark, paint: Paint): string => paint(color, glyph);

function assignedTable({ decision, machine, columns, paint, notesAt }: Shown<CpusDecision>): string {
  if (decision.assigned.length === 0) return "";
  return table(
    [
      { title: "CONTAINER", shrinkTo: 10 },
      { title: "CPUS", shrinkTo: 10 },
      { title: "COUNT", align: "right" },
      { title: "NUMA", giveUp: 1 },
      { title: "" },
    ],
    decision.assigned.map(({ container, cpus, exclusive }) => ({
      cells: [
        printable(container),
        cpus,
        `${countCpus(cpus) ?? ""}`,
        numaText(cpus, machine?.cpus),
        exclusive ? { text: "its own", color: "green" } : { text: "shared pool", color: "dim" },
      ],
      notes: notesAt(container).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}

function assignmentsTable({ decision, machine, columns, paint }: Shown<CpusDecision>, marks: Marks): string {
  if (decision.policy === "none") return "";
  if (decision.assignments.length === 0) return paint("dim", "no container has CPUs of its own\n");
  return table(
    [
      { title: "" },
      { title: "EXCLUSIVE CPUS OF", shrinkTo: 12 },
      { title: "CONTAINER", shrinkTo: 8 },
      { title: "CPUS", shrinkTo: 8 },
      { title: "COUNT", align: "right" },
      { title: "NUMA", giveUp: 1 },
    ],
    decision.assignments.map(({ pod, container, cpus }: CpuAssignment) => ({
      cells: [
        { text: marks.get(pod.uid)?.glyph ?? "", color: marks.get(pod.uid)?.color ?? "dim" },
        podName(pod),
        printable(container),
        cpus,
        `${countCpus(cpus) ?? ""}`,
        numaText(cpus, machine?.cpus),
      ],
    })),
    columns,
    paint,
  );
}

function changesTable({ decision, columns, paint }: Shown<CpusDecision>): string {
  if (decision.reconcile.length === 0) return "";
  return table(
    [
      { title: "CPUSETS TO CHANGE", shrinkTo: 12 },
      { title: "CONTAINER", shrinkTo: 8 },
      { title: "NOW", align: "right" },
      { title: "" },
      { title: "WANTED" },
      { title: "CONTAINER ID", giveUp: 1, giveUpTo: "nothing" },
    ],
    decision.reconcile.map(({ pod, container, containerId, from, cpus }) => ({
      cells: [
        podName(pod),
        printable(container),
        from ?? "not known",
        "->",
        cpus,
        { text: printable(containerId), color: "dim" },
      ],
    })),
    columns,
    paint,
  );
}
