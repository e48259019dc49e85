import type { ProbeOutcome, ProbeSpec, ProbeType, StoredResult } from "../../../api/model/probe-spec.ts";
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
  /** The pod's owner, as `ReplicaSet/UID`: failures of a single owner's pods are no storm. Null: the pod itself. */
  readonly owner: string | null;
  /** The pod's address; empty: the pod has none yet. */
  readonly podIP: string;
  /** The wall-clock time at which the pod's deletion was requested; null: it was not. */
  readonly deletionAtMs: number | null;
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  /** The pod's Ready condition as last reported, for a daemon that has just started. */
  readonly wasReady: boolean;
  /** Containers with and without probes; init containers only if they are sidecars. */
  readonly containers: readonly ProbedContainer[];
}
export interface ProbedContainer extends Pick<PodContainer, "name" | "isSidecar" | "ports" | "env"> {
  /** The container's id; null: the container has none yet. */
  readonly id: string | null;
  readonly state: "waiting" | "running" | "terminated";
  /** Wall-clock start time of a running container. */
  readonly startedAtMs: number | null;
  /** True: the container has ended and will restart. */
  readonly willRestart: boolean;
  /** `started` of the container's status, as last reported for this id; null: not reported. */
  readonly wasStarted: boolean | null;
  readonly probes: Readonly<Record<ProbeType, ProbeSpec | null>>;
}

/** A change of a container's stored result. */
export interface ProbeChange extends ProbeName {
  readonly containerId: string;
  readonly result: StoredResult;
  /** The former result; null: none was stored. */
  readonly was: StoredResult | null;
  /** The output of the attempt that caused the change, for people; empty: no attempt did, or it succeeded. */
  readonly output: string;
  readonly probe: ProbeSpec;
}
/** A Warning event about a container. */
export interface ProbeWarning extends ProbeName {
  readonly reason: "Unhealthy" | "ProbeWarning";
  readonly message: string;
}

/** Bytes of an attempt's output that are shown to people. */
const MAX_OUTPUT = 1024;

/** The text before the response body in a warning. kubelet 1.36: DoHTTPProbe. */
const BODY = ", Response body: ";

/**
 * The output of an attempt for people. The output of a success is empty, since it may contain secrets; a warning has its
 * message without the response body.
 */
export function outputOf(outcome: ProbeOutcome): string {
  if ("error" in outcome) return cut(outcome.error);
  const { result, output } = outcome;
  if (result === "failure") return cut(output);
  return result === "warning" ? cut(output.split(BODY, 1)[0] as string) : "";
}
/** Cuts a text to 1 KiB of UTF-8, between two characters. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_OUTPUT) return text;
  let end = MAX_OUTPUT;
  while (((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
