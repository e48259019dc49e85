import type { Result } from "../../../api/base/result.ts";
import type { ProbeGuardDecision } from "../../../api/model/probe-guard.ts";
import { HistoryFile, type HistoryPlace, readHistory } from "../../core/history-file.ts";
import type { ProbeName } from "../../status/probe-row.ts";
import type { HistoryQuery } from "../../status/server.ts";
import { MAX_ASKED, MAX_NAMED, type ProbeHistoryEntry, readEntry } from "./history-entry.ts";
import type { Guarded } from "./liveness-storm-guard.ts";
import type { ProbeClock } from "./probe-time.ts";
import type { ProbeWorker, RecordedOutcome } from "./probe-worker.ts";
import type { ProbeChange } from "./probed.ts";

/** The containers whose kills this decision is the first to hold back. */
export const newlyHeldContainers = ({ hold }: ProbeGuardDecision): readonly string[] =>
  hold.filter(({ heldForMs }) => heldForMs === 0).map(({ container }) => container);

/** Records probe events in the history. */
export class ProbeEventRecorder {
  readonly #history: Pick<ProbeHistory, "add">;
  readonly #clock: Pick<ProbeClock, "nowMs">;

  constructor(history: Pick<ProbeHistory, "add">, clock: Pick<ProbeClock, "nowMs">) {
    this.#history = history;
    this.#clock = clock;
  }

  /** `byAttempt`: an attempt caused the change. */
  changed(change: ProbeChange, { quirk, byAttempt }: { readonly quirk: string | undefined; byAttempt: boolean }): void {
    const { was: from, result: to, output, containerId } = change;
    const why = byAttempt ? {} : { unasked: true as const };
    const more = { ...(output === "" ? {} : { output }), ...(quirk === undefined ? {} : { quirk }), ...why };
    this.#history.add({ ...this.#of(change), kind: "result", containerId, from, to, ...more });
  }
  /** Records the run of equal outcomes that this attempt ended, if it ended one. */
  ran(name: ProbeName, { kind, ran }: RecordedOutcome): void {
    if (ran !== null) this.#history.add({ ...this.#of(name), kind: "run", ...ran, next: kind });
  }
  /** Records the first attempt of a container that did not change the stored result. */
  first({ name, lastOutput: output }: ProbeWorker, containerId: string, outcome: RecordedOutcome["kind"]): void {
    const more = output === "" ? {} : { output };
    this.#history.add({ ...this.#of(name), kind: "first", containerId, outcome, ...more });
  }
  overdue(name: ProbeName, seconds: number): void {
    this.#history.add({ ...this.#of(name), kind: "overdue", seconds: Math.round(seconds * 1000) / 1000 });
  }
  guarded({ ask, decision, killedBefore }: Guarded): void {
    const { released, holding, message } = decision;
    this.#history.add({
      at: this.#at(),
      kind: "probe-guard",
      held: newlyHeldContainers(decision).slice(0, MAX_NAMED),
      released: released.slice(0, MAX_NAMED).map(({ container, why }) => ({ container, why })),
      holding,
      why: message,
      ...(killedBefore.length === 0 ? {} : { killedBefore: killedBefore.slice(0, MAX_NAMED) }),
      ...(ask.known.length + ask.failed.length > MAX_ASKED ? {} : { ask }),
    });
  }

  #of({ namespace, pod, podUid, container, type }: ProbeName) {
    return { at: this.#at(), pod: `${namespace}/${pod}`, podUid, container, type };
  }
  #at(): string {
    return new Date(this.#clock.nowMs()).toISOString();
  }
}

interface ProbeHistoryOptions {
  readonly stateDir: string;
  readonly clock: Pick<ProbeClock, "after">;
  /** Called once when writing fails, and again only after it has worked. */
  readonly onFault: (message: string) => void;
}
/** Interval between writes, so that each entry does not cost a write. */
const FLUSH_MS = 1000;
/** Entries written per second: if thousands of containers change, the rest is only counted. */
const MAX_AT_ONCE = 200;

const placeIn = (stateDir: string): HistoryPlace => ({ directory: stateDir, name: "probe-history" });

/** The history of a node's probes, written once a second; a crash loses that second. */
export class ProbeHistory {
  readonly #file: HistoryFile;
  readonly #clock: Pick<ProbeClock, "after">;
  /** Runs are dropped first if there are too many entries. */
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
    if (list.length < MAX_AT_ONCE) list.push(entry);
    else this.#omitted++;
    this.#disarm ??= this.#clock.after(FLUSH_MS, () => this.flush());
  }

  flush(): void {
    this.#disarm?.();
    this.#disarm = null;
    const others = this.#others.splice(0);
    const runs = this.#runs.splice(0);
    const kept = runs.slice(0, MAX_AT_ONCE - others.length);
    const count = this.#omitted + runs.length - kept.length;
    this.#omitted = 0;
    const entries = [...others, ...kept].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
    const last = entries.at(-1);
    if (last !== undefined && count > 0) entries.push({ at: last.at, kind: "omitted", count });
    this.#file.add(entries);
  }
}

/** The newest `limit` entries, newest first. Error: the file exists and cannot be read. */
export function readProbeHistory(
  stateDir: string,
  { limit, pod }: HistoryQuery,
): Result<readonly ProbeHistoryEntry[], string> {
  if (pod === undefined) return readHistory(placeIn(stateDir), limit, readEntry);
  const ofPod = (line: string): ProbeHistoryEntry | null => {
    // most lines are about other pods and need not be parsed
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
