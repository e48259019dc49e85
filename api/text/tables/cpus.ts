import { countCpus, parseCpuSet } from "../../model/cpu-set.ts";
import type { Machine } from "../../model/machine.ts";
import type { CpuAssignment, CpusDecision } from "../../model/managers.ts";
import { type Color, type Paint, printable } from "../style.ts";
import { table } from "../table.ts";
import { type Cpu, cpuPicture } from "./cpu-picture.ts";
import { caption, type Shown, sections } from "./shown.ts";
import { isSamePod, placementsTable, podName, verdictText } from "./verdict.ts";

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
    [NOBODY, "nobody's"],
  ] as const;
  const told = legend.filter(([mark]) => mark !== undefined && used.has(mark));
  return `${picture}${told.map(([mark, text]) => `${drawn(mark as Mark, paint)} ${text}`).join("   ")}\n`;
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
        numaOf(cpus, machine),
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
        numaOf(cpus, machine),
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
      { title: "CONTAINER ID", giveUp: 1 },
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

/** The NUMA nodes of a list of CPUs. */
function numaOf(list: string, machine: Machine | undefined): string {
  const cpus = new Set(parseCpuSet(list));
  const nodes = (machine?.cpus ?? []).filter(({ cpu }) => cpus.has(cpu)).map(({ numa }) => numa);
  return [...new Set(nodes)].sort((a, b) => a - b).join("+");
}
