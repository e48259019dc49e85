import { canonicalText } from "../../../api/model/quantity.ts";
import { fieldPathFault } from "../field-path.ts";
import type { EnvVar } from "../pod.ts";
import { type At, shown } from "./at.ts";
import { envName } from "./names.ts";
import { quantityAt } from "./quantity.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

const RESOURCES = ["cpu", "ephemeral-storage", "memory"].flatMap((name) => [`limits.${name}`, `requests.${name}`]);
const HUGE_PAGES = /^(?:limits|requests)\.hugepages-/;
const SIZES = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/** kubernetes 1.36: ValidateEnv. */
export function envVarsOf(list: At): readonly EnvVar[] {
  return list.items().flatMap((at) => {
    checkFields(at, RULES.EnvVar);
    const name = at.field("name");
    if (name.isEmpty) name.required();
    else name.invalids(envName(name.text()));
    const value = at.field("value");
    const from = at.field("valueFrom");
    if (from.isAbsent) return [{ name: name.text(), value: value.text() }];
    return sourceOf(name.text(), from, value);
  });
}

function sourceOf(name: string, from: At, value: At): readonly EnvVar[] {
  if (!checkFields(from, RULES.EnvVarSource)) return [];
  const sources = from.keys.filter((key) => !from.field(key).isAbsent);
  if (sources.length === 0) {
    from.fault('Invalid value: "": must specify one of: `fieldRef` or `resourceFieldRef`');
  } else if (!value.isEmpty) {
    from.fault('Invalid value: "": may not be specified when `value` is not empty');
  } else if (sources.length > 1) {
    from.fault('Invalid value: "": may not have more than one field specified at a time');
  }
  const field = from.field("fieldRef");
  const resource = from.field("resourceFieldRef");
  if (!field.isAbsent) return [{ name, fieldPath: fieldPathOf(field) }];
  return resource.isAbsent ? [] : [{ name, ...resourceOf(resource) }];
}

function fieldPathOf(at: At): string {
  checkFields(at, RULES.ObjectFieldSelector);
  const version = at.field("apiVersion");
  const fieldPath = at.field("fieldPath");
  if (!version.isEmpty && version.text() !== "v1") version.invalid("only v1 is supported");
  const path = fieldPath.text();
  if (fieldPath.isEmpty) fieldPath.required();
  else {
    const fault = fieldPathFault(path);
    if (fault !== null) fieldPath.invalid(fault);
  }
  return path === "spec.host" ? "spec.nodeName" : path;
}

function resourceOf(at: At): { resource: string; containerName: string; divisor: string } {
  checkFields(at, RULES.ResourceFieldSelector);
  const resource = at.field("resource");
  const name = resource.text();
  const isKnown = RESOURCES.includes(name) || HUGE_PAGES.test(name);
  if (resource.isEmpty) resource.required();
  else if (!isKnown) {
    const supported = RESOURCES.toSorted().map(shown).join(", ");
    resource.fault(`Unsupported value: ${shown(name)}: supported values: ${supported}`);
  }
  const divisor = divisorOf(at.field("divisor"), isKnown ? name : "");
  return { resource: name, containerName: at.field("containerName").text(), divisor };
}

/** As Go writes it; null: it is no quantity. Thousandths of an exa leave int64, so it is no amount elsewhere. */
function canonical(at: At): string | null {
  if (at.value === "1E" || at.value === "1Ei") return at.value;
  const quantity = quantityAt(at);
  return quantity === null ? null : canonicalText(quantity.amount, quantity.format);
}

/** Zero, like nothing, is one. kubernetes 1.36: validateContainerResourceDivisor. */
function divisorOf(at: At, resource: string): string {
  if (at.isAbsent) return "1";
  const text = canonical(at);
  if (text === null || text === "0") return "1";
  const isCpu = resource.endsWith(".cpu");
  const allowed = isCpu ? ["1m", "1"] : SIZES;
  const [, kind = ""] = resource.split(".");
  if (kind !== "" && !allowed.includes(text)) {
    const what = kind.startsWith("hugepages-") ? "hugepages" : kind === "ephemeral-storage" ? `local ${kind}` : kind;
    const values = isCpu ? "1m and 1" : SIZES.join(", ");
    const says = `only divisor's values ${values} are supported with the ${what.replace("-", " ")} resource`;
    at.fault(`Invalid value: ${shown(resource)}: ${says}`);
  }
  return text;
}
