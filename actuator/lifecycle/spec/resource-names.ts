import { isExtendedResource } from "../../../api/model/resource-name.ts";
import { shown } from "./at.ts";
import { qualifiedName } from "./names.ts";

const OF_CONTAINERS = ["cpu", "memory", "ephemeral-storage"];
const COUNTED = ["pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"];
/** Names without a domain, of quotas most of them. kubernetes 1.36: standardResources. */
const STANDARD: ReadonlySet<string> = new Set([
  ...[...OF_CONTAINERS, "storage"].flatMap((name) => [name, `requests.${name}`]),
  ...OF_CONTAINERS.map((name) => `limits.${name}`),
  ...[...COUNTED, "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"],
]);
const OF_PODS = ["cpu", "hugepages-", "memory"];

export const isHugePages = (name: string): boolean => name.startsWith("hugepages-");
/** Of Kubernetes' own domain, which is also that of names without one. kubernetes 1.36: IsNativeResource. */
const isNative = (name: string): boolean => !name.includes("/") || isOfKubernetes(name);
export const isOfKubernetes = (name: string): boolean => name.includes("kubernetes.io/");
/** A request may be less than its limit, and be without one. kubernetes 1.36: IsOvercommitAllowed. */
export const mayOvercommit = (name: string): boolean => isNative(name) && !isHugePages(name);

/** What the API server says against a resource's name; empty: nothing. */
export type NameCheck = (name: string) => readonly string[];
const invalid = (name: string, message: string): string => `Invalid value: ${shown(name)}: ${message}`;

/** kubernetes 1.36: validateContainerResourceName. */
export const ofContainers: NameCheck = (name) => {
  const faults = [...ofAnything(name)];
  if (!name.includes("/")) {
    const isGiven = OF_CONTAINERS.includes(name) || isHugePages(name);
    if (!isGiven) faults.push(invalid(name, "must be a standard resource for containers"));
  } else if (!isNative(name) && !isExtendedResource(name)) {
    faults.push(invalid(name, "doesn't follow extended resource name standard"));
  }
  return faults;
};

/** kubernetes 1.36: validatePodResourceName. */
export const ofPods: NameCheck = (name) => {
  const faults = ofAnything(name);
  if (faults.length > 0 || OF_PODS.includes(name) || isHugePages(name)) return faults;
  return [`Unsupported value: ${shown(name)}: supported values: ${OF_PODS.map(shown).join(", ")}`];
};

/** kubernetes 1.36: validateResourceName. */
function ofAnything(name: string): readonly string[] {
  const says = qualifiedName(name);
  if (says.length > 0) return says.map((message) => invalid(name, message));
  const isKnown = name.includes("/") || STANDARD.has(name) || isHugePages(name.replace(/^requests\./, ""));
  return isKnown ? [] : [invalid(name, "must be a standard resource type or fully qualified")];
}
