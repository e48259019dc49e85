import type { PassReport } from "../loop.ts";
import { isForeign, isTold } from "../plan/drift.ts";
import type { Difference } from "../plan/find-drift.ts";
import type { Counters } from "./counters.ts";

/**
 * What a pass over the cgroups came to, as the status tells it, and when it was; null: none has been. One in which nothing
 * was decided has looked at no file.
 */
export const passFigures = (pass: PassReport | null) => ({
  wrote: pass?.applied?.results.filter(({ status }) => status === "applied").length ?? 0,
  drift: pass?.drift.filter(isForeign).length ?? 0,
  decidedBy: pass?.decidedBy ?? null,
  ...((pass === null || pass.differs === null) && { compared: false as const }),
  ...(pass !== null && { cgroupsAt: pass.at }),
});

/** Counts what passes over the cgroups come to; drift that stands is one, however often it is seen. */
export class PassCounter {
  readonly #counters: Pick<Counters, "wrote" | "drifted">;
  /** What still differed after the last pass that looked. */
  #standing: ReadonlySet<string> = new Set();

  constructor(counters: Pick<Counters, "wrote" | "drifted">) {
    this.#counters = counters;
  }

  count(pass: PassReport): void {
    this.#counters.wrote(passFigures(pass).wrote);
    // what could not be looked at still stands
    if (pass.differs === null) return;
    for (const drift of pass.drift)
      if (isTold(drift) && !this.#standing.has(keyOf(drift))) this.#counters.drifted(drift.cause, 1);
    this.#standing = new Set(pass.differs.map(keyOf));
  }
}
const keyOf = ({ path, file, cause }: Difference): string => `${path} ${file} ${cause}`;

/** When a turn was, how long it took and how much of a processor. */
export interface TurnFigures {
  readonly sequence: number;
  readonly at: string;
  readonly cpuMs: number;
  readonly tookMs: number;
}
interface Measured<T> extends Pick<TurnFigures, "cpuMs" | "tookMs"> {
  readonly value: T;
}
export async function measured<T>(work: () => Promise<T>): Promise<Measured<T>> {
  const [from, cpu] = [performance.now(), process.cpuUsage()];
  const value = await work();
  const { user, system } = process.cpuUsage(cpu);
  return { value, tookMs: performance.now() - from, cpuMs: (user + system) / 1000 };
}
