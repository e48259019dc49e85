import type { RuntimeFault, RuntimeResult } from "../../actuator/containerd/cri.ts";
import { err, type Result } from "../../api/base/result.ts";
import type { FakeCall, Trouble } from "./fake-pod-parts.ts";
import type { PodTime } from "./pod-time.ts";

/** The deadline of the real client, which the fake replaces. */
const DEADLINE_MS = 120_000;
type Effect<T> = () => Result<T, RuntimeFault> | Promise<Result<T, RuntimeFault>>;

/** The calls to a fake runtime: it counts them, and lets them fail as a test requests. */
export class FakeCalls {
  readonly time: PodTime;
  /** CRI method -> number of calls. */
  readonly counts = new Map<string, number>();
  /** `CALL id` of each call, in order. */
  readonly calls: string[] = [];
  isDown = false;
  /** The failure of a call, if any. */
  on: (call: FakeCall) => Trouble | undefined = () => undefined;

  constructor(time: PodTime) {
    this.time = time;
  }

  /** Restarts the runtime; containers keep running, as with containerd. */
  restart(): void {
    this.isDown = false;
  }

  protected async call<T>(call: string, id: string, effect: Effect<T>): RuntimeResult<T> {
    const count = (this.counts.get(call) ?? 0) + 1;
    this.counts.set(call, count);
    this.calls.push(id === "" ? call : `${call} ${id}`);
    const away = { call, code: "UNAVAILABLE", message: "the runtime is away" };
    if (this.isDown) return err(away);
    const trouble = this.on({ call, id, count });
    if (trouble === undefined) return effect();
    if (trouble.answer === "dies") this.isDown = true;
    if (trouble.effect) await effect();
    if (trouble.answer === "never") return new Promise(() => {});
    if (trouble.answer === "dies") return err(away);
    if (trouble.answer !== "hangs") return err(trouble.answer);
    await this.time.sleep(DEADLINE_MS);
    return err({ call, code: "DEADLINE_EXCEEDED", message: "no answer in time" });
  }
}
