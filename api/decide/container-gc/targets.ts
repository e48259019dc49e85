import type { PodRef } from "../../model/managers.ts";
import type { RuntimeContainer, RuntimeSandbox } from "../../model/runtime.ts";
import type { Target } from "./ledger.ts";
import { uidOf } from "./pod-fates.ts";
import { type Aged, nanosToMs } from "./unix-nanos.ts";

export const containerTarget = ({ made: c, createdAtMs }: Aged<RuntimeContainer>): Target => ({
  target: "container",
  id: c.id,
  pod: podOf(c),
  name: c.metadata.name,
  attempt: c.metadata.attempt ?? null,
  state: c.state,
  createdAtMs,
});
export function podOf(c: RuntimeContainer): PodRef | null {
  const uid = uidOf(c);
  if (uid === "") return null;
  const { labels = {} } = c;
  return {
    namespace: labels["io.kubernetes.pod.namespace"] ?? "",
    name: labels["io.kubernetes.pod.name"] ?? "",
    uid,
  };
}

export const sandboxTarget = ({ made: { id, metadata, state }, createdAtMs }: Aged<RuntimeSandbox>): Target => ({
  target: "sandbox",
  id,
  pod: { namespace: metadata.namespace ?? "", name: metadata.name, uid: metadata.uid },
  name: null,
  attempt: metadata.attempt ?? null,
  state,
  createdAtMs,
});

/** `NAMESPACE_NAME_UID`, none of them empty: no name of Kubernetes holds an underscore. */
export function isPodLogsName(directory: string): boolean {
  const parts = directory.split("_");
  return parts.length === 3 && !parts.includes("");
}

/** A directory `NAMESPACE_NAME_UID`; what has another form is all uid, as the kubelet reads it. */
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

/** `of`: the container that it was made for, if the runtime still lists it. */
export const logLinkTarget = (link: string, of: RuntimeContainer | undefined): Target => ({
  target: "log-link",
  id: link,
  pod: of === undefined ? null : podOf(of),
  name: of?.metadata.name ?? null,
  attempt: of?.metadata.attempt ?? null,
  state: of?.state ?? null,
  createdAtMs: of === undefined ? null : nanosToMs(of.createdAt),
});
