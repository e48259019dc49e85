import { readFileSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { Kind } from "../../api/model/decision.ts";
import type { Recovery } from "../apply/journal.ts";
import type { ApiAccess } from "../client/api-access.ts";
import { ApiClient } from "../client/client.ts";
import { localClient } from "../client/local-client.ts";
import { Outbox } from "../client/outbox.ts";
import type { ActuatorConfig } from "../core/config.ts";
import { faultText } from "../core/error-text.ts";
import { FactsStore } from "../core/facts-file.ts";
import type { DecisionAnswer, Problem } from "../core/interfaces.ts";
import type { CollectionEvents } from "../gc/open.ts";
import type { PodEvent } from "../lifecycle/record.ts";
import type { LoopDeps, PassReport } from "../pass/loop.ts";

/**
 * The decision client: the API in the settings, this process's own API, or the local core. `outboxName` is a file of the state
 * directory that no other process writes. Errors: the token's file.
 */
export function clientOf(
  { config, api, onProblem }: Pick<ActuatorOptions, "config" | "api" | "onProblem">,
  outboxName = "outbox.jsonl",
): Result<LoopDeps["client"], string> {
  const factsStore = new FactsStore(config.stateDir, (message) => onProblem({ from: "memory", message }));
  if (api === undefined && config.api === undefined) return ok(localClient(factsStore));
  const outbox = Outbox.open(join(config.stateDir, outboxName));
  if (api !== undefined)
    return ok(new ApiClient({ ...api, timeoutMs: config.apiTimeoutSeconds * 1000 }, outbox, factsStore, onProblem));
  const token = tokenReader(config, onProblem);
  const first = token();
  if (!first.ok) return err(`apiTokenFile: ${first.error}`);
  const access = {
    get url() {
      return (config.api as string).replace(/\/+$/, "");
    },
    get token() {
      const now = token();
      return now.ok ? now.value : undefined;
    },
    get timeoutMs() {
      return config.apiTimeoutSeconds * 1000;
    },
    fetch,
  };
  return ok(new ApiClient(access, outbox, factsStore, onProblem));
}

/** A token may be replaced in its file at any time; while that cannot be read, the last one is used. */
function tokenReader(
  config: ActuatorOptions["config"],
  onProblem: ActuatorOptions["onProblem"],
): () => Result<string | undefined, string> {
  let last: Result<string | undefined, string> = ok(undefined);
  let lastReported = "";
  return () => {
    const { apiTokenFile } = config;
    if (apiTokenFile === undefined) return ok(undefined);
    try {
      last = ok(readFileSync(apiTokenFile, "utf8").trim());
      lastReported = "";
    } catch (e) {
      const message = faultText(e, "read");
      if (last.ok && last.value === undefined) return err(message);
      if (message !== lastReported) onProblem({ from: "api", message: `apiTokenFile: ${message}` });
      lastReported = message;
    }
    return last;
  };
}

export interface ActuatorOptions extends CollectionEvents {
  readonly config: ActuatorConfig;
  /** An API in this process, used instead of `config.api`. */
  readonly api?: Pick<ApiAccess, "url" | "fetch" | "token">;
  readonly onPass: (report: PassReport) => void;
  readonly onProblem: (problem: Problem) => void;
  readonly onRecovery: (recovery: Recovery) => void;
  /** Called for each event of a pod that this daemon runs. */
  readonly onEvent?: (event: PodEvent) => void;
  /** Called with each answer of the API or of the local core. */
  readonly onDecision?: (kind: Kind, answer: DecisionAnswer) => void;
}
