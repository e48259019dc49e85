import type { PodEvent } from "../lifecycle/event.ts";
import type { PodClock } from "./clock.ts";
import type { PodIdentity } from "./places.ts";
import type { OnPodEvent } from "./ports.ts";

/** Tells what happens to one pod. */
export class PodEvents {
  readonly #pod: PodEvent["pod"];
  readonly #clock: PodClock;
  readonly #on: OnPodEvent;

  constructor({ namespace, name, uid }: PodIdentity, clock: PodClock, on: OnPodEvent) {
    this.#pod = { namespace, name, uid };
    this.#clock = clock;
    this.#on = on;
  }

  normal(reason: string, message: string, container: string | null = null): void {
    this.#tell("Normal", reason, message, container);
  }
  warning(reason: string, message: string, container: string | null = null): void {
    this.#tell("Warning", reason, message, container);
  }

  #tell(type: PodEvent["type"], reason: string, message: string, container: string | null): void {
    const at = new Date(this.#clock.nowMs()).toISOString();
    this.#on({ at, type, reason, message, pod: this.#pod, container });
  }
}
