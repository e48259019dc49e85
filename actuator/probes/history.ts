import type { Result } from "../../api/model/result.ts";
import { HistoryFile, type HistoryPlace, readHistory } from "../history-file.ts";
import type { ProbeClock } from "./clock.ts";
import { type ProbeHistoryEntry, readEntry } from "./history-entry.ts";

export interface ProbeHistoryOptions {
  readonly stateDir: string;
  readonly clock: Pick<ProbeClock, "after">;
  /** Told once, until it can be written again. */
  readonly onFault: (message: string) => void;
}
/** The disk is not asked for each line. */
const FLUSH_MS = 1000;
/** Of one second: where thousands of containers fall and rise, the rest is counted only. */
const MOST_AT_ONCE = 200;

const placeIn = (stateDir: string): HistoryPlace => ({ directory: stateDir, name: "probe-history" });

/** What became of a node's probes, written once a second; what a crash loses is that second. */
export class ProbeHistory {
  readonly #file: HistoryFile;
  readonly #clock: Pick<ProbeClock, "after">;
  /** Runs give way to what tells more. */
  readonly #runs: ProbeHistoryEntry[] = [];
  readonly #others: ProbeHistoryEntry[] = [];
  #omitted = 0;
  #disarm: (() => void) | null = null;

  constructor({ stateDir, clock, onFault }: ProbeHistoryOptions) {
    this.#file = new HistoryFile(placeIn(stateDir), onFault);
    this.#clock = clock;
  }

  add(entry: ProbeHistoryEntry): void {
    const list = entry.kind === "run" ? this.#runs : this.#others;
    if (list.length < MOST_AT_ONCE) list.push(entry);
    else this.#omitted++;
    this.#disarm ??= this.#clock.after(FLUSH_MS, () => this.flush());
  }

  flush(): void {
    this.#disarm?.();
    this.#disarm = null;
    const others = this.#others.splice(0);
    const runs = this.#runs.splice(0);
    const kept = runs.slice(0, MOST_AT_ONCE - others.length);
    const count = this.#omitted + runs.length - kept.length;
    this.#omitted = 0;
    const entries = [...others, ...kept].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
    const last = entries.at(-1);
    if (last !== undefined && count > 0) entries.push({ at: last.at, kind: "omitted", count });
    this.#file.add(entries);
  }
}

export interface HistoryAsked {
  readonly limit: number;
  /** NAMESPACE/NAME: entries about it only, the guard's with its containers too. */
  readonly pod?: string | undefined;
}
/** The newest `limit` entries, the newest first. Error: a file is there and cannot be read. */
export function readProbeHistory(
  stateDir: string,
  { limit, pod }: HistoryAsked,
): Result<readonly ProbeHistoryEntry[], string> {
  if (pod === undefined) return readHistory(placeIn(stateDir), limit, readEntry);
  const ofPod = (line: string): ProbeHistoryEntry | null => {
    // most are of others, and need not be read
    const entry = line.includes(pod) ? readEntry(line) : null;
    return entry !== null && isOf(entry, pod) ? entry : null;
  };
  return readHistory(placeIn(stateDir), limit, ofPod);
}

function isOf(entry: ProbeHistoryEntry, pod: string): boolean {
  if ("pod" in entry) return entry.pod === pod;
  if (entry.kind !== "probe-guard") return false;
  const named = [...entry.held, ...entry.released.map(({ container }) => container)];
  return named.some((name) => name.startsWith(`${pod}/`));
}
