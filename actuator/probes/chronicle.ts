import type { ProbeGuardDecision } from "../../api/model/probe-guard.ts";
import type { ProbeClock } from "./clock.ts";
import type { ProbeHistory } from "./history.ts";
import { MOST_ASKED, MOST_NAMED } from "./history-entry.ts";
import type { Outcome } from "./live-worker.ts";
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

  changed(change: ProbeChange, quirk: string | undefined): void {
    const { was: from, result: to, output, containerId } = change;
    const more = { ...(output === "" ? {} : { output }), ...(quirk === undefined ? {} : { quirk }) };
    this.#history.add({ ...this.#of(change), kind: "result", containerId, from, to, ...more });
  }
  ran(name: ProbeName, { outcome, times }: { readonly outcome: Outcome; readonly times: number }): void {
    this.#history.add({ ...this.#of(name), kind: "run", outcome, times });
  }
  overdue(name: ProbeName, seconds: number): void {
    this.#history.add({ ...this.#of(name), kind: "overdue", seconds: Math.round(seconds * 1000) / 1000 });
  }
  guarded({ ask, decision }: Guarded): void {
    const { released, holding, message } = decision;
    this.#history.add({
      at: this.#at(),
      kind: "probe-guard",
      held: newlyHeld(decision).slice(0, MOST_NAMED),
      released: released.slice(0, MOST_NAMED).map(({ container, why }) => ({ container, why })),
      holding,
      why: message,
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
