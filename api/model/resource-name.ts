const PART = /^([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** The part after the slash of a label's or a resource's name, at most 63 characters. kubernetes 1.36: IsQualifiedName. */
export const isNamePart = (text: string): boolean => PART.test(text);
/** kubernetes 1.36: IsDNS1123Subdomain. */
export const isDnsSubdomain = (text: string): boolean => text.length <= 253 && DNS_SUBDOMAIN.test(text);

/** A resource of a domain that is not Kubernetes' own. kubernetes 1.36: IsExtendedResourceName. */
export function isExtendedResource(name: string): boolean {
  if (!name.includes("/") || name.includes("kubernetes.io/") || name.startsWith("requests.")) return false;
  const [domain, resource, ...rest] = name.split("/") as [string, string, ...string[]];
  // the name with the prefix for quotas must be valid too
  return rest.length === 0 && isDnsSubdomain(`requests.${domain}`) && isNamePart(resource);
}

/** The prefix of a DeviceClass's name in a pod's request for it as a resource. kubernetes 1.37: ResourceDeviceClassPrefix. */
export const CLASS_PREFIX = "deviceclass.resource.kubernetes.io/";
/** Whether a resource can be provided by a claim. kubernetes 1.37: IsDRAExtendedResourceName. */
export const isDraResource = (name: string): boolean => isExtendedResource(name) || name.startsWith(CLASS_PREFIX);
