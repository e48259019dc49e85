import { type Fields, isObject, own } from "../../api/base/own.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { QuantityList } from "../../api/model/allocatable.ts";
import { type Amount, exactMilliValue, exactValue, fromUnits, isZero, ZERO } from "../../api/model/amount.ts";
import { parseQuantity } from "../../api/model/quantity.ts";
import type { EnvVar, PodContainer, RunnablePod } from "./pod.ts";
import { isIPv4, isIPv6, qualifiedName } from "./spec/names.ts";

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
type FieldPath = (typeof FIELD_PATHS)[number];
const isFieldPath = (path: string): path is FieldPath => (FIELD_PATHS as readonly string[]).includes(path);

/** `metadata.labels['key']`; null: it has no key. kubelet 1.36: SplitMaybeSubscriptedPath. */
function subscriptOf(path: string): { readonly map: string; readonly key: string } | null {
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

/** A variable with its value, as CRI takes it. */
export interface EnvPair {
  readonly key: string;
  readonly value: string;
}

/**
 * Replaces `$(NAME)` by its value and `$$` by one dollar; everything else stays.
 * kubernetes 1.36: third_party/forked/golang/expansion, Expand.
 */
function expand(text: string, lookUp: (name: string) => string): string {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const next = text[i + 1];
    if (text[i] !== "$" || next === undefined) {
      out += text[i];
    } else if (next === "(") {
      const end = text.indexOf(")", i + 2);
      out += end < 0 ? "$(" : lookUp(text.slice(i + 2, end));
      i = end < 0 ? i + 1 : end;
    } else {
      out += next === "$" ? "$" : `$${next}`;
      i++;
    }
  }
  return out;
}

/** A reference to an unset variable stays as it is. */
const knownOrItself =
  (known: ReadonlyMap<string, string>) =>
  (name: string): string =>
    known.get(name) ?? `$(${name})`;

const pairsToMap = (env: readonly EnvPair[]): ReadonlyMap<string, string> =>
  new Map(env.map(({ key, value }) => [key, value]));

/** A command or its arguments. kubelet 1.36: ExpandContainerCommandAndArgs. */
export function expandAll(texts: readonly string[], env: readonly EnvPair[]): readonly string[] {
  const lookUp = knownOrItself(pairsToMap(env));
  return texts.map((text) => expand(text, lookUp));
}

/** A `subPathExpr`, which needs a value of every variable. kubelet 1.36: ExpandContainerVolumeMounts. */
export function expandSubPath(expression: string, env: readonly EnvPair[]): Result<string, string> {
  const known = pairsToMap(env);
  const missing = new Set<string>();
  const expanded = expand(expression, (name) => {
    const value = known.get(name) ?? "";
    if (value === "") missing.add(name);
    return value;
  });
  return missing.size > 0 ? err(`missing value for ${[...missing].sort().join(", ")}`) : ok(expanded);
}

type ResourceFieldRef = Extract<EnvVar, { resource: string }>;
const fieldsOf = (v: unknown, name: string): Fields => {
  const field = isObject(v) ? own(v, name) : undefined;
  return isObject(field) ? field : {};
};
const listOf = (v: Fields, name: string): readonly unknown[] => {
  const list = own(v, name);
  return Array.isArray(list) ? list : [];
};
const named = (list: readonly unknown[], name: string): Fields | undefined =>
  list.filter(isObject).find((c) => c["name"] === name);

const ONE = fromUnits(1);
/** Divisors whose thousandths exceed int64, which no amount of a pod does. */
const EXA: Readonly<Record<string, number>> = { "1E": 1e18, "1Ei": 2 ** 60 };
const OVERCOMMITTED = ["cpu", "memory", "ephemeral-storage"];

/**
 * A request or limit in units of the divisor, rounded up. An unset limit is the pod's, else the node's allocatable;
 * but not for another init container, as in the kubelet. kubelet 1.36: containerResourceRuntimeValue,
 * defaultPodLimitsForDownwardAPI, ExtractContainerResourceValue.
 */
function resourceText(
  asked: ResourceFieldRef,
  self: string,
  pod: RunnablePod,
  allocatable: QuantityList,
): Result<string, string> {
  const spec = fieldsOf(pod.object, "spec");
  const regular = listOf(spec, "containers");
  const name = asked.containerName === "" ? self : asked.containerName;
  const container = named(regular, name) ?? named(listOf(spec, "initContainers"), name);
  if (container === undefined) return err(`container ${name} not found`);
  const [list = "", ...rest] = asked.resource.split(".");
  const resource = rest.join(".");
  const known = OVERCOMMITTED.includes(resource) || resource.startsWith("hugepages-");
  if ((list !== "requests" && list !== "limits") || !known) {
    return err(`unsupported container resource : ${asked.resource}`);
  }
  const limits = fieldsOf(fieldsOf(container, "resources"), "limits");
  const requests = fieldsOf(fieldsOf(container, "resources"), "requests");
  let amount = amountOf(own(limits, resource));
  // The API server makes a request of a limit.
  if (list === "requests") amount = Object.hasOwn(requests, resource) ? amountOf(own(requests, resource)) : amount;
  const isFilled = asked.containerName === "" || named(regular, name) !== undefined;
  if (list === "limits" && isZero(amount) && isFilled && OVERCOMMITTED.includes(resource)) {
    amount = amountOf(nodeLimit(spec, resource, allocatable));
  }
  return ok(unitsText(amount, asked.divisor, resource === "cpu"));
}

function nodeLimit(spec: Fields, resource: string, allocatable: QuantityList): unknown {
  const ofNode = own(allocatable, resource);
  const ofPod = own(fieldsOf(fieldsOf(spec, "resources"), "limits"), resource);
  const isPods = resource !== "ephemeral-storage" && ofNode !== undefined && !isZero(amountOf(ofPod));
  return isPods ? ofPod : ofNode;
}

/** Floats, as in Go: a last digit of a very large amount may differ from the exact one. */
function unitsText(amount: Amount, divisor: string, isCpu: boolean): string {
  const parsed = amountOf(divisor);
  const value = isCpu ? exactMilliValue : exactValue;
  const unit = own(EXA, divisor) ?? Number(value(isZero(parsed) ? ONE : parsed));
  return BigInt(Math.ceil(Number(value(amount)) / unit)).toString();
}

function amountOf(value: unknown): Amount {
  const parsed = typeof value === "string" || typeof value === "number" ? parseQuantity(String(value)) : undefined;
  return parsed?.ok === true ? parsed.value.amount : ZERO;
}

/** Values for variables that the pod's object does not have. */
export interface EnvFacts {
  /** The node's, its first family first. */
  readonly hostIPs: readonly string[];
  /** The pod's addresses from the runtime; empty on the host network. */
  readonly podIPs: readonly string[];
  /** The node's allocatable, for unset limits. */
  readonly allocatable: QuantityList;
}

/**
 * The variables of a container, in the manifest's order; if a name occurs twice, the last value. References see
 * earlier variables. Errors: the kubelet's words. kubelet 1.36: makeEnvironmentVariables.
 */
export function resolveEnv(
  container: PodContainer,
  pod: RunnablePod,
  facts: EnvFacts,
): Result<readonly EnvPair[], string> {
  const known = new Map<string, string>();
  const lookUp = knownOrItself(known);
  for (const variable of container.env) {
    const value =
      "value" in variable ? ok(expand(variable.value, lookUp)) : sourceValue(variable, container, pod, facts);
    if (!value.ok) return value;
    known.set(variable.name, value.value);
  }
  return ok([...known].map(([key, value]) => ({ key, value })));
}

function sourceValue(
  variable: Exclude<EnvVar, { value: string }>,
  container: PodContainer,
  pod: RunnablePod,
  facts: EnvFacts,
): Result<string, string> {
  return "fieldPath" in variable
    ? fieldText(variable.fieldPath, pod, facts)
    : resourceText(variable, container.name, pod, facts.allocatable);
}

/** kubelet 1.36: podFieldSelectorRuntimeValue, ExtractFieldPathAsString. */
function fieldText(path: string, pod: RunnablePod, facts: EnvFacts): Result<string, string> {
  const fault = fieldPathFault(path);
  const subscript = subscriptOf(path);
  if (subscript !== null && fault === null) {
    return ok(own(subscript.map === "metadata.labels" ? pod.labels : pod.annotations, subscript.key) ?? "");
  }
  if (!isFieldPath(path)) return err(subscript === null ? `unsupported fieldPath: ${path}` : (fault ?? ""));
  const podIPs = podAddresses(pod, facts);
  const texts = {
    "metadata.name": pod.name,
    "metadata.namespace": pod.namespace,
    "metadata.uid": pod.uid,
    "spec.nodeName": pod.spec.nodeName,
    "spec.serviceAccountName": pod.spec.serviceAccountName,
    "status.hostIP": facts.hostIPs[0] ?? "",
    "status.hostIPs": facts.hostIPs.join(","),
    "status.podIP": podIPs[0] ?? "",
    "status.podIPs": podIPs.join(","),
  };
  return ok(texts[path]);
}

/** One address per family, the node's own family first. kubelet 1.36: sortPodIPs. */
export function podAddresses(pod: RunnablePod, facts: Pick<EnvFacts, "hostIPs" | "podIPs">): readonly string[] {
  const addresses = pod.spec.hostNetwork && facts.podIPs.length === 0 ? facts.hostIPs : facts.podIPs;
  const first = facts.hostIPs[0];
  const families = first === undefined || isIPv4(first) ? [isIPv4, isIPv6] : [isIPv6, isIPv4];
  return families.flatMap((isOf) => addresses.find(isOf) ?? []);
}
