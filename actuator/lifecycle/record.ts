import type { PodEnd } from "./pod-end.ts";

/**
 * What the daemon itself knows of a pod, in a file a pod: what the runtime cannot tell after a crash. A pod is started
 * only after its record lies on the disk.
 */
export interface PodRecord {
  readonly version: 1;
  /** The v1.Pod as it was admitted: with the resources that are allocated to it. */
  readonly pod: Readonly<Record<string, unknown>>;
  /** Where it was read last. Absent: of no file, or an older record. */
  readonly file?: string;
  /** `waits`: refused now, tried again; `lives`; `ends`: its containers are being stopped; `ended`: nothing of it runs any more. */
  readonly state: "waits" | "lives" | "ends" | "ended";
  /** When it was first seen. */
  readonly seenAtMs: number;
  readonly admittedAtMs: number | null;
  /** Of a pod that waits. */
  readonly refusal: Refusal | null;
  /** Of one that ends or has ended before its time. */
  readonly end: PodEnd | null;
  /** Container's name -> its restarts. */
  readonly backOff: Readonly<Record<string, BackOff>>;
  /** The last v1.PodStatus of one that has ended: the runtime may forget its containers. */
  readonly status?: Readonly<Record<string, unknown>>;
  /** A change of resources that is not in force yet. */
  readonly resize: PendingResize | null;
}
export interface Refusal {
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
  /** How often it was refused; 0: it waits for something else. */
  readonly tries: number;
}
export interface BackOff {
  readonly delayMs: number;
  readonly updatedAtMs: number;
}
/** `Deferred` and `Infeasible`: what is asked for is not let in; `InProgress`: what was let in is being carried out. */
export interface PendingResize {
  readonly reason: "Deferred" | "Infeasible" | "InProgress";
  readonly message: string;
  readonly sinceMs: number;
  /** Of a change that was let in and is not in force everywhere; also while another one is not let in. */
  readonly actuation?: Actuation;
}
export interface Actuation {
  /** What was in force before: `resources` by container's name, the pod's own under the empty name. */
  readonly former: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Containers that are started anew for it: name -> the instance that is stopped. Survives a crash in between. */
  readonly restarts: Readonly<Record<string, string>>;
  /** Why it is not in force yet; empty: nothing went wrong. */
  readonly error: string;
}
