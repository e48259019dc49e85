import { type Fields, fieldsOf } from "../../../api/base/own.ts";
import { type Amount, isSame } from "../../../api/model/amount.ts";
import { parseQuantity } from "../../../api/model/quantity.ts";
import type { Actuation } from "../../lifecycle/record.ts";
import { listOf } from "../status/node-view.ts";

/** `resources` by container name; the pod's own resources under the empty name. */
type ResourcesByName = Actuation["former"];
const LISTS = ["initContainers", "containers"] as const;
const POD = "";

/** Reads the resources of a v1.Pod; missing resources are empty. kubelet 1.36: allocationFromPod. */
export function resourcesIn(object: Fields): ResourcesByName {
  const spec = fieldsOf(object["spec"]);
  const containers = LISTS.flatMap((list) => listOf(spec[list]));
  return {
    ...(spec["resources"] === undefined ? {} : { [POD]: fieldsOf(spec["resources"]) }),
    ...Object.fromEntries(containers.map((c) => [String(c["name"]), fieldsOf(c["resources"])])),
  };
}

/** The pod with other resources; containers that `resources` does not name keep theirs. kubelet 1.36: updatePodFromAllocation. */
export function withResources(object: Fields, resources: ResourcesByName): Fields {
  const spec = fieldsOf(object["spec"]);
  const replaced = (c: Fields): Fields => {
    const other = resources[String(c["name"])];
    return other === undefined ? c : { ...c, resources: other };
  };
  const lists = LISTS.filter((list) => Array.isArray(spec[list])).map((list) => [
    list,
    listOf(spec[list]).map(replaced),
  ]);
  const own = resources[POD];
  return {
    ...object,
    spec: { ...spec, ...Object.fromEntries(lists), ...(own === undefined ? {} : { resources: own }) },
  };
}

interface Split {
  /** The part that takes effect at once: everything except the resources, which stay as allocated. */
  readonly atOnce: Fields;
  /** True: the pod requests other resources. */
  readonly isResize: boolean;
}

/** Splits a changed pod. Amounts that are equal but written differently take effect at once. */
export function split(desired: Fields, allocated: Fields): Split {
  const [now, then] = [resourcesIn(allocated), resourcesIn(desired)];
  const changed = Object.keys(now)
    .filter((name) => then[name] !== undefined || name === POD)
    .filter((name) => !sameResources(now[name] ?? {}, then[name] ?? {}));
  const isAdded = then[POD] !== undefined && now[POD] === undefined;
  const kept = Object.fromEntries(changed.map((name) => [name, now[name] ?? {}]));
  const { resources: _own, ...spec } = fieldsOf(desired["spec"]);
  const base = isAdded ? { ...desired, spec } : desired;
  return { atOnce: withResources(base, kept), isResize: changed.length > 0 || isAdded };
}

/** Checks that all amounts of both are equal. */
export function sameResources(one: Fields, other: Fields): boolean {
  return (["requests", "limits"] as const).every((part) => {
    const [a, b] = [amountsOf(one[part]), amountsOf(other[part])];
    return a.size === b.size && [...a].every(([name, amount]) => isSame(amount, b.get(name)));
  });
}

function amountsOf(list: unknown): ReadonlyMap<string, Amount> {
  const read = Object.entries(fieldsOf(list)).map(([name, text]) => [name, parseQuantity(String(text))] as const);
  return new Map(read.flatMap(([name, q]) => (q.ok ? [[name, q.value.amount] as const] : [])));
}
