import type { DeviceConflict } from "../../../api/model/device-decision.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { Problem } from "../../ports.ts";
import { conflictText } from "./problems.ts";

/** Those that were told. */
const MOST_TOLD = 1024;

/** Tells once of each conflict between what two plugins want of a container. */
export class Conflicts {
  readonly #onProblem: (problem: Problem) => void;
  readonly #told = new Set<string>();

  constructor(onProblem: (problem: Problem) => void) {
    this.#onProblem = onProblem;
  }

  tell(pod: RunnablePod, container: string, conflict: DeviceConflict): void {
    const message = conflictText(pod, container, conflict);
    if (this.#told.has(message)) return;
    if (this.#told.size >= MOST_TOLD) this.#told.clear();
    this.#told.add(message);
    this.#onProblem({ from: "pods", message });
  }
}
