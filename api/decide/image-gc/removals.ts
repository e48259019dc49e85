import type { Done, RemovalState } from "../../model/garbage-collection.ts";
import type { ImageKept, ImageRemoval } from "../../model/image-gc.ts";
import type { Ordered } from "./eviction-order.ts";
import { imageKey } from "./listed-images.ts";

export interface Taken extends Ordered {
  readonly why: ImageRemoval["why"];
  readonly end: RemovalState;
  readonly message?: string;
}
export interface Left extends Ordered {
  readonly why: Extract<ImageKept["why"], "used-now" | "too-young" | "enough-space" | "not-needed" | "not-reached">;
}

/** How removals ended, by image key. */
export type Ends = ReadonlyMap<string, Done>;
export const endsOf = (done: readonly Done[] | null): Ends =>
  new Map((done ?? []).map((d) => [imageKey(d.id, d.runtimeHandler), d]));

/** One pass over the order: what is taken, what is left, and what the runtime refused. What no end is told of counts as if it works. */
export class Removals {
  readonly taken: Taken[] = [];
  readonly left: Left[] = [];
  /** A removal was stopped: nothing new is begun after it. */
  stopped = false;
  readonly #ends: Ends;
  constructor(ends: Ends) {
    this.#ends = ends;
  }
  /** What is done is done, whatever a rule says of it. */
  isDone({ image }: Ordered): boolean {
    return this.#ends.has(image.key);
  }
  /** Takes one; the runtime's words if it refused, else undefined. kubelet 1.36: freeImage. */
  take(candidate: Ordered, why: Taken["why"]): string | undefined {
    const done = this.#ends.get(candidate.image.key);
    const end = done?.end ?? "planned";
    const message = done?.message ?? (end === "failed" ? UNTOLD : undefined);
    const { image, place, tie } = candidate;
    this.taken.push(message === undefined ? { image, place, tie, why, end } : { image, place, tie, why, end, message });
    if (end === "stopped") this.stopped = true;
    return end === "failed" ? message : undefined;
  }
  leave({ image, place, tie }: Ordered, why: Left["why"]): void {
    this.left.push({ image, place, tie, why });
  }
}
const UNTOLD = "unknown error";

/** Whether an image is gone, or will be if all works out. */
export const isGone = ({ end }: { readonly end: RemovalState }): boolean => end === "planned" || end === "removed";
