import type { ProbeGuardDecision } from "../../api/model/probe-guard.ts";
import type { ProbeClock } from "./clock.ts";
import type { ProbeHistory } from "./history.ts";
import { MOST_ASKED, MOST_NAMED } from "./history-entry.ts";
import type { LiveWorker, Noted } from "./live-worker.ts";
import type { ProbeChange, ProbeName } from "./probed.ts";
import type { Guarded } from "./storm.ts";

/** The containers whose kills are held from this decision on. */
export const newlyHeld = ({ hold }: ProbeGuardDecision): readonly string[] =>
  hold.filter(({ heldForMs }) => heldForMs === 0).map(({ container }) => container);

/** Writes what happens to probes into their history. */
export class ProbeChronicle {
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
  ran(name: ProbeName, { kind, ran }: Noted): void {
    if (ran !== null) this.#history.add({ ...this.#of(name), kind: "run", ...ran, next: kind });
  }
  /** An attempt that is the first of its container, and no change of what is stored. */
  first({ name, lastOutput: output }: LiveWorker, containerId: string, outcome: Noted["kind"]): void {
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
      held: newlyHeld(decision).slice(0, MOST_NAMED),
      released: released.slice(0, MOST_NAMED).map(({ container, why }) => ({ container, why })),
      holding,
      why: message,
      ...(killedBefore.length === 0 ? {} : { killedBefore: killedBefore.slice(0, MOST_NAMED) }),
      ...(ask.known.length + ask.failed.length > MOST_ASKED ? {} : { ask }),
    });
  }

  #of({ namespace, pod, podUid, container, type }: ProbeName) {
    return { at: this.#at(), pod: `${namespace}/${pod}`, podUid, container, type };
  }
  #at(): string {
    return new Date(this.#clock.nowMs()).toISOString();
  }
}
