import { formatCpuSet } from "../../model/cpu-set.ts";
import type { Machine } from "../../model/machine.ts";
import type { Paint } from "../style.ts";
import { type Cell, table } from "../table.ts";

export type Cpu = NonNullable<Machine["cpus"]>[number];

/** Beyond that nobody looks for one CPU among them. */
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

/** Lines of whole caches where they fit, else of whole cores. */
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
