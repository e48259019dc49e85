import { container } from "./containers.ts";
import type { Json } from "./snapshots.ts";

/** A v1.Pod as it is posted: of one container `c` that asks for nothing, unless its spec has others. */
export const pod = (
  name: string,
  { metadata, spec, status }: { metadata?: Json; spec?: Json; status?: Json } = {},
) => ({
  metadata: { name, uid: `uid-${name}`, ...metadata },
  spec: { containers: [container("c")], ...spec },
  ...(status !== undefined && { status }),
});
/** One whose container requests this. */
export const requesting = (name: string, requests: Json = {}, spec: Json = {}) =>
  pod(name, { spec: { containers: [container("c", requests)], ...spec } });
/** The pod `p` of these containers; `more` takes the place of its parts. */
export const podOf = (containers: readonly Json[], spec: Json = {}, more: Json = {}): Json => ({
  metadata: { name: "p", uid: "u" },
  spec: { containers, ...spec },
  ...more,
});

const ofQos = (uid: string, only: Json): Json => podOf([only], {}, { metadata: { name: uid, uid } });
export const guaranteed = (uid: string, cpu: string, memory: string): Json =>
  ofQos(uid, container("c", undefined, { cpu, memory }));
export const burstable = (uid: string, cpu: string, memory: string): Json =>
  ofQos(uid, container("c", { cpu, memory }));
export const bestEffort = (uid: string): Json => ofQos(uid, container("c"));
