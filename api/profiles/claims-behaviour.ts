/** How the DRA manager goes about ResourceClaims. */
export interface ClaimsBehaviour {
  /** Whether dra_manager_state has the share ids of devices. */
  readonly shareIds: boolean;
  /** Whether results may do without a driver's calls, with the gate DRAOptionalNodeOperations. */
  readonly nodeOperationsSkipped: boolean;
  /** Whether a driver's new answer takes the place of the one before; otherwise its devices are added to those. */
  readonly answersReplace: boolean;
  /**
   * Whether a pod leaves only the claims that it was entered at, found by its uid where its status no longer names them, and no pod joins
   * a claim while it is given back.
   */
  readonly unpreparesByReference: boolean;
  /** How a pod without a PodGroup stands to a claim that was not made for it, with the gate DRAWorkloadResourceClaims; `panic`: the kubelet ends. */
  readonly podsWithoutGroup: "own-claims" | "panic";
  /**
   * Which requests of the scheduler's claim an extended resource stands for: the `first` that is mapped to it, `each`, or, from the
   * mappings on, each that is `mapped`. Before that a container's claims are looked up whether it uses them or not.
   */
  readonly extendedRequests: "first" | "each" | "mapped";
  /** The words for a claim of a template that was made for another pod, both as NAMESPACE/NAME. */
  readonly notOwner: (claim: string, pod: string) => string;
  /** The words for a claim that the kubelet does not know as a container starts. */
  readonly unknownClaim: (name: string, namespace: string, ofExtendedResource: boolean) => string;
  /** Whether a device's health holds as long as its driver said; otherwise 30 s. */
  readonly healthTimeouts: boolean;
  /** Whether dra_health_state has the message of a device. */
  readonly healthMessages: boolean;
  /** Whether health is asked of the drivers that register with its service, until one says that it has none; otherwise of every driver. */
  readonly healthByService: boolean;
  /** Whether a device that its driver no longer tells of leaves dra_health_state once its health has timed out; otherwise it is Unknown there. */
  readonly forgetsDevices: boolean;
  /**
   * Whose health a container's status tells: claims whose name is that of the pod's entry (`claim-names`), those of templates alone
   * (`status`), or all, with the devices of the request that is named (`requests`).
   */
  readonly healthOf: "claim-names" | "status" | "requests";
}
