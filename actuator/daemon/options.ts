import type { Kind } from "../../api/model/decision.ts";
import type { Recovery } from "../apply/recover.ts";
import type { ApiAccess } from "../client/api-access.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { DecisionAnswer, Problem } from "../core/ports.ts";
import type { CollectionEvents } from "../gc/open.ts";
import type { PodEvent } from "../lifecycle/event.ts";
import type { PassReport } from "../pass/loop.ts";

export interface ActuatorOptions extends CollectionEvents {
  readonly config: ActuatorConfig;
  /** An API in this process: asked instead of `config.api`. */
  readonly api?: Pick<ApiAccess, "url" | "fetch" | "token">;
  readonly onPass: (report: PassReport) => void;
  readonly onProblem: (problem: Problem) => void;
  readonly onRecovery: (recovery: Recovery) => void;
  /** Called for each event of a pod that this daemon runs. */
  readonly onEvent?: (event: PodEvent) => void;
  /** Each answer of the API, or of the core here. */
  readonly onDecision?: (kind: Kind, answer: DecisionAnswer) => void;
}
