import { many, type Sentences } from "./words.ts";

/** The sentences for the reasons of `claims`. */
export const CLAIMS_SENTENCES = {
  allocation_fault: (n) => `device ${n["device"]}: ${n["message"]}`,
  claim_given_back: () => "no other pod uses it: its drivers are asked to unprepare it",
  claim_kept: (n) =>
    `${many(n["pods"], "other pod")} still ${n["pods"] === 1 ? "uses" : "use"} it: no driver is called`,
  claim_not_needed: (n) => `nothing was made of entry ${n["entry"]}: it is passed over`,
  claim_prepared: (n) => `${n["claim"]} is prepared: ${n["drivers"] || "no driver"} is not asked again`,
  claim_refused: (n) => `${n["message"]}; it is tried again with the pod's next sync`,
  claim_to_prepare: (n) =>
    n["drivers"] === ""
      ? `${n["claim"]} has no device: no driver is called`
      : `${n["claim"]} is to be prepared by ${n["drivers"]}`,
  claim_to_join: (n) => `${n["claim"]} is prepared for a pod before this one: no driver is called again`,
  cdi_devices_given: (n) => `container ${n["container"]} gets ${n["devices"]}`,
  devices_not_known: (n) => `what container ${n["container"]} gets is known once ${n["drivers"]} has answered`,
  driver_left_out: (n) => `no result of ${n["driver"]} in ${n["claim"]} needs NodePrepareResources: it is not called`,
  drivers_not_known: () => "which drivers have registered is not known: all are taken as registered",
  dra_off: () =>
    "the gate DynamicResourceAllocation is off: this kubelet prepares no claim, and starts pods without their devices",
  no_claims: () => "no pod of the node has a ResourceClaim, and dra_manager_state has none",
  resource_by_both: (n) =>
    `a device plugin has ${n["resource"]} too, and this kubelet gives container ${n["container"]} devices of both`,
  resource_by_claim: (n) => `${n["resource"]} of container ${n["container"]} is given by the scheduler's claim`,
  resource_by_nothing: (n) => `nothing on the node gives container ${n["container"]} its ${n["resource"]}`,
  resource_by_plugin: (n) => `${n["resource"]} of container ${n["container"]} is given by a device plugin`,
  resource_counted: (n) =>
    `the node's status lists ${n["resource"]}, and no device plugin has it: it is counted, and container ${n["container"]} gets no device of it`,
  resource_listed: (n) =>
    `the node's status lists ${n["resource"]} of container ${n["container"]}: a device plugin gives it, unless it was put there by hand`,
  resource_not_known: (n) =>
    `whether anything on the node gives container ${n["container"]} its ${n["resource"]} is not known: neither the node's status nor its devices are given`,
  resource_gate_off: (n) =>
    `a claim stands behind ${n["resource"]} of container ${n["container"]}, but the gate DRAExtendedResource is off here`,
} satisfies Partial<Sentences>;
