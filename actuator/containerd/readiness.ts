import { ok } from "../../api/model/result.ts";
import type { Connection } from "./connection.ts";
import type { RuntimeCondition } from "./messages.ts";
import type { Answered } from "./port.ts";

/** What runs behind the socket, and whether it says that it can run pods. */
export interface RuntimeReadiness {
  readonly name: string;
  readonly version: string;
  readonly apiVersion: string;
  readonly runtime: Readiness;
  /** Pods on the machine's own network need none. */
  readonly network: Readiness;
}
export interface Readiness {
  readonly isReady: boolean;
  readonly reason: string;
  readonly message: string;
}

export async function runtimeReadiness(connection: Connection): Answered<RuntimeReadiness> {
  const [version, status] = await Promise.all([
    connection.call("Version", {}),
    connection.call("Status", { verbose: false }),
  ]);
  if (!version.ok) return version;
  if (!status.ok) return status;
  const { runtimeName, runtimeVersion, runtimeApiVersion } = version.value;
  const conditions = status.value.status?.conditions ?? [];
  return ok({
    name: runtimeName,
    version: runtimeVersion,
    apiVersion: runtimeApiVersion,
    runtime: readinessOf(conditions, "RuntimeReady"),
    network: readinessOf(conditions, "NetworkReady"),
  });
}

function readinessOf(conditions: readonly RuntimeCondition[], type: string): Readiness {
  const told = conditions.find((condition) => condition.type === type);
  if (told === undefined) return { isReady: false, reason: "Untold", message: `the runtime does not tell ${type}` };
  return { isReady: told.status, reason: told.reason, message: told.message };
}
