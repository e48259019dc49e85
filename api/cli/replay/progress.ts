import type { ReplayAnswer } from "../../service/replay/replay-answer.ts";
import { type Counts, passedOf } from "../../service/replay/tally.ts";
import { barLine, type LineScreen, redrawnLine } from "../terminal.ts";

interface Progress {
  show(page: Pick<ReplayAnswer, "progress" | "reachedAt">, counts: Counts): void;
  /** Removes the line before other output. */
  clear(): void;
}

/** A line with a bar on a terminal; nothing elsewhere. `now`: milliseconds of any clock. */
export function progressOn(screen: LineScreen, now: () => number): Progress {
  const started = now();
  const { show, clear } = redrawnLine(screen);
  return {
    show: ({ progress, reachedAt }, counts) =>
      show((columns) => progressLine(progress, reachedAt, counts, (now() - started) / 1000, columns)),
    clear,
  };
}

/** `████░░░░  42 %  41,234 decisions, 120 others, 5,012/s, at 2026-01-31T12:00:00Z`, as far as it fits. */
export function progressLine(
  progress: number,
  reachedAt: string | null,
  counts: Counts,
  seconds: number,
  columns: number,
): string {
  const passed = passedOf(counts);
  const rate = seconds > 0 ? `, ${Math.round(passed / seconds).toLocaleString("en")}/s` : "";
  const counted = `${passed.toLocaleString("en")} decisions, ${(counts.differs + counts.refused).toLocaleString("en")} others${rate}`;
  return barLine(progress, [counted, ...(reachedAt === null ? [] : [`at ${reachedAt}`])], columns);
}
