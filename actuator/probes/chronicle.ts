import type { GuardRecord } from "../../api/decide/probes/guard.ts";
import type { ProbeClock } from "./clock.ts";
import type { ProbeHistory } from "./history.ts";
import { MOST_NAMED } from "./history-entry.ts";
import type { Outcome } from "./live-worker.ts";
import type { ProbeChange, ProbeName } from "./probed.ts";

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
  guarded({ held, released, holding, why }: GuardRecord): void {
    this.#history.add({
      at: this.#at(),
      kind: "probe-guard",
      held: held.slice(0, MOST_NAMED),
      released: released.slice(0, MOST_NAMED).map(({ containerId, why }) => ({ container: containerId, why })),
      holding,
      why,
    });
  }

  #of({ namespace, pod, podUid, container, type }: ProbeName) {
    return { at: this.#at(), pod: `${namespace}/${pod}`, podUid, container, type };
  }
  #at(): string {
    return new Date(this.#clock.nowMs()).toISOString();
  }
}
