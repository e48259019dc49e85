import type { BackOff } from "../../api/decide/probes/back-off.ts";
/**
 * Where a pod is in its life on this node: it waits to be admitted; it was; its containers are being stopped; nothing of it runs
 * any more. kubelet 1.36: the last three are podSyncStatus of the pod workers; a kubelet has no pod that waits.
 */
export const POD_STATES = ["pending", "active", "terminating", "terminated"] as const;
export type PodState = (typeof POD_STATES)[number];

/**
 * The words that a record's file and the metric nodewise_pods have for the states. They are older than the names, and stay: a
 * daemon that was put back to a former version reads the files, and alerts name the metric's labels.
 */
export const STATE_WORDS = {
  pending: "waits",
  active: "lives",
  terminating: "ends",
  terminated: "ended",
} as const satisfies Record<PodState, string>;
type StateWord = (typeof STATE_WORDS)[PodState];

/** The state of a name, or of the word that stands for it in files; undefined: it is none. */
export const podStateOf = (word: unknown): PodState | undefined =>
  POD_STATES.find((state) => state === word || STATE_WORDS[state] === word);

/** A record as its file has it. */
export interface StoredRecord extends Omit<PodRecord, "state"> {
  readonly state: StateWord;
}
export const storedRecord = (record: PodRecord): StoredRecord => ({ ...record, state: STATE_WORDS[record.state] });

/** Null: it is of another version, or none. */
export function recordOfStored(stored: Omit<PodRecord, "state"> & { readonly state: string }): PodRecord | null {
  const state = podStateOf(stored.state);
  return stored.version !== 1 || state === undefined ? null : { ...stored, state };
}

/**
 * The daemon's own knowledge of a pod, in a file for each pod: what the runtime cannot tell after a crash. A pod is started
 * only after its record is on the disk.
 */
export interface PodRecord {
  readonly version: 1;
  /** The v1.Pod as it was admitted: with the resources that are allocated to it. */
  readonly pod: Readonly<Record<string, unknown>>;
  /** Where it was read last. Absent: of no file, or an older record. */
  readonly file?: string;
  readonly state: PodState;
  /** When it was first seen. */
  readonly seenAtMs: number;
  readonly admittedAtMs: number | null;
  /** The refusal of a pod that waits. */
  readonly refusal: Refusal | null;
  /** The end of one that ends or has ended before its time. */
  readonly end: PodEnd | null;
  /** Container's name -> its restarts. */
  readonly backOff: Readonly<Record<string, BackOff>>;
  /** The last v1.PodStatus of one that has ended: the runtime may forget its containers. */
  readonly status?: Readonly<Record<string, unknown>>;
  /** A change of resources that is not in force yet. */
  readonly resize: PendingResize | null;
  /** The number of times that a container of it was stopped by somebody else. Absent: none, or an older record. */
  readonly stoppedByOthers?: number;
}
export interface Refusal {
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
  /** The number of refusals; 0: it waits for something else. */
  readonly tries: number;
}
/** `Deferred` and `Infeasible`: what is asked for is not let in; `InProgress`: what was let in is being carried out. */
export interface PendingResize {
  readonly reason: "Deferred" | "Infeasible" | "InProgress";
  readonly message: string;
  readonly sinceMs: number;
  /** A resize that was admitted and is not in force everywhere; it stays while a later one is not admitted. */
  readonly actuation?: Actuation;
}
export interface Actuation {
  /** The values in force before: `resources` by container's name, the pod's own under the empty name. */
  readonly former: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Containers that are started anew for it: name -> the instance that is stopped. Survives a crash in between. */
  readonly restarts: Readonly<Record<string, string>>;
  /** Why it is not in force yet; empty: nothing went wrong. */
  readonly error: string;
}

/** Why a pod is being ended before its containers ended by themselves. */
export interface PodEnd {
  readonly cause: "deleted" | "preempted" | "evicted" | "deadline" | "drained";
  /** Reason in its status: `Preempting`, `Evicted`, `DeadlineExceeded`; empty for a pod that was deleted. */
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
  /** From the stop signal to the kill, for the containers; null: the pod's own. */
  readonly graceSeconds: number | null;
  /** The decision that ordered it; null: a person or the manifest did. */
  readonly decisionId: string | null;
  /** False: of an eviction that is no disruption by the kubelet's lights, since the pod broke a limit of its own. */
  readonly isDisruption?: boolean;
}

/** As `kubectl get events` shows it, in the kubelet's words. */
export interface PodEvent {
  readonly at: string;
  readonly type: "Normal" | "Warning";
  /** `Started`, `Killing`, `BackOff`, `FailedCreatePodSandBox`. */
  readonly reason: string;
  readonly message: string;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Null: it speaks of the pod. */
  readonly container: string | null;
}
