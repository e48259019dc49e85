import type { RunnablePod, SpecFault } from "../../../../actuator/lifecycle/pod.ts";
import { runnablePod } from "../../../../actuator/lifecycle/spec/pod-spec.ts";
import { podManifest } from "../../../kit/manifests.ts";

export type Fields = Record<string, unknown>;
export const CONTAINER = { name: "c", image: "localhost/busybox:1" };

/** A v1.Pod of one container, with the given fields. */
export const podObject = (spec: Fields = {}, metadata: Fields = {}): Fields =>
  podManifest("web", {
    metadata: { namespace: "default", uid: "3f2b", ...metadata },
    spec: { containers: [CONTAINER], ...spec },
  });
export const withContainer = (container: Fields, spec: Fields = {}): Fields =>
  podObject({ containers: [{ ...CONTAINER, ...container }], ...spec });

export function readPod(object: Fields): RunnablePod {
  const read = runnablePod(object);
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return read.value;
}
export function faultsOf(object: unknown): readonly SpecFault[] {
  const read = runnablePod(object);
  return read.ok ? [] : read.error;
}
/** Each fault as `path: message`, as users see it. */
export const linesOf = (object: unknown): readonly string[] =>
  faultsOf(object).map(({ path, message }) => `${path}: ${message}`);
