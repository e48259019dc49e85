import type { Profile, TextMap } from "../pod.ts";
import type { At } from "./at.ts";

const PREFIX = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST = "localhost/";

/** A container's profile as older manifests say it; null: they say nothing. kubelet 1.36: getProfileFromPodAnnotations. */
export function annotatedProfile(annotations: TextMap, container: string): Profile | null {
  const text = Object.hasOwn(annotations, PREFIX + container) ? annotations[PREFIX + container] : undefined;
  if (text === "runtime/default") return { type: "RuntimeDefault" };
  if (text === "unconfined") return { type: "Unconfined" };
  if (text?.startsWith(LOCALHOST)) return { type: "Localhost", ref: text.slice(LOCALHOST.length) };
  return null;
}

/** Annotations that name no container, or no profile: each is told at its place. */
export function checkAppArmor(annotations: At, containers: ReadonlySet<string>): void {
  for (const key of annotations.keys) {
    if (!key.startsWith(PREFIX)) continue;
    const at = annotations.field(key);
    if (!containers.has(key.slice(PREFIX.length))) at.invalid("container not found");
    else if (!/^(?:runtime\/default|unconfined|localhost\/.+)$/.test(at.text()))
      at.invalid("invalid AppArmor profile name");
  }
}
