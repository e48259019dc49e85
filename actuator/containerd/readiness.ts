import { ok } from "../../api/model/result.ts";
import type { Connection } from "./connection.ts";
import type { RuntimeCondition } from "./messages.ts";
import type { Answered } from "./port.ts";

/** What runs behind the socket. */
export interface RuntimeVersion {
  readonly name: string;
  readonly version: string;
  readonly apiVersion: string;
}
/** And whether it says that it can run pods. */
export interface RuntimeReadiness extends RuntimeVersion {
  readonly runtime: Readiness;
  /** Pods on the machine's own network need none. */
  readonly network: Readiness;
}
export interface Readiness {
  readonly isReady: boolean;
  readonly reason: string;
  readonly message: string;
}
type Asking = Pick<Connection, "call">;

export async function runtimeVersion(connection: Asking): Answered<RuntimeVersion> {
  const answer = await connection.call("Version", {});
  if (!answer.ok) return answer;
  const { runtimeName: name, runtimeVersion: version, runtimeApiVersion: apiVersion } = answer.value;
  return ok({ name, version, apiVersion });
}

export async function runtimeReadiness(connection: Asking): Answered<RuntimeReadiness> {
  const [version, status] = await Promise.all([
    runtimeVersion(connection),
    connection.call("Status", { verbose: false }),
  ]);
  if (!version.ok) return version;
  if (!status.ok) return status;
  const conditions = status.value.status?.conditions ?? [];
  return ok({
    ...version.value,
    runtime: readinessOf(conditions, "RuntimeReady"),
    network: readinessOf(conditions, "NetworkReady"),
  });
}

/** Asks once for as long as the runtime answers: one that was away may come back as another. */
export class KnownVersion {
  readonly #connection: Asking;
  /** Null: it does not answer. */
  current: Pick<RuntimeVersion, "name" | "version"> | null = null;

  constructor(connection: Asking) {
    this.#connection = connection;
  }

  /** `hears`: it has just answered other calls. */
  async look(hears: boolean): Promise<void> {
    if (hears && this.current !== null) return;
    const asked = hears ? await runtimeVersion(this.#connection) : null;
    this.current = asked?.ok ? { name: asked.value.name, version: asked.value.version } : null;
  }
}

function readinessOf(conditions: readonly RuntimeCondition[], type: string): Readiness {
  const told = conditions.find((condition) => condition.type === type);
  if (told === undefined) return { isReady: false, reason: "Untold", message: `the runtime does not tell ${type}` };
  return { isReady: told.status, reason: told.reason, message: told.message };
}
