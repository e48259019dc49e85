import { readFileSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import { ApiClient } from "../client/client.ts";
import { localClient } from "../client/local-client.ts";
import { Outbox } from "../client/outbox.ts";
import { Memory } from "../core/facts-file.ts";
import { faultText } from "../core/missing-right.ts";
import type { LoopPorts } from "../pass/ports.ts";
import type { ActuatorOptions } from "./options.ts";

/**
 * The decision client: the API of the settings, this process's own API, or the local core. `outboxName` is a file of the state
 * directory that no other process writes. Errors: the token's file.
 */
export function clientOf(
  { config, api, onProblem }: Pick<ActuatorOptions, "config" | "api" | "onProblem">,
  outboxName = "outbox.jsonl",
): Result<LoopPorts["client"], string> {
  const memory = new Memory(config.stateDir, (message) => onProblem({ from: "memory", message }));
  if (api === undefined && config.api === undefined) return ok(localClient(memory));
  const outbox = Outbox.open(join(config.stateDir, outboxName));
  if (api !== undefined)
    return ok(new ApiClient({ ...api, timeoutMs: config.apiTimeoutSeconds * 1000 }, outbox, memory, onProblem));
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
  return ok(new ApiClient(access, outbox, memory, onProblem));
}

/** A token may be replaced in its file at any time; while that cannot be read, the last one is used. */
function tokenReader(
  config: ActuatorOptions["config"],
  onProblem: ActuatorOptions["onProblem"],
): () => Result<string | undefined, string> {
  let last: Result<string | undefined, string> = ok(undefined);
  let told = "";
  return () => {
    const { apiTokenFile } = config;
    if (apiTokenFile === undefined) return ok(undefined);
    try {
      last = ok(readFileSync(apiTokenFile, "utf8").trim());
      told = "";
    } catch (e) {
      const message = faultText(e, "read");
      if (last.ok && last.value === undefined) return err(message);
      if (message !== told) onProblem({ from: "api", message: `apiTokenFile: ${message}` });
      told = message;
    }
    return last;
  };
}
