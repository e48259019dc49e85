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

/** Reads a daemon's settings again when that is wanted, one time after the other. Faulty ones are told, and change nothing. */
export class Reloads {
  readonly #given: ActuatorGiven;
  readonly #env: Cli["env"];
  readonly #events: ReloadEvents;
  #actuator: Pick<Actuator, "reload"> | null = null;
  #isWanted = false;
  #last: Promise<void> = Promise.resolve();

  constructor(given: ActuatorGiven, env: Cli["env"], events: ReloadEvents) {
    this.#given = given;
    this.#env = env;
    this.#events = events;
  }

  /** What was wanted while the daemon started is done now. */
  begin(actuator: Pick<Actuator, "reload">): void {
    this.#actuator = actuator;
    if (this.#isWanted) this.wanted();
  }

  wanted(): void {
    this.#isWanted = true;
    const actuator = this.#actuator;
    if (actuator !== null) this.#last = this.#last.then(() => this.#reload(actuator));
  }

  async #reload(actuator: Pick<Actuator, "reload">): Promise<void> {
    const config = await configOf(this.#given, this.#env);
    if (config.ok) return this.#events.onReload(actuator.reload(config.value));
    for (const fault of config.error)
      this.#events.onProblem({ from: "settings", message: `${fault}; the old settings stay` });
  }
}
