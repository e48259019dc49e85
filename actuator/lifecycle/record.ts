import type { BackOff } from "../../api/decide/probes/back-off.ts";
/**
 * The states of a pod on this node: it waits to be admitted; it was admitted; its containers are being stopped;
 * nothing of it runs any more. kubelet 1.36: the last three are podSyncStatus of the pod workers; a kubelet has no pod
 * that waits.
 */
export const POD_STATES = ["pending", "active", "terminating", "terminated"] as const;
export type PodState = (typeof POD_STATES)[number];

/**
 * The words for the states in a record's file and in the deprecated metric nodewise_pods. The words are older than the names and
 * must stay: an older version of the daemon reads the files, and alerts of users use the metric's labels.
 */
export const STATE_WORDS = {
  pending: "waits",
  active: "lives",
  terminating: "ends",
  terminated: "ended",
} as const satisfies Record<PodState, string>;
type StateWord = (typeof STATE_WORDS)[PodState];

/** The state of a name, or of its word in files; undefined: unknown. */
export const podStateOf = (word: unknown): PodState | undefined =>
  POD_STATES.find((state) => state === word || STATE_WORDS[state] === word);

/** A record as its file has it. */
export interface StoredRecord extends Omit<PodRecord, "state"> {
  readonly state: StateWord;
}
export const storedRecord = (record: PodRecord): StoredRecord => ({ ...record, state: STATE_WORDS[record.state] });

/** Parses a stored record; null: it is of another version, or invalid. */
export function recordOfStored(stored: Omit<PodRecord, "state"> & { readonly state: string }): PodRecord | null {
  const state = podStateOf(stored.state);
  return stored.version !== 1 || state === undefined ? null : { ...stored, state };
}

/**
 * What the daemon itself stores about a pod, in one file per pod: what the runtime cannot report after a crash. A pod
 * is started only after its record is on disk.
 */
export interface PodRecord {
  readonly version: 1;
  /** The v1.Pod as it was admitted: with the resources that are allocated to it. */
  readonly pod: Readonly<Record<string, unknown>>;
  /** The file where the pod was last read. Absent: none, or an older record. */
  readonly file?: string;
  readonly state: PodState;
  /** When the pod was first seen. */
  readonly seenAtMs: number;
  readonly admittedAtMs: number | null;
  /** The refusal of a pod that waits. */
  readonly refusal: Refusal | null;
  /** The end of a pod that is or was stopped before it ended by itself. */
  readonly end: PodEnd | null;
  /** Container's name -> its restarts. */
  readonly backOff: Readonly<Record<string, BackOff>>;
  /** The last v1.PodStatus of a terminated pod: the runtime may forget its containers. */
  readonly status?: Readonly<Record<string, unknown>>;
  /** A change of resources that is not in force yet. */
  readonly resize: PendingResize | null;
  /** How often another process stopped a container of the pod. Absent: never, or an older record. */
  readonly stoppedByOthers?: number;
}
export interface Refusal {
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
  /** The number of refusals; 0: it waits for something else. */
  readonly tries: number;
}
/** A resize in progress. `Deferred` and `Infeasible`: not admitted; `InProgress`: admitted and being carried out. */
export interface PendingResize {
  readonly reason: "Deferred" | "Infeasible" | "InProgress";
  readonly message: string;
  readonly sinceMs: number;
  /** A resize that was admitted and is not in force everywhere; it stays while a later one is not admitted. */
  readonly actuation?: Actuation;
}
export interface Actuation {
  /** The former values in force: `resources` by container name, the pod's own under the empty name. */
  readonly former: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Containers that restart for it: name -> the instance to be stopped. It survives a crash in between. */
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
  /** The grace period from the stop signal to the kill; null: the pod's own. */
  readonly graceSeconds: number | null;
  /** The decision that ordered the end; null: a person or the manifest did. */
  readonly decisionId: string | null;
  /** False: an eviction that the kubelet does not count as a disruption, since the pod exceeded its own limit. */
  readonly isDisruption?: boolean;
}

/** An event as `kubectl get events` shows it, in the kubelet's words. */
export interface PodEvent {
  readonly at: string;
  readonly type: "Normal" | "Warning";
  /** `Started`, `Killing`, `BackOff`, `FailedCreatePodSandBox`. */
  readonly reason: string;
  readonly message: string;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** The container; null: the event is about the pod. */
  readonly container: string | null;
}
