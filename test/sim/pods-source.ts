import type { PodsRead } from "../../actuator/core/interfaces.ts";
import { podsRead } from "../kit/manifests.ts";

/** The pod source of a simulated node. */
export class PodsSource {
  /** The pods by uid. */
  readonly pods = new Map<string, object>();
  state: "whole" | "partial" | "unreadable" = "whole";
  /** The pods that an incomplete list lacks. */
  readonly missing = new Set<string>();
  #read = podsRead();

  /** Returns the identical object while nothing changes. */
  read(): PodsRead {
    const { state } = this;
    if (state === "unreadable")
      return { pods: null, whole: false, problems: [{ from: "pods", message: "it cannot be read" }], notices: [] };
    const pods = [...this.pods].flatMap(([uid, pod]) => (state === "partial" && this.missing.has(uid) ? [] : [pod]));
    const whole = state === "whole";
    if (this.#read.whole !== whole || !sameItems(this.#read.pods ?? [], pods))
      this.#read = { pods, whole, problems: [], notices: [] };
    return this.#read;
  }
}

const sameItems = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((item, i) => item === other[i]);
