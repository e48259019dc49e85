import { qualifiedName } from "./spec/names.ts";

/** The fields of a pod that a variable can hold. kubernetes 1.36: validEnvDownwardAPIFieldPathExpressions. */
const FIELD_PATHS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
] as const;
export type FieldPath = (typeof FIELD_PATHS)[number];
export const isFieldPath = (path: string): path is FieldPath => (FIELD_PATHS as readonly string[]).includes(path);

/** `metadata.labels['key']`; null: it has no key. kubelet 1.36: SplitMaybeSubscriptedPath. */
export function subscriptOf(path: string): { readonly map: string; readonly key: string } | null {
  const at = path.indexOf("['");
  return at > 0 && path.endsWith("']") && path.length >= at + 4
    ? { map: path.slice(0, at), key: path.slice(at + 2, -2) }
    : null;
}

/** The fault of the path of a `fieldRef`; null: none. kubernetes 1.36: validateObjectFieldSelector. */
export function fieldPathFault(path: string): string | null {
  const subscript = subscriptOf(path);
  if (subscript === null) {
    if (path === "spec.host" || isFieldPath(path)) return null;
    return `supported: ${FIELD_PATHS.join(", ")}, metadata.labels['KEY'], metadata.annotations['KEY']`;
  }
  const { map, key } = subscript;
  if (map !== "metadata.labels" && map !== "metadata.annotations") {
    return `error converting fieldPath: field label does not support subscript: ${path}`;
  }
  const says = qualifiedName(map === "metadata.annotations" ? key.toLowerCase() : key);
  return says.length === 0 ? null : says.join("; ");
}
