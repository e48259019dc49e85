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
      service: z.string().nullable().describe("v1.DRAPlugin or v1beta1.DRAPlugin; null: the driver is not known"),
      operation: z.enum(["NodePrepareResources", "NodeUnprepareResources"]),
      claims: z.array(z.strictObject(claimRef)),
    })
    .describe("one call to a driver, with all claims that it is asked about together");
export type DraCall = Form<typeof draCall>;

const CLAIM_STATES = ["not-needed", "prepared", "to-prepare", "to-join", "refused", "not-reached"] as const;
const podClaim = () =>
  z.strictObject({
    entry: z
      .string()
      .describe("the pod's own name for it; empty: the claim that the scheduler made for extended resources"),
    claim: z.string().nullable().describe("the ResourceClaim; null: none was made, or which one is not known"),
    state: z
      .enum(CLAIM_STATES)
      .describe(
        "to-join: a pod before this one has it prepared; refused: the one by which the pod does not start; not-reached: it comes after that one",
      ),
    drivers: z
      .array(
        z.strictObject({
          driver: z.string(),
          call: z
            .enum(["done", "to-make", "left-out"])
            .describe("done: it is not called for this pod; left-out: no result of it needs the call"),
        }),
      )
      .describe("the drivers that have a device in it"),
  });

const containerOfPod = () =>
  z.strictObject({
    container: z.string(),
    cdiDevices: strings.describe("CDI devices that the runtime is asked to add, as far as drivers have answered"),
    pending: strings.describe("drivers whose answer is not known; it is posted in dra.drivers[].answers"),
    error: z.string().nullable().describe("why the container does not start, in the kubelet's words"),
  });

const podOfClaims = () =>
  z.strictObject({
    pod: podRef,
    message: z
      .string()
      .nullable()
      .describe("of its event FailedPrepareDynamicResources; null: its claims can be prepared"),
    claims: z.array(podClaim()),
    calls: z.array(draCall()).describe("the calls that are made before its sandbox"),
    containers: z.array(containerOfPod()).describe("empty where the pod does not start"),
  });
export type PodOfClaims = Form<typeof podOfClaims>;

const knownClaim = () =>
  z.strictObject({
    ...claimRef,
    pods: z.array(podRef).describe("those that use it; it is given back once the last of them has ended"),
    prepared: z.boolean(),
    drivers: z.array(z.strictObject({ driver: z.string(), devices: strings, cdiDevices: strings })),
  });

const givenBack = () =>
  z.strictObject({
    pod: podRef,
    when: z
      .enum(["containers-stopped", "reconcile"])
      .describe("reconcile: nobody knows the pod any more; within a minute"),
    claims: strings.describe("those that no other pod uses"),
    kept: strings.describe("those that other pods still use"),
    calls: z.array(draCall()),
    error: z.string().nullable().describe("why it does not go well, in the kubelet's words; it is tried again"),
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
    about: z.string().describe("NAMESPACE/NAME of a pod, or a driver"),
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
        "who gives it to the container; node: its status lists it and no device plugin has it, so that it is counted alone; null: not known",
      ),
    claim: z.string().nullable(),
    requests: strings.describe("requests of that claim"),
    classes: strings.describe("DeviceClasses that stand for the resource"),
    plugin: z
      .boolean()
      .describe("a device plugin of the node has it; where none is posted, those have what the node's status lists"),
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
    .describe("allocatedResourcesStatus of the container's status");

export const claimsDecision = z.lazy(() =>
  z.strictObject({
    startErrors: strings.describe("why a kubelet with this dra_manager_state would not start, in its words"),
    refusal: z
      .strictObject({ reason: z.string(), message: z.string() })
      .nullable()
      .describe("the event of the asked pod; null without a pod, or when its claims can be prepared"),
    pods: z.array(podOfClaims()).describe("the asked pod; without one every pod with claims"),
    known: z.array(knownClaim()).describe("the claims of dra_manager_state"),
    givenBack: z.array(givenBack()).describe("what is unprepared now, and for whom"),
    extendedResources: z.array(extendedResource()),
    allocationFaults: z.array(allocationFault()).describe("what is wrong with what the scheduler gave"),
    warnings: z
      .array(claimWarning())
      .describe("why nothing is prepared for the asked pod, and what of drivers and requests leads to no device"),
    health: z.array(containerHealth()).describe("empty while the gate ResourceHealthStatus is off"),
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
