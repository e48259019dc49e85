import { isDnsSubdomain, isNamePart } from "../../model/resource-name.ts";
import { settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

const FIELD = "registerWithTaints";
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Taints that the kubelet does not start with. kubelet 1.36: ValidateKubeletConfiguration, CheckTaintValidation. */
export function taintFindings({ given }: LintInput): readonly LintFinding[] {
  return given.list(FIELD).flatMap((item, i) => {
    const taint = (item ?? {}) as Readonly<Record<string, unknown>>;
    const field = `${FIELD}[${i}]`;
    const time = typeof taint["timeAdded"] === "string" ? timeText(taint["timeAdded"]) : "<nil>";
    const [key, value, effect] = ["key", "value", "effect"].map((name) => String(taint[name] ?? ""));
    const wrong = wrongPart(key ?? "", value ?? "", effect ?? "");
    const found: LintFinding[] = [];
    if (wrong !== null) {
      const fault = settingFault(`${field}.${wrong.part}`, `invalid taint: {${key} ${value} ${effect} ${time ?? ""}}`);
      found.push(refusal("invalid-taint", fault, wrong.advice));
    }
    if (time !== "<nil>") found.push(timed(`${field}.timeAdded`, time));
    return found;
  });
}

interface Wrong {
  readonly part: "key" | "value" | "effect";
  readonly advice: string;
}
const NAME = "at most 63 letters, digits, `-`, `_` and `.`, which begins and ends with a letter or a digit";

/** The kubelet does not say which part; null: none. An effect may be absent. */
function wrongPart(key: string, value: string, effect: string): Wrong | null {
  if (!isQualifiedName(key))
    return { part: "key", advice: `the key is a name, or a DNS name, a slash and a name: ${NAME}` };
  if (value !== "" && !isNamePart(value)) return { part: "value", advice: `the value is ${NAME}; or none` };
  if (effect === "" || EFFECTS.includes(effect)) return null;
  const meant = EFFECTS.find((known) => known.toLowerCase() === effect.trim().toLowerCase());
  const was = meant === undefined ? "" : `; was \`${meant}\` meant?`;
  return { part: "effect", advice: `the effect is one of ${EFFECTS.join(", ")}${was}` };
}

/** kubernetes 1.36: IsQualifiedName. */
function isQualifiedName(key: string): boolean {
  const parts = key.split("/");
  const [name = "", prefix] = parts.reverse();
  return parts.length <= 2 && (prefix === undefined || isDnsSubdomain(prefix)) && isNamePart(name);
}

/** As Go prints a time of a whole second in UTC; others only roughly. Null: it is no time. */
function timeText(text: string): string | null {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} +0000 UTC`;
}

function timed(field: string, time: string | null): LintFinding {
  const advice = "take it out: when a taint was added is for the cluster to say";
  if (time !== null)
    return refusal("taint-time", settingFault(field, "invalid configuration: taint.TimeAdded is not nil"), advice);
  const fault = settingFault(field, "this is no time of RFC 3339, and a taint of a configuration must have none");
  return { ...refusal("taint-time", fault, advice), kubelet: false };
}
