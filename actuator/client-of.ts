import { readFileSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../api/model/result.ts";
import { ApiClient, localClient } from "./client.ts";
import type { ActuatorOptions } from "./main.ts";
import { Memory } from "./memory.ts";
import { Outbox } from "./outbox.ts";
import type { LoopPorts } from "./ports.ts";

/**
 * Who decides: the API of the settings, this process's own, or the core here. `outboxName` is a file of the state
 * directory that no other process writes. Errors: the token's file.
 */
export function clientOf(
  { config, api, onProblem }: Pick<ActuatorOptions, "config" | "api" | "onProblem">,
  outboxName = "outbox.jsonl",
): Result<LoopPorts["client"], string> {
  const timeoutMs = config.apiTimeoutSeconds * 1000;
  const memory = new Memory(config.stateDir, (message) => onProblem({ from: "memory", message }));
  if (api === undefined && config.api === undefined) return ok(localClient(memory));
  const outbox = Outbox.open(join(config.stateDir, outboxName));
  if (api !== undefined) return ok(new ApiClient({ ...api, timeoutMs }, outbox, memory, onProblem));
  try {
    const token = config.apiTokenFile === undefined ? undefined : readFileSync(config.apiTokenFile, "utf8").trim();
    const url = (config.api as string).replace(/\/+$/, "");
    return ok(new ApiClient({ url, token, timeoutMs, fetch }, outbox, memory, onProblem));
  } catch (e) {
    return err(`apiTokenFile: ${(e as Error).message}`);
  }
}
