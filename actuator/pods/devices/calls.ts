import type { PodClock } from "../clock.ts";
import type { DeviceFault } from "./port.ts";

/** A plugin that answers sooner is told of nowhere. */
const SLOW_MS = 2_000;
const REASONS = { Allocate: "AllocatingDevices", PreStartContainer: "PreparingDevices" } as const;

interface Call {
  readonly podUid: string;
  readonly resource: string;
  readonly name: keyof typeof REASONS;
  readonly sinceMs: number;
}

/** Calls to plugins that are under way for pods. */
export class PluginCalls {
  readonly #clock: Pick<PodClock, "monotonicMs">;
  readonly #calls = new Set<Call>();

  constructor(clock: Pick<PodClock, "monotonicMs">) {
    this.#clock = clock;
  }

  async during<T>(podUid: string, resource: string, name: Call["name"], answer: Promise<T>): Promise<T> {
    const call = { podUid, resource, name, sinceMs: this.#clock.monotonicMs() };
    this.#calls.add(call);
    try {
      return await answer;
    } finally {
      this.#calls.delete(call);
    }
  }

  /** By uid: what a pod has waited for longer than a moment. */
  slow(): ReadonlyMap<string, DeviceFault> {
    const nowMs = this.#clock.monotonicMs();
    const slow = [...this.#calls].filter(({ sinceMs }) => nowMs - sinceMs >= SLOW_MS);
    return new Map(
      slow.map(({ podUid, resource, name }) => [
        podUid,
        { reason: REASONS[name], message: `waits for the device plugin of ${resource} to answer ${name}` },
      ]),
    );
  }
}
/** Of what is over once the call is. */
export const UNDER_WAY: ReadonlySet<string> = new Set(Object.values(REASONS));
