import type { ProbeOutcome, ProbeSpec, ProbeType, StoredResult } from "../../../api/model/probe.ts";
import type { PodContainer } from "../../lifecycle/pod.ts";
import type { ProbeName } from "../../status/probe-row.ts";

/** The stored results of containers, by probe type. kubelet 1.36: results.Manager. */
export class ProbeResults {
  readonly #byType: Readonly<Record<ProbeType, Map<string, StoredResult>>> = {
    startup: new Map(),
    liveness: new Map(),
    readiness: new Map(),
  };

  get(containerId: string, type: ProbeType): StoredResult | undefined {
    return this.#byType[type].get(containerId);
  }
  set(containerId: string, type: ProbeType, result: StoredResult): void {
    this.#byType[type].set(containerId, result);
  }
  forget(containerId: string, type: ProbeType): void {
    this.#byType[type].delete(containerId);
  }
  get size(): number {
    return Object.values(this.#byType).reduce((sum, { size }) => sum + size, 0);
  }
}

/** A pod as the probes see it. */
export interface ProbedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Its owner, as `ReplicaSet/UID`: failures of one owner's pods are no storm. Null: the pod itself. */
  readonly owner: string | null;
  /** The pod's address; empty: none yet. */
  readonly podIP: string;
  /** When its deletion was requested, by the wall clock; null: not. */
  readonly deletionAtMs: number | null;
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  /** Its Ready condition as last reported, for a daemon that has just started. */
  readonly wasReady: boolean;
  /** Containers with and without probes; of init containers only sidecars. */
  readonly containers: readonly ProbedContainer[];
}
export interface ProbedContainer extends Pick<PodContainer, "name" | "isSidecar" | "ports" | "env"> {
  /** The container's id; null: none yet. */
  readonly id: string | null;
  readonly state: "waiting" | "running" | "terminated";
  /** Wall clock; of one that runs. */
  readonly startedAtMs: number | null;
  /** True: a container that has ended will restart. */
  readonly willRestart: boolean;
  /** `started` of its status, as last reported for this id; null: not reported. */
  readonly wasStarted: boolean | null;
  readonly probes: Readonly<Record<ProbeType, ProbeSpec | null>>;
}

/** The stored result of a container has become another. */
export interface ProbeChange extends ProbeName {
  readonly containerId: string;
  readonly result: StoredResult;
  /** The result before; null: none stored. */
  readonly was: StoredResult | null;
  /** The output of the attempt that caused it, for people; empty: no attempt did, or it succeeded. */
  readonly output: string;
  readonly probe: ProbeSpec;
}
/** An event of type Warning, of a container. */
export interface ProbeWarning extends ProbeName {
  readonly reason: "Unhealthy" | "ProbeWarning";
  readonly message: string;
}

/** The most that a person is shown of an attempt. */
const MAX_OUTPUT = 1024;

/** The text that follows in a warning. kubelet 1.36: DoHTTPProbe. */
const BODY = ", Response body: ";

/**
 * Bodies and outputs of what went well are nobody's business, and may hold secrets: empty, and of a warning what it warns
 * of alone.
 */
export function outputOf(outcome: ProbeOutcome): string {
  if ("error" in outcome) return cut(outcome.error);
  const { result, output } = outcome;
  if (result === "failure") return cut(output);
  return result === "warning" ? cut(output.split(BODY, 1)[0] as string) : "";
}
/** To 1 KiB of UTF-8, between two characters. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_OUTPUT) return text;
  let end = MAX_OUTPUT;
  while (((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
