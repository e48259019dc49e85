import { own } from "../../../api/base/own.ts";
import { compare, isNegative, isWhole, isZero } from "../../../api/model/amount.ts";
import { parseQuantity, type Quantity } from "../../../api/model/quantity.ts";
import { CLASS_PREFIX, isExtendedResource } from "../../../api/model/resource-name.ts";
import { type FieldValue, shown } from "./field-value.ts";
import { dnsLabel, dnsSubdomain, qualifiedName } from "./names.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

const OF_CONTAINERS = ["cpu", "memory", "ephemeral-storage"];
const COUNTED = ["pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"];
/** Names without a domain, of quotas most of them. kubernetes 1.36: standardResources. */
const STANDARD: ReadonlySet<string> = new Set([
  ...[...OF_CONTAINERS, "storage"].flatMap((name) => [name, `requests.${name}`]),
  ...OF_CONTAINERS.map((name) => `limits.${name}`),
  ...[...COUNTED, "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"],
]);
const OF_PODS = ["cpu", "hugepages-", "memory"];

const isHugePages = (name: string): boolean => name.startsWith("hugepages-");
/** Whether a name is in Kubernetes' own domain, like every name without a domain. kubernetes 1.36: IsNativeResource. */
const isNative = (name: string): boolean => !name.includes("/") || isOfKubernetes(name);
const isOfKubernetes = (name: string): boolean => name.includes("kubernetes.io/");
/** A request may be less than its limit, and be without one. kubernetes 1.36: IsOvercommitAllowed. */
const mayOvercommit = (name: string): boolean => isNative(name) && !isHugePages(name);

/** The API server's faults of a resource's name; empty: none. */
type NameCheck = (name: string) => readonly string[];
const invalid = (name: string, message: string): string => `Invalid value: ${shown(name)}: ${message}`;

/** kubernetes 1.36: validateContainerResourceName. */
const validateContainerResourceName: NameCheck = (name) => {
  const faults = [...validateResourceName(name)];
  if (!name.includes("/")) {
    const isGiven = OF_CONTAINERS.includes(name) || isHugePages(name);
    if (!isGiven) faults.push(invalid(name, "must be a standard resource for containers"));
  } else if (!isNative(name) && !isExtendedResource(name)) {
    faults.push(invalid(name, "doesn't follow extended resource name standard"));
  }
  return faults;
};

/** kubernetes 1.36: validatePodResourceName. */
const validatePodResourceName: NameCheck = (name) => {
  const faults = validateResourceName(name);
  if (faults.length > 0 || OF_PODS.includes(name) || isHugePages(name)) return faults;
  return [`Unsupported value: ${shown(name)}: supported values: ${OF_PODS.map(shown).join(", ")}`];
};

/** kubernetes 1.36: validateResourceName. */
function validateResourceName(name: string): readonly string[] {
  const says = qualifiedName(name);
  if (says.length > 0) return says.map((message) => invalid(name, message));
  const isKnown = name.includes("/") || STANDARD.has(name) || isHugePages(name.replace(/^requests\./, ""));
  return isKnown ? [] : [invalid(name, "must be a standard resource type or fully qualified")];
}

/** The pod's claims, and those that its containers use. kubernetes 1.37: ValidatePodResourceClaims, validateResourceClaimNames. */
export function checkClaims(spec: FieldValue): void {
  if (!spec.serves("draDrivers")) return;
  const names = new Set<string>();
  for (const at of spec.field("resourceClaims").items()) {
    checkFields(at, RULES.PodResourceClaim);
    const name = at.field("name");
    if (name.isEmpty) name.required();
    else if (names.has(name.text())) name.duplicate();
    else name.invalids(dnsLabel(name.text()));
    names.add(name.text());
    const sources = ["resourceClaimName", "resourceClaimTemplateName"].map((source) => at.field(source));
    const given = sources.filter((source) => !source.isAbsent);
    if (given.length === 0) at.fault("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    if (given.length > 1) at.fault("at most one of `resourceClaimName`, `resourceClaimTemplateName` may be specified");
    for (const source of given) source.invalids(dnsSubdomain(source.text()));
  }
  for (const list of ["containers", "initContainers"]) {
    for (const container of spec.field(list).items()) checkUsed(container.field("resources").field("claims"), names);
  }
}
function checkUsed(list: FieldValue, names: ReadonlySet<string>): void {
  const used = new Set<string>();
  for (const at of list.items()) {
    checkFields(at, RULES.ResourceClaim);
    const [name, request] = [at.field("name").text(), at.field("request")];
    if (name === "") at.required();
    if (!request.isEmpty) request.invalids(dnsLabel(request.text()));
    const key = `${name}/${request.text()}`;
    if (used.has(key)) at.duplicate(name);
    used.add(key);
    if (name !== "" && !names.has(name))
      at.fault(`Not found: ${shown(name)}: it is none of the pod's \`resourceClaims\``);
  }
}

type Amounts = Readonly<Record<string, Quantity>>;

/** Checks a container's resources, devices of plugins among them. */
export const checkResources = (at: FieldValue): void => check(at, validateContainerResourceName);
/** Checks the resources of a whole pod, which has no devices. kubernetes 1.36: validatePodResources. */
export const checkPodResources = (at: FieldValue): void => check(at, validatePodResourceName);

/**
 * Names and amounts that can be, and requests that fit their limits: of devices they are whole and equal. The decisions read
 * them from the object. kubernetes 1.36: validateResourceRequirements, ValidateResourceQuantityValue.
 */
function check(at: FieldValue, names: NameCheck): void {
  if (at.isAbsent || !checkFields(at, RULES.ResourceRequirements)) return;
  const limits = amountsOf(at.field("limits"), names);
  const requests = amountsOf(at.field("requests"), names);
  for (const [name, request] of Object.entries(requests)) {
    const limit = own(limits, name);
    const place = at.field("requests");
    const value = JSON.stringify(request.text);
    if (limit === undefined) {
      if (!mayOvercommit(name)) at.field("limits").required("Limit must be set for non overcommitable resources");
    } else if (!mayOvercommit(name) && compare(request.amount, limit.amount) !== 0) {
      place.fault(`Invalid value: ${value}: must be equal to ${name} limit of ${limit.text}`);
    } else if (compare(request.amount, limit.amount) > 0) {
      place.fault(`Invalid value: ${value}: must be less than or equal to ${name} limit of ${limit.text}`);
    }
  }
}

function amountsOf(list: FieldValue, names: NameCheck): Amounts {
  if (list.isAbsent || !list.isObject()) return {};
  return Object.fromEntries(
    list.keys.flatMap((name) => {
      const at = list.field(name);
      const wrong = names(name);
      for (const fault of wrong) at.fault(fault);
      const quantity = quantityAt(at);
      if (quantity === null) return [];
      if (isNegative(quantity.amount)) at.invalid("must be greater than or equal to 0");
      const isCounted = isHugePages(name) || isExtendedResource(name);
      if (isCounted && !isWhole(quantity.amount)) at.invalid("must be an integer");
      // a kubelet accepts the name, but no node has such a resource
      const isOfClass = name.startsWith(CLASS_PREFIX) && list.serves("draDrivers");
      if (wrong.length === 0 && isOfKubernetes(name) && !isOfClass && !isZero(quantity.amount)) at.fault(NOBODYS);
      return [[name, quantity] as const];
    }),
  );
}
const NOBODYS = "no device plugin may have a name of kubernetes.io, and nothing else gives it to containers: remove it";

/** The quantity; null after its fault was reported. */
export function quantityAt(at: FieldValue): Quantity | null {
  const { value } = at;
  if (typeof value !== "string" && typeof value !== "number") {
    at.fault("expected a quantity, such as 500m or 64Mi");
    return null;
  }
  const parsed = parseQuantity(String(value));
  if (parsed.ok) return parsed.value;
  at.fault(parsed.error.message);
  return null;
}
