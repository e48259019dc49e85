import type { ProbeGuardDecision } from "../../../api/model/probe-guard.ts";
import type { Result } from "../../../api/model/result.ts";
import { HistoryFile, type HistoryPlace, readHistory } from "../../core/history-file.ts";
import type { ProbeName } from "../../status/probe-row.ts";
import type { HistoryQuery } from "../../status/server.ts";
import { MAX_ASKED, MAX_NAMED, type ProbeHistoryEntry, readEntry } from "./history-entry.ts";
import type { Guarded } from "./liveness-storm-guard.ts";
import type { ProbeClock } from "./probe-time.ts";
import type { ProbeWorker, RecordedOutcome } from "./probe-worker.ts";
import type { ProbeChange } from "./probed.ts";

/** The containers whose kills are held from this decision on. */
export const newlyHeld = ({ hold }: ProbeGuardDecision): readonly string[] =>
  hold.filter(({ heldForMs }) => heldForMs === 0).map(({ container }) => container);

/** Writes what happens to probes into their history. */
export class ProbeEventRecorder {
  readonly #history: Pick<ProbeHistory, "add">;
  readonly #clock: Pick<ProbeClock, "nowMs">;

  constructor(history: Pick<ProbeHistory, "add">, clock: Pick<ProbeClock, "nowMs">) {
    this.#history = history;
    this.#clock = clock;
  }

  /** `byAttempt`: one led to it. */
  changed(change: ProbeChange, { quirk, byAttempt }: { readonly quirk: string | undefined; byAttempt: boolean }): void {
    const { was: from, result: to, output, containerId } = change;
    const why = byAttempt ? {} : { unasked: true as const };
    const more = { ...(output === "" ? {} : { output }), ...(quirk === undefined ? {} : { quirk }), ...why };
    this.#history.add({ ...this.#of(change), kind: "result", containerId, from, to, ...more });
  }
  /** The run that an attempt ended, if it did. */
  ran(name: ProbeName, { kind, ran }: RecordedOutcome): void {
    if (ran !== null) this.#history.add({ ...this.#of(name), kind: "run", ...ran, next: kind });
  }
  /** An attempt that is the first of its container, and no change of what is stored. */
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
      held: newlyHeld(decision).slice(0, MAX_NAMED),
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
  /** Told once, until it can be written again. */
  readonly onFault: (message: string) => void;
}
/** The disk is not asked for each line. */
const FLUSH_MS = 1000;
/** Limit for one second: where thousands of containers fall and rise, the rest is only counted. */
const MAX_AT_ONCE = 200;

const placeIn = (stateDir: string): HistoryPlace => ({ directory: stateDir, name: "probe-history" });

/** The history of a node's probes, written once a second; a crash loses that second. */
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

/** The newest `limit` entries, the newest first. Error: a file is there and cannot be read. */
export function readProbeHistory(
  stateDir: string,
  { limit, pod }: HistoryQuery,
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
