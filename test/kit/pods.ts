import { withoutNulls } from "../../api/base/nulls.ts";
import { type Pod, pod as podSchema } from "../../api/model/pod.ts";
import { container } from "./containers.ts";
import type { Json } from "./snapshots.ts";

/** A v1.Pod as it is posted, with one container `c` without requests unless its spec has others. */
export const pod = (
  name: string,
  { metadata, spec, status }: { metadata?: Json; spec?: Json; status?: Json } = {},
) => ({
  metadata: { name, uid: `uid-${name}`, ...metadata },
  spec: { containers: [container("c")], ...spec },
  ...(status !== undefined && { status }),
});
/** A pod whose container has these requests; `more` replaces parts of it. */
export const requesting = (name: string, requests: Json = {}, spec: Json = {}, more: Json = {}) => ({
  ...pod(name, { spec: { containers: [container("c", requests)], ...spec } }),
  ...more,
});
/** The pod `p` with these containers; `more` replaces parts of it. */
export const podOf = (containers: readonly Json[], spec: Json = {}, more: Json = {}): Json => ({
  metadata: { name: "p", uid: "u" },
  spec: { containers, ...spec },
  ...more,
});
/** A pod with these containers, whose name equals its uid. */
export const namedPod = (uid: string, containers: readonly Json[], spec: Json = {}): Json =>
  podOf(containers, spec, { metadata: { name: uid, uid } });

export const guaranteed = (uid: string, cpu: string, memory: string): Json =>
  namedPod(uid, [container("c", undefined, { cpu, memory })]);
export const burstable = (uid: string, cpu: string, memory: string): Json =>
  namedPod(uid, [container("c", { cpu, memory })]);
export const bestEffort = (uid: string): Json => namedPod(uid, [container("c")]);

/** The decoded form of a posted pod; throws if the pod is invalid. */
export const decodedPod = (posted: unknown): Pod => podSchema.parse(withoutNulls(posted));
