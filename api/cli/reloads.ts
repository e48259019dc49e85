import type { Actuator } from "../../actuator/main.ts";
import type { Problem } from "../../actuator/ports.ts";
import type { Reloaded } from "../../actuator/reload.ts";
import type { ActuatorGiven } from "./actuator.ts";
import { configOf } from "./actuator-settings.ts";
import type { Cli } from "./cli.ts";

export interface ReloadEvents {
  readonly onReload: (reloaded: Reloaded) => void;
  readonly onProblem: (problem: Problem) => void;
}

type Reloading = Pick<Actuator, "reload" | "refuseReload">;

/**
 * Reads a daemon's settings again when that is wanted, one time after the other. Faulty ones change nothing; they are told,
 * and stand in the daemon's status.
 */
export class Reloads {
  readonly #given: ActuatorGiven;
  readonly #env: Cli["env"];
  readonly #events: ReloadEvents;
  #actuator: Reloading | null = null;
  #isWanted = false;
  #last: Promise<void> = Promise.resolve();

  constructor(given: ActuatorGiven, env: Cli["env"], events: ReloadEvents) {
    this.#given = given;
    this.#env = env;
    this.#events = events;
  }

  /** What was wanted while the daemon started is done now. */
  begin(actuator: Reloading): void {
    this.#actuator = actuator;
    if (this.#isWanted) this.wanted();
  }

  wanted(): void {
    this.#isWanted = true;
    const actuator = this.#actuator;
    if (actuator !== null) this.#last = this.#last.then(() => this.#reload(actuator));
  }

  async #reload(actuator: Reloading): Promise<void> {
    const config = await configOf(this.#given, this.#env);
    if (config.ok) return this.#events.onReload(actuator.reload(config.value));
    const faults = config.error.map(
      (fault): Problem => ({ from: "settings", message: `${fault}; the old settings stay` }),
    );
    actuator.refuseReload(faults);
    for (const fault of faults) this.#events.onProblem(fault);
  }
}
