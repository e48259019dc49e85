import * as z from "zod";
import { LIMITS } from "../base/limits.ts";
import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { count, knownFields, nodeName, optional, quantity, sortedRecord, text } from "./fields.ts";
import { requiredNodes, taints, tolerations } from "./placement.ts";

/**
 * Dynamic resource allocation: the fields of resource.k8s.io/v1 that decisions read, and the drivers that have registered with the
 * kubelet.
 */

const few = <S extends z.ZodType>(of: S) => z.array(of).max(LIMITS.labels);
/** `kubectl get KIND -o json` prints a List, and for a named object the object alone. */
const list = <S extends z.ZodType>(of: S) => z.preprocess((v) => itemsOf(v), z.array(of).max(LIMITS.resourceObjects));
function itemsOf(v: unknown): unknown {
  if (typeof v !== "object" || v === null || Array.isArray(v)) return v;
  if ("items" in v) return v.items ?? [];
  return "metadata" in v ? [v] : v;
}

const metadata = z.object({ name: text, namespace: optional(text), uid: optional(text) });
const ownerReference = z.object({
  apiVersion: optional(text),
  kind: optional(text),
  name: optional(text),
  uid: optional(text),
  controller: optional(z.boolean()),
});

/** A device allocated to a request. kubernetes 1.37: DeviceRequestAllocationResult. */
const allocatedDevice = z.object({
  request: optional(text),
  driver: text,
  pool: optional(text),
  device: optional(text),
  adminAccess: optional(z.boolean()),
  shareID: optional(text),
  /** How much of the device's capacities this share uses. */
  consumedCapacity: optional(sortedRecord(text, quantity, LIMITS.resourcesPerList)),
  tolerations: optional(tolerations),
  skipNodeOperations: optional(few(text)),
});
export type AllocatedDevice = z.output<typeof allocatedDevice>;

const deviceClassName = optional(text);
const request = z.object({
  name: text,
  exactly: optional(z.object({ deviceClassName })),
  firstAvailable: optional(few(z.object({ name: text, deviceClassName }))),
});
const reservation = z.object({ apiGroup: optional(text), resource: optional(text), name: optional(text), uid: text });
/** A v1.ResourceClaim. */
export const resourceClaim = z.object({
  metadata: metadata.extend({ ownerReferences: optional(few(ownerReference)) }),
  spec: optional(z.object({ devices: optional(z.object({ requests: optional(few(request)) })) })),
  status: optional(
    z.object({
      allocation: optional(
        z.object({
          devices: optional(z.object({ results: optional(few(allocatedDevice)) })),
          nodeSelector: optional(requiredNodes),
        }),
      ),
      reservedFor: optional(few(reservation)),
    }),
  ),
});
export type ResourceClaim = z.output<typeof resourceClaim>;

/** Whether a v1.Pod from an API server has claims: its own, or one for its extended resources. */
export function usesClaims({ spec, status }: Fields): boolean {
  const { resourceClaims } = fieldsOf(spec);
  const isNamed = Array.isArray(resourceClaims) && resourceClaims.some(isObject);
  return isNamed || isObject(fieldsOf(status)["extendedResourceClaimStatus"]);
}

/** The parts of a snapshot's `dra` that an API server has, from resource.k8s.io/v1. */
export const CLAIM_PARTS = ["resourceClaims", "resourceSlices", "deviceClasses"] as const;
export type ClaimPart = (typeof CLAIM_PARTS)[number];

/** The nodes on which a slice, or one device of it, is available. */
const nodes = {
  nodeName: optional(nodeName),
  nodeSelector: optional(requiredNodes),
  allNodes: optional(z.boolean()),
};
const counterSet = { counters: optional(sortedRecord(text, z.object({ value: quantity }), LIMITS.labels)) };
const sliceDevice = z.object({
  name: text,
  ...nodes,
  /** How much of its pool's counter sets the device uses, which it shares with other devices. */
  consumesCounters: optional(few(z.object({ counterSet: text, ...counterSet }))),
  taints: optional(taints),
  /** Whether several claims may get shares of the device. */
  allowMultipleAllocations: optional(z.boolean()),
  capacity: optional(sortedRecord(text, z.object({ value: quantity }), LIMITS.resourcesPerList)),
  /** By name, with or without a domain: `{ string: ... }`, `{ int: ... }` and the like. */
  attributes: optional(sortedRecord(text, z.unknown(), LIMITS.resourcesPerList)),
  /** The node's own resources that the device uses. */
  nodeAllocatableResources: optional(sortedRecord(text, z.unknown(), LIMITS.resourcesPerList)),
  /** The name of the same field in 1.36. */
  nodeAllocatableResourceMappings: optional(sortedRecord(text, z.unknown(), LIMITS.resourcesPerList)),
});
export type SliceDevice = z.output<typeof sliceDevice>;
const resourceSlice = z.object({
  metadata,
  spec: z.object({
    driver: text,
    pool: z.object({ name: text, generation: optional(count), resourceSliceCount: optional(count) }),
    ...nodes,
    perDeviceNodeSelection: optional(z.boolean()),
    sharedCounters: optional(few(z.object({ name: text, ...counterSet }))),
    devices: optional(z.array(sliceDevice).max(LIMITS.labels)),
  }),
});
export type ResourceSlice = z.output<typeof resourceSlice>;

const deviceClass = z.object({ metadata, spec: optional(z.object({ extendedResourceName: optional(text) })) });
export type DeviceClass = z.output<typeof deviceClass>;

/** A device as a driver reports it to the kubelet. */
const preparedDevice = knownFields({
  requestNames: optional(few(text)).describe(
    "the names of the claim's requests that the device is for; absent: all requests",
  ),
  poolName: text,
  deviceName: text,
  shareId: optional(text),
  cdiDeviceIds: optional(few(text)).describe(
    "the ids of the CDI devices that containers get, such as example.com/gpu=0",
  ),
});
const answer = knownFields({
  claim: text.describe("the uid of the claim"),
  error: optional(text).describe("the driver's error if it does not prepare the claim"),
  devices: optional(few(preparedDevice)),
});
const driver = knownFields({
  name: text,
  services: optional(few(text)).describe("the gRPC services that the driver registers; absent: v1.DRAPlugin"),
  registered: optional(z.boolean()).describe(
    "false: the driver is not registered with the kubelet; absent: it is registered",
  ),
  answers: optional(few(answer)).describe(
    "the driver's answers to NodePrepareResources, from which the CDI devices of containers are known before the driver is called",
  ),
});
export type DraDriver = z.output<typeof driver>;

/** The part `dra` of a snapshot. */
export const dra = z.object({
  /** The claims of the node's pods; a claim that a pod names and that is not in the list is missing. */
  resourceClaims: optional(list(resourceClaim)),
  resourceSlices: optional(list(resourceSlice)),
  deviceClasses: optional(list(deviceClass)),
  drivers: optional(z.array(driver).max(LIMITS.labels)),
  /**
   * Uids of the claims that the running kubelet has prepared: after a restart it prepares each again. Absent: the claims in
   * dra_manager_state whose drivers have all responded.
   */
  preparedClaims: optional(z.array(text).max(LIMITS.resourceObjects)),
});
export type Dra = z.output<typeof dra>;
