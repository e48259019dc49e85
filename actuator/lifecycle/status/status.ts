/** v1.PodStatus as JSON; what is not there is absent. Times are RFC 3339, in whole seconds, UTC. */
export interface PodStatus {
  readonly observedGeneration?: number;
  readonly phase: Phase;
  readonly conditions: readonly PodCondition[];
  readonly message?: string;
  readonly reason?: string;
  readonly hostIP?: string;
  readonly hostIPs?: readonly { readonly ip: string }[];
  readonly podIP?: string;
  readonly podIPs?: readonly { readonly ip: string }[];
  readonly startTime?: string;
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses: readonly ContainerStatus[];
  readonly qosClass: QosClass;
}
export type Phase = "Pending" | "Running" | "Succeeded" | "Failed";
export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

export interface PodCondition {
  readonly type: string;
  readonly observedGeneration?: number;
  readonly status: "True" | "False";
  readonly lastTransitionTime?: string;
  readonly reason?: string;
  readonly message?: string;
}
export interface ContainerStatus {
  readonly name: string;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string;
  readonly started: boolean;
  /** Requests, as they are allocated. */
  readonly allocatedResources?: Readonly<Record<string, unknown>>;
  readonly resources?: Resources;
}
/** One of the three; none: not known. */
export interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: { readonly startedAt: string };
  readonly terminated?: Terminated;
}
export interface Terminated {
  readonly exitCode: number;
  readonly reason?: string;
  readonly message?: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
  readonly containerID?: string;
}
/** `requests` and `limits` as a v1.Container has them. */
export type Resources = Readonly<Record<string, unknown>>;

export const isOverPhase = (phase: string | undefined): phase is "Succeeded" | "Failed" =>
  phase === "Succeeded" || phase === "Failed";

/** As v1.Time is written: whole seconds, cut. */
export const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
