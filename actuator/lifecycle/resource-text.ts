import { type Amount, exactMilliValue, exactValue, fromUnits, isZero, ZERO } from "../../api/model/amount.ts";
import type { QuantityList } from "../../api/model/decision.ts";
import { own } from "../../api/model/own.ts";
import { parseQuantity } from "../../api/model/quantity.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { EnvVar, RunnablePod } from "./pod.ts";

type Asked = Extract<EnvVar, { resource: string }>;
type Fields = Readonly<Record<string, unknown>>;
const isFields = (v: unknown): v is Fields => typeof v === "object" && v !== null && !Array.isArray(v);
const fieldsOf = (v: unknown, name: string): Fields => {
  const field = isFields(v) ? own(v, name) : undefined;
  return isFields(field) ? field : {};
};
const listOf = (v: Fields, name: string): readonly unknown[] => {
  const list = own(v, name);
  return Array.isArray(list) ? list : [];
};
const named = (list: readonly unknown[], name: string): Fields | undefined =>
  list.filter(isFields).find((c) => c["name"] === name);

const ONE = fromUnits(1);
/** Divisors whose thousandths leave int64, which no amount of a pod does. */
const EXA: Readonly<Record<string, number>> = { "1E": 1e18, "1Ei": 2 ** 60 };
const OVERCOMMITTED = ["cpu", "memory", "ephemeral-storage"];

/**
 * A request or limit in units of the divisor, rounded up. A limit that nobody set is the pod's, else what the node has to
 * give; not so of another init container, as in the kubelet. kubelet 1.36: containerResourceRuntimeValue,
 * defaultPodLimitsForDownwardAPI, ExtractContainerResourceValue.
 */
export function resourceText(
  asked: Asked,
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
