import { own } from "../../base/own.ts";
import type { NodeSelectorRequirement, NodeSelectorTerm } from "../../model/placement.ts";
import type { Pod } from "../../model/pod.ts";
import { isDnsSubdomain, isNamePart } from "../../model/resource-name.ts";
import { parseWhole } from "../go/strconv.ts";

export type Labels = Readonly<Record<string, string>>;

/** Checks that the pod selects a node. `name`: the node's. kubernetes 1.36: RequiredNodeAffinity.Match. */
export function selectsNode({ spec }: Pod, labels: Labels, name: string | undefined): boolean {
  const selector = Object.entries(spec.nodeSelector ?? {});
  if (!selector.every(([key, value]) => own(labels, key) === value)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesTerms(required.nodeSelectorTerms, labels, name);
}
/** Whether at least one term matches. */
export const matchesTerms = (terms: readonly NodeSelectorTerm[], labels: Labels, name: string | undefined): boolean =>
  terms.some((term) => matches(term, labels, name));

/** Whether all requirements of a term hold; an empty or invalid term matches nothing. */
function matches(term: NodeSelectorTerm, labels: Labels, name: string | undefined): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  if (!matchExpressions.every(isValid) || !matchFields.every(isValidField)) return false;
  if (!matchExpressions.every((r) => holds(r, own(labels, r.key)))) return false;
  // without the node's name, metadata.name cannot be compared
  return name === undefined || matchFields.every((r) => fieldHolds(r, r.key === "metadata.name" ? name : ""));
}

function holds({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return value !== undefined && compares(operator, value, values[0] as string);
  }
}
/** Compares both sides as int64, for Gt and Lt. */
function compares(operator: string, value: string, than: string): boolean {
  const a = parseWhole(value);
  const b = parseWhole(than);
  if (!a.ok || !b.ok) return false;
  return operator === "Gt" ? a.value > b.value : a.value < b.value;
}
const fieldHolds = ({ operator, values = [] }: NodeSelectorRequirement, value: string): boolean =>
  operator === "In" ? value === values[0] : value !== values[0];

/** kubernetes 1.36: labels.NewRequirement. */
function isValid({ key, operator, values = [] }: NodeSelectorRequirement): boolean {
  if (!isLabelKey(key) || !values.every(isLabelValue)) return false;
  switch (operator) {
    case "In":
    case "NotIn":
      return values.length > 0;
    case "Exists":
    case "DoesNotExist":
      return values.length === 0;
    case "Gt":
    case "Lt":
      return values.length === 1 && parseWhole(values[0] as string).ok;
    default:
      return false;
  }
}
const isValidField = ({ operator, values = [] }: NodeSelectorRequirement): boolean =>
  (operator === "In" || operator === "NotIn") && values.length === 1;

const isLabelValue = (text: string): boolean => text === "" || isNamePart(text);
function isLabelKey(key: string): boolean {
  const parts = key.split("/");
  if (parts.length > 2 || !isNamePart(parts.at(-1) as string)) return false;
  return parts.length === 1 || isDnsSubdomain(parts[0] as string);
}
