import * as z from "zod";
import { type Form, podRef, REASONS_OF_PODS } from "./forms.ts";
import { type KindSpec, PLAIN } from "./kind-spec.ts";
import { podAsk } from "./pod-ask.ts";

/** The decision of the kind `claims`: what the kubelet's DRA manager does for ResourceClaims. */

const strings = z.array(z.string());
const claimRef = { namespace: z.string(), name: z.string(), uid: z.string() };

const draCall = () =>
  z
    .strictObject({
      driver: z.string(),
      service: z
        .string()
        .nullable()
        .describe(
          "the gRPC service of the driver that the kubelet calls: v1.DRAPlugin or v1beta1.DRAPlugin; null: the driver is not known",
        ),
      operation: z.enum(["NodePrepareResources", "NodeUnprepareResources"]),
      claims: z.array(z.strictObject(claimRef)),
    })
    .describe("one call to a driver, with all the claims that the call contains");
export type DraCall = Form<typeof draCall>;

const CLAIM_STATES = ["not-needed", "prepared", "to-prepare", "to-join", "refused", "not-reached"] as const;
const podClaim = () =>
  z.strictObject({
    entry: z
      .string()
      .describe(
        "the claim's name in the pod's spec.resourceClaims; empty: the claim that the scheduler created for extended resources",
      ),
    claim: z
      .string()
      .nullable()
      .describe("the name of the ResourceClaim; null: none was created, or its name is not known"),
    state: z
      .enum(CLAIM_STATES)
      .describe(
        "to-join: another pod already has the claim prepared; refused: the claim because of which the pod does not start; not-reached: the claim comes after the refused one",
      ),
    drivers: z
      .array(
        z.strictObject({
          driver: z.string(),
          call: z
            .enum(["done", "to-make", "left-out"])
            .describe(
              "done: the driver is not called again; to-make: the kubelet calls the driver; left-out: no allocation result of the driver needs the call",
            ),
        }),
      )
      .describe("the drivers whose devices are allocated to the claim"),
  });

const containerOfPod = () =>
  z.strictObject({
    container: z.string(),
    cdiDevices: strings.describe(
      "the CDI devices that the kubelet passes to the runtime, from the drivers that have answered",
    ),
    pending: strings.describe("the drivers whose answer is not known; post it in dra.drivers[].answers"),
    error: z.string().nullable().describe("the kubelet's message if the container does not start; null: it starts"),
  });

const podOfClaims = () =>
  z.strictObject({
    pod: podRef,
    message: z
      .string()
      .nullable()
      .describe(
        "the message of the pod's event FailedPrepareDynamicResources; null: the claims of the pod can be prepared",
      ),
    claims: z.array(podClaim()),
    calls: z
      .array(draCall())
      .describe("the calls to drivers that the kubelet makes before it creates the pod's sandbox"),
    containers: z
      .array(containerOfPod())
      .describe("the containers with their CDI devices; empty if the pod does not start"),
  });
export type PodOfClaims = Form<typeof podOfClaims>;

const knownClaim = () =>
  z.strictObject({
    ...claimRef,
    pods: z.array(podRef).describe("the pods that use the claim; it is unprepared once the last of them has ended"),
    prepared: z.boolean(),
    drivers: z.array(z.strictObject({ driver: z.string(), devices: strings, cdiDevices: strings })),
  });

const givenBack = () =>
  z.strictObject({
    pod: podRef,
    when: z
      .enum(["containers-stopped", "reconcile"])
      .describe(
        "when the kubelet unprepares the claims; containers-stopped: when the pod's containers have stopped; reconcile: within a minute, because the kubelet no longer knows the pod",
      ),
    claims: strings.describe("the claims that no other pod uses, which the kubelet unprepares"),
    kept: strings.describe("the claims that other pods still use, which stay prepared"),
    calls: z.array(draCall()),
    error: z
      .string()
      .nullable()
      .describe("the kubelet's message if the claims cannot be unprepared; the kubelet tries again"),
  });

const ALLOCATION_FAULTS = [
  "no-slice",
  "no-device",
  "old-generation",
  "incomplete-pool",
  "other-node",
  "tainted",
  "given-twice",
  "counter-overdrawn",
  "capacity-overdrawn",
  "not-shareable",
  "twice-in-pool",
  "no-request",
  "no-class",
] as const;
const allocationFault = () =>
  z.strictObject({
    claim: z.string().describe("NAMESPACE/NAME"),
    request: z.string(),
    driver: z.string(),
    pool: z.string(),
    device: z.string(),
    fault: z.enum(ALLOCATION_FAULTS),
    message: z.string(),
  });
export type AllocationFault = Form<typeof allocationFault>;

/** Warnings about the posted objects that the kubelet itself does not give. */
const CLAIM_WARNINGS = [
  "ended",
  "being-deleted",
  "gate-off",
  "no-claims",
  "claim-elsewhere",
  "request-without-device",
  "driver-not-registered",
  "answer-for-no-claim",
  "device-not-allocated",
  "no-cdi-device",
] as const;
const claimWarning = () =>
  z.strictObject({
    about: z.string().describe("NAMESPACE/NAME of the pod, or the name of the driver, that the warning is about"),
    warning: z.enum(CLAIM_WARNINGS),
    message: z.string(),
  });
export type ClaimWarning = Form<typeof claimWarning>;

const RESOURCE_SOURCES = ["claim", "device-plugin", "node", "nothing"] as const;
const extendedResource = () =>
  z.strictObject({
    pod: podRef,
    container: z.string(),
    resource: z.string(),
    by: z
      .enum(RESOURCE_SOURCES)
      .nullable()
      .describe(
        "the source of the container's resource; claim: a ResourceClaim; device-plugin: a device plugin; node: the node's status lists the resource and no device plugin has it, so it is counted and the container gets no device; nothing: no source on the node; null: not known",
      ),
    claim: z.string().nullable(),
    requests: strings.describe("the names of the requests in the claim that are for the resource"),
    classes: strings.describe("the DeviceClasses that provide the extended resource"),
    plugin: z
      .boolean()
      .describe(
        "true: a device plugin of the node has the resource; if the snapshot lists no device plugins, every resource in the node's status counts as theirs",
      ),
  });
export type ExtendedResource = Form<typeof extendedResource>;

const resourceHealth = z.strictObject({
  resourceID: z.string(),
  health: z.enum(["Healthy", "Unhealthy", "Unknown"]),
  message: z.string().exactOptional(),
});
const containerHealth = () =>
  z
    .strictObject({
      pod: podRef,
      container: z.string(),
      claims: z.array(z.strictObject({ name: z.string(), resources: z.array(resourceHealth) })),
    })
    .describe("allocatedResourcesStatus in the status of the container");

export const claimsDecision = z.lazy(() =>
  z.strictObject({
    startErrors: strings.describe("the kubelet's messages if a kubelet with this dra_manager_state does not start"),
    refusal: z
      .strictObject({ reason: z.string(), message: z.string() })
      .nullable()
      .describe("the event of the pod in the ask; null: the ask names no pod, or the pod's claims can be prepared"),
    pods: z.array(podOfClaims()).describe("the pod in the ask; if the ask names no pod, every pod with claims"),
    known: z.array(knownClaim()).describe("the claims in dra_manager_state"),
    givenBack: z.array(givenBack()).describe("the claims that the kubelet unprepares now, by pod"),
    extendedResources: z.array(extendedResource()),
    allocationFaults: z.array(allocationFault()).describe("faults in the allocations of the scheduler"),
    warnings: z
      .array(claimWarning())
      .describe(
        "why nothing is prepared for the pod in the ask, and which drivers or requests give its containers no device",
      ),
    health: z
      .array(containerHealth())
      .describe("the health of the devices of each container; empty if the feature gate ResourceHealthStatus is off"),
  }),
);
export type ClaimsDecision = Form<typeof claimsDecision>;

/** The event of a pod whose claims cannot be prepared. kubelet 1.36: events.FailedPrepareDynamicResources. */
export const PREPARE_FAILED = "FailedPrepareDynamicResources";

/**
 * The waiting reason of a container whose claimed devices could not be configured. kubelet 1.36:
 * ErrCreateContainerConfig.
 */
const NOT_CONFIGURED = "CreateContainerConfigError";
/** Why a pod or one of its containers does not start; null: all containers start. */
export function startFault({ message, containers }: PodOfClaims): string | null {
  if (message !== null) return PREPARE_FAILED;
  return containers.some(({ error }) => error !== null) ? NOT_CONFIGURED : null;
}

/** The parts of that event's message. */
export interface PrepareWords {
  /** The part that the kubelet itself wrote. */
  readonly own: string;
  /**
   * The result of a call to a driver, in the driver's words or those of the connection to it; null: no driver was
   * involved.
   */
  readonly driver: string | null;
  /** The claim that the driver failed to prepare; null: the message names none. */
  readonly claim: string | null;
}
/** kubelet 1.37: prepareResources. */
export function prepareWords(message: string): PrepareWords {
  const { own = message, claim = null, driver = null } = CALLED.exec(message)?.groups ?? {};
  return { own, driver, claim };
}
const CALLED =
  /^(?<own>.*?: NodePrepareResources(?: failed for ResourceClaim (?<claim>[^\s:]+))?)(?:: | )(?<driver>.*)$/s;

const CLAIMS_REASONS = [
  ...REASONS_OF_PODS,
  "kubelet_does_not_start",
  "no_claims",
  "dra_off",
  "claim_prepared",
  "claim_to_prepare",
  "claim_to_join",
  "claim_not_needed",
  "claim_refused",
  "driver_left_out",
  "cdi_devices_given",
  "devices_not_known",
  "drivers_not_known",
  "claim_kept",
  "claim_given_back",
  "resource_by_claim",
  "resource_by_plugin",
  "resource_listed",
  "resource_counted",
  "resource_by_nothing",
  "resource_not_known",
  "resource_gate_off",
  "resource_by_both",
  "allocation_fault",
] as const;

export const claims = {
  decides:
    "which DRA driver prepares which ResourceClaims of a pod, which CDI devices its containers get, or why it does not start",
  ask: podAsk,
  decision: claimsDecision,
  reasons: CLAIMS_REASONS,
  // without an asked pod, the reason comes from the first listed pod that has one
  reasonOf: ({ refusal, pods }: ClaimsDecision): string | null =>
    refusal?.reason ?? pods.map(startFault).find((reason) => reason !== null) ?? null,
  podPartsOf: ({ pods, givenBack }: ClaimsDecision) => [...pods, ...givenBack],
  facts: null,
  traits: {
    ...PLAIN,
    defaultsConfiguration: true,
    whatIf: "not-asked",
    nodePage: "snapshot",
    up: "not-asked",
    collected: null,
  },
} as const satisfies KindSpec;
