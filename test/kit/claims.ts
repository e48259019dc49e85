import { writeClaims } from "../../api/decide/dra/checkpoint.ts";
import { ClaimInfoCache } from "../../api/decide/dra/claim-info.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { ClaimsDecision } from "../../api/model/claims.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { profileOf } from "../../api/profiles/index.ts";
import type { ApiObject, TestCluster } from "./cluster.ts";
import { container } from "./containers.ts";
import { pod } from "./pods.ts";
import { decoded, type Json, snapshot } from "./snapshots.ts";

export const DRIVER = "gpu.example.com";

/** An allocated device of a claim: `request` is the request's name; the device is in the driver's pool of node n1. */
export const result = (device: string, more: Json = {}): Json => ({
  request: "gpu",
  driver: DRIVER,
  pool: "n1",
  device,
  ...more,
});
/** A v1.ResourceClaim in the namespace `default`, allocated with these devices and reserved for the named pods. */
export const claim = (name: string, results: readonly Json[], pods: readonly string[], more: Json = {}): Json => ({
  metadata: { name, namespace: "default", uid: `claim-${name}` },
  status: {
    allocation: { devices: { results } },
    reservedFor: pods.map((pod) => ({ resource: "pods", name: pod, uid: `uid-${pod}` })),
  },
  ...more,
});
/** A ResourceSlice of node n1's pool n1 with these devices; `more` replaces parts of its spec. */
export const slice = (devices: readonly (string | Json)[], more: Json = {}): Json => ({
  metadata: { name: "slice" },
  spec: {
    driver: DRIVER,
    nodeName: "n",
    pool: { name: "n1", generation: 1, resourceSliceCount: 1 },
    devices: devices.map((device) => (typeof device === "string" ? { name: device } : device)),
    ...more,
  },
});
/** A pod whose container `c` uses these claims; each entry in the pod has the claim's name. */
export const claiming = (name: string, claims: readonly string[], more: Json = {}) =>
  pod(name, {
    spec: {
      resourceClaims: claims.map((one) => ({ name: one, resourceClaimName: one })),
      containers: [{ ...container("c"), resources: { claims: claims.map((one) => ({ name: one })) } }],
    },
    ...more,
  });
/** The driver's answer for a claim: one device with its CDI devices. */
export const answer = (claim: string, devices: readonly string[]): Json => ({
  claim: `claim-${claim}`,
  devices: devices.map((device) => ({
    requestNames: ["gpu"],
    poolName: "n1",
    deviceName: device,
    cdiDeviceIds: [`example.com/gpu=${device}`],
  })),
});

/**
 * Puts into the test cluster the pod `default/trainer` of node n1 (its uid is `uid-trainer`), its claim `gpu` with
 * device gpu-0, and the node's ResourceSlice. The claim is reserved for the pod with the uid `reservedFor`.
 */
export function putClaim({ api }: TestCluster, reservedFor: string): void {
  const { metadata, spec } = claiming("trainer", ["gpu"]) as unknown as ApiObject & { readonly spec: object };
  const status = { phase: "Pending", startTime: "2026-11-27T01:00:00Z" };
  const named = { name: "trainer", namespace: "default", uid: "uid-trainer" };
  api.put("pods", { metadata: { ...metadata, ...named }, spec: { ...spec, nodeName: "n1" }, status });
  api.put("resourceclaims", claim("gpu", [result("gpu-0")], [reservedFor]) as unknown as ApiObject);
  api.put("resourceslices", slice(["gpu-0"], { nodeName: "n1" }) as unknown as ApiObject);
}

/** The state file after a claim was prepared with device 0 for a pod. */
export function stateOf(name: string, podUid: string): { dra_manager_state: string } {
  const device = { poolName: "n1", deviceName: "0", shareId: null, requestNames: ["gpu"], cdiDeviceIds: ["x=0"] };
  const info = { namespace: "default", name, uid: `claim-${name}`, podUids: new Set([podUid]), prepared: true };
  const held = { ...info, unpreparing: false, drivers: new Map([[DRIVER, { devices: [device], skips: [] }]]) };
  return { dra_manager_state: writeClaims(new ClaimInfoCache(profileOf("1.37").behaviour.claims, [held])) };
}

/** The answer of the kind `claims` for a kubelet version, with all reasons; `refused`: there is no answer. */
export function decide(parts: Json, asked?: unknown, version = "1.37") {
  const ask = decodeAsk("claims", asked === undefined ? undefined : { pod: asked });
  if (!ask.ok) throw new Error(JSON.stringify(ask.error));
  const question = { snapshot: decoded(snapshot(parts)), facts: {}, ask: ask.value, explain: "full" } as const;
  const answered = decideKind("claims", question, profileOf(version));
  if (!answered.ok) return { refused: answered.error };
  return { ...answered.value, decision: answered.value.decision as ClaimsDecision };
}
