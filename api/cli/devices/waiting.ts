import type { DeviceKeeper } from "../../../actuator/pods/devices/keeper.ts";
import type { Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";

/** Nothing tells that a time is over. */
const LOOK_MS = 500;

/** Waits for what plugins do, until a signal. */
export class Waiting {
  readonly #keeper: Pick<DeviceKeeper, "version" | "onChange">;
  /** A person has enough. */
  readonly signal: AbortSignal;

  constructor(keeper: Pick<DeviceKeeper, "version" | "onChange">, signal: AbortSignal) {
    this.#keeper = keeper;
    this.signal = signal;
  }

  get isStopped(): boolean {
    return this.signal.aborted;
  }
  stopped(): Result<never, Fault> {
    return fault(EXIT.failed, "stopped: the pod was given no device");
  }

  /** Until something is different from `version`, or half a second has gone. */
  async change(version: number): Promise<void> {
    if (this.#keeper.version !== version || this.isStopped) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = (): void => resolve();
    const timer = setTimeout(done, LOOK_MS);
    const unlisten = this.#keeper.onChange(done);
    this.signal.addEventListener("abort", done, { once: true });
    await promise;
    this.signal.removeEventListener("abort", done);
    clearTimeout(timer);
    unlisten();
  }
}
