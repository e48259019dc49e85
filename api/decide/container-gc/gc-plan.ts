import type { ContainerGcDecision, ContainerKept, ContainerRemoval, Done } from "../../model/container-gc.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { Numbers } from "../../model/forms.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Reasons } from "../reasons.ts";

export type Target = Omit<ContainerKept, "why" | "oldEnoughAtMs">;
/** Why something is removed or kept, for the answer and its reasons. */
interface GcReason<W> {
  readonly why: W;
  readonly code: ReasonCode<"container-gc">;
  readonly numbers?: Numbers | undefined;
}
export type RemoveReason = GcReason<ContainerRemoval["why"]>;
export type KeepReason = GcReason<ContainerKept["why"]>;

/**
 * The removals and the kept targets, in the order of the pass, with the end of each removal. INVARIANT: each target
 * occurs once.
 */
export class GcPlan implements Pick<ContainerGcDecision, "remove" | "keep"> {
  readonly remove: ContainerRemoval[] = [];
  readonly keep: ContainerKept[] = [];
  readonly #done: Map<string, Done>;
  readonly #reasons: Reasons<ReasonCode<"container-gc">>;
  #stoppedAt: string | undefined;
  constructor(done: readonly Done[] | null, reasons: Reasons<ReasonCode<"container-gc">>) {
    this.#done = new Map((done ?? []).map((d) => [d.id, d]));
    this.#reasons = reasons;
  }

  /** Adds the next removal. Returns true if the target is removed, or will be unless its removal fails. */
  take(target: Target, { why, code, numbers }: RemoveReason, stopFirst: boolean, tie: boolean): boolean {
    const { id } = target;
    const finished = this.#done.size === 0 ? undefined : this.#done.get(id);
    if (finished === undefined && this.#stoppedAt !== undefined) {
      this.leave(target, { why: "not-reached", code: "not_reached", numbers: { stoppedAt: this.#stoppedAt } });
      return false;
    }
    if (finished !== undefined) this.#done.delete(id);
    this.#reasons.addFirst(code, id, target.target, numbers);
    const end = finished?.end ?? "planned";
    const { pod, name, attempt, state, createdAtMs } = target;
    const place = this.remove.length + 1;
    const removal: ContainerRemoval = {
      target: target.target,
      id,
      pod,
      name,
      attempt,
      state,
      createdAtMs,
      place,
      why,
      stopFirst,
      tie,
      end,
    };
    if (finished === undefined || end === "removed") {
      this.remove.push(removal);
      return true;
    }
    const { message = "" } = finished;
    this.remove.push({ ...removal, message });
    this.#reasons.add(end === "failed" ? "removal_failed" : "pass_stopped", id, target.target, { message });
    if (end === "stopped") this.#stoppedAt ??= id;
    return false;
  }

  leave(target: Target, { why, code, numbers }: KeepReason, oldEnoughAtMs: EpochMs | null = null): void {
    const { id, pod, name, attempt, state, createdAtMs } = target;
    this.keep.push({ target: target.target, id, pod, name, attempt, state, createdAtMs, why, oldEnoughAtMs });
    this.#reasons.addFirst(code, id, target.target, numbers);
  }

  /** Reports posted ends of removals that were not planned. */
  close(): void {
    for (const { id, end } of this.#done.values()) this.#reasons.add("done_without_plan", id, "done", { end });
  }
}
