/** How a version's DRA manager handles ResourceClaims. */
export interface ClaimsBehaviour {
  /** Whether dra_manager_state has the share ids of devices. */
  readonly shareIds: boolean;
  /** Whether a prepared result may do without calls of a driver, with the gate DRAOptionalNodeOperations. */
  readonly nodeOperationsSkipped: boolean;
  /** Whether a driver's new response replaces the previous one; otherwise its devices are added. */
  readonly answersReplace: boolean;
  /**
   * Whether unpreparing a pod affects only claims that list it, found by its uid if its status no longer names them, and no pod
   * joins a claim that is being unprepared.
   */
  readonly unpreparesByReference: boolean;
  /**
   * What happens for a pod without a PodGroup and a claim that was not made for it, with the gate DRAWorkloadResourceClaims;
   * `panic`: the kubelet crashes.
   */
  readonly podsWithoutGroup: "own-claims" | "panic";
  /**
   * Which requests of the scheduler's claim belong to an extended resource: the `first` one mapped to it, `each`, or, since the
   * mappings exist, each one that is `mapped`. Before that, a container's claims are looked up even if it does not use them.
   */
  readonly extendedRequests: "first" | "each" | "mapped";
  /** The message for a claim from a template that was made for another pod, both as NAMESPACE/NAME. */
  readonly notOwner: (claim: string, pod: string) => string;
  /** The message for a claim that the kubelet does not know when a container starts. */
  readonly unknownClaim: (name: string, namespace: string, ofExtendedResource: boolean) => string;
  /** Whether a device's health is valid as long as its driver said; otherwise 30 s. */
  readonly healthTimeouts: boolean;
  /** Whether dra_health_state has the message of a device. */
  readonly healthMessages: boolean;
  /**
   * Whether health is requested from drivers that register its service, until one reports that it has none; otherwise from every
   * driver.
   */
  readonly healthByService: boolean;
  /**
   * Whether a device that its driver no longer reports is removed from dra_health_state once its health has timed out; otherwise
   * it becomes Unknown there.
   */
  readonly forgetsDevices: boolean;
  /**
   * Which claims' health a container's status has: claims with the same name as the pod's entry (`claim-names`), only those from
   * templates (`status`), or all, with the devices of the named request (`requests`).
   */
  readonly healthOf: "claim-names" | "status" | "requests";
}
