import type { PodRef } from "../../model/forms.ts";
import type { RuntimeContainer, RuntimeSandbox } from "../../model/runtime.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Target } from "./gc-plan.ts";
import { uidOf } from "./pod-states.ts";
import { nanosToMs, type ObjectWithAge } from "./unix-nanos.ts";

/** A container in the answer, with the runtime's container that it was made from. */
export interface ContainerTarget extends Target, ObjectWithAge<RuntimeContainer> {
  readonly name: string;
  readonly createdAtMs: EpochMs;
}
export interface SandboxTarget extends Target, ObjectWithAge<RuntimeSandbox> {
  readonly createdAtMs: EpochMs;
}

/** `like`: a reference to another container's pod of the same uid, which is reused if it is equal. */
export const containerTarget = (c: RuntimeContainer, like: PodRef | null): ContainerTarget => ({
  target: "container",
  id: c.id,
  pod: podOf(c, like),
  name: c.metadata.name,
  attempt: c.metadata.attempt ?? null,
  state: c.state,
  createdAtMs: nanosToMs(c.createdAt),
  made: c,
});
function podOf(c: RuntimeContainer, like: PodRef | null): PodRef | null {
  const uid = uidOf(c);
  if (uid === "") return null;
  const { labels = {} } = c;
  const namespace = labels["io.kubernetes.pod.namespace"] ?? "";
  const name = labels["io.kubernetes.pod.name"] ?? "";
  return like?.uid === uid && like.name === name && like.namespace === namespace ? like : { namespace, name, uid };
}

export const sandboxTarget = (s: RuntimeSandbox): SandboxTarget => ({
  target: "sandbox",
  id: s.id,
  pod: { namespace: s.metadata.namespace ?? "", name: s.metadata.name, uid: s.metadata.uid },
  name: null,
  attempt: s.metadata.attempt ?? null,
  state: s.state,
  createdAtMs: nanosToMs(s.createdAt),
  made: s,
});

/** Whether a directory's name is `NAMESPACE_NAME_UID`, no part empty: names in Kubernetes contain no underscore. */
export function isPodLogsName(directory: string): boolean {
  const parts = directory.split("_");
  return parts.length === 3 && !parts.includes("");
}

/** The target of a directory `NAMESPACE_NAME_UID`; a name of any other form is all uid, as the kubelet reads it. */
export function podLogsTarget(directory: string): Target & { readonly pod: PodRef } {
  const parts = directory.split("_");
  const uid = parts.at(-1) ?? "";
  const [namespace = "", name = ""] = parts.length === 3 ? parts : [];
  return {
    target: "pod-logs",
    id: directory,
    pod: { namespace, name, uid },
    name: null,
    attempt: null,
    state: null,
    createdAtMs: null,
  };
}

/** The target of a log link. `of`: the link's container, if the runtime still lists it. */
export const logLinkTarget = (link: string, of: RuntimeContainer | undefined): Target => ({
  target: "log-link",
  id: link,
  pod: of === undefined ? null : podOf(of, null),
  name: of?.metadata.name ?? null,
  attempt: of?.metadata.attempt ?? null,
  state: of?.state ?? null,
  createdAtMs: of === undefined ? null : nanosToMs(of.createdAt),
});
