import { configurationPath } from "../../model/kubelet-configuration.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { SettingFault } from "../setting-fault.ts";
import { amountDoubts } from "./amounts.ts";
import { decodeFaults } from "./decode-faults.ts";
import { droppedDefaults } from "./dropped.ts";
import { enforcementFindings } from "./enforcement.ts";
import { FIELD_TYPES } from "./field-types.ts";
import { fieldFindings } from "./fields.ts";
import { error, inOrder, type LintFinding, refusal } from "./finding.ts";
import { gateFindings } from "./gates.ts";
import type { Members } from "./given.ts";
import { idleFindings } from "./idle.ts";
import { imageGcFindings } from "./image-gc.ts";
import { type LintInput, lintInput } from "./input.ts";
import { managerFindings } from "./managers.ts";
import { podFindings } from "./pods.ts";
import { amountFindings } from "./reserves.ts";
import { shutdownFindings } from "./shutdown.ts";
import { swapFindings } from "./swap.ts";
import { thresholdFaults } from "./threshold-faults.ts";
import { thresholdFindings } from "./thresholds.ts";
import { meantDuration } from "./units.ts";
import { numberFindings } from "./validate-numbers.ts";
import { otherFindings } from "./validate-others.ts";
import { spanFindings } from "./validate-spans.ts";
import { wordFindings } from "./validate-words.ts";

export { LINT_SEVERITIES, type LintFinding, type LintSeverity } from "./finding.ts";

const CHECKS: readonly ((input: LintInput) => readonly LintFinding[])[] = [
  ({ gates }) => gateFindings(gates),
  numberFindings,
  wordFindings,
  spanFindings,
  otherFindings,
  amountFindings,
  thresholdFaults,
  managerFindings,
  swapFindings,
  droppedDefaults,
  thresholdFindings,
  imageGcFindings,
  podFindings,
  shutdownFindings,
  enforcementFindings,
  idleFindings,
  amountDoubts,
];

/**
 * What is wrong with a KubeletConfiguration, or likely to be: what keeps a kubelet of 1.36.3 from starting (in its own words),
 * what does not do what is written, and what fights. `configuration`: as a file or /configz has it, JSON already; with a
 * `snapshot` the node's sizes, machine and state files are looked at too. By severity, then field; defaults have no finding.
 */
export function lintConfiguration(configuration: unknown, snapshot?: Snapshot): readonly LintFinding[] {
  const isOfKubelet = configurationPath(configuration).length > 0;
  const document = isOfKubelet ? (configuration as Members)["kubeletconfig"] : configuration;
  if (typeof document !== "object" || document === null || Array.isArray(document)) return [noConfiguration(document)];
  if (isHuge(document)) return [HUGE];
  const unread = decodeFaults(document as Members);
  const refused = unread.map((fault) =>
    refusal("wrong-type", fault, typeAdvice(fault.message), typeFix(fault, document as Members)),
  );
  const input = lintInput(readable(document as Members, unread), snapshot);
  const found = [...refused, ...CHECKS.flatMap((check) => check(input)), ...fieldFindings(input, isOfKubelet)];
  return inOrder([...found, ...untaken(input, found)]);
}

const noConfiguration = (document: unknown): LintFinding => {
  const kind =
    document === null || document === undefined
      ? "nothing"
      : Array.isArray(document)
        ? "a list"
        : `a ${typeof document}`;
  return error({
    code: "no-configuration",
    field: "$",
    message: `this is ${kind}, and no KubeletConfiguration`,
    advice: "give its object",
  });
};

/** No configuration comes near; what was meant by a name is looked for among many. */
const MOST_ENTRIES = 2000;
const MOST_CHARACTERS = 128 * 1024;
const HUGE = error({
  code: "too-large",
  field: "$",
  message: `this has more than ${MOST_ENTRIES} entries or ${MOST_CHARACTERS} characters, which no KubeletConfiguration has`,
  advice: "give the configuration alone",
});
function isHuge(document: object): boolean {
  const queue: unknown[] = [document];
  let entries = 0;
  let characters = 0;
  for (let value = queue.pop(); value !== undefined; value = queue.pop()) {
    if (typeof value === "string") characters += value.length;
    if (typeof value === "object" && value !== null) {
      for (const [name, inner] of Object.entries(value)) {
        characters += name.length;
        if (++entries > MOST_ENTRIES) return true;
        if (inner !== undefined) queue.push(inner);
      }
    }
    if (characters > MOST_CHARACTERS) return true;
  }
  return false;
}

/** Without the fields that Go cannot read: one that is not there has its default for the other checks. */
function readable(document: Members, unread: readonly { readonly field: string }[]): Members {
  const wrong = new Set(unread.map(({ field }) => /^\w+/.exec(field)?.[0]));
  return Object.fromEntries(Object.entries(document).filter(([name]) => !wrong.has(name)));
}

function typeAdvice(message: string): string {
  if (message.includes("of type string")) return "put it in quotes: Go reads a text here";
  if (/of type u?int/.test(message)) return "a whole number, without quotes";
  if (message.includes("of type bool")) return "true or false, without quotes";
  if (message.includes("time: ")) return "a duration such as 90s or 1m30s";
  return "give it the form that the kubelet reads";
}

/** Where only the quotes are wrong, or the unit of a duration; in a field or in an entry of a map. */
function typeFix({ field, message }: SettingFault, document: Members): unknown {
  const [, name = "", entry] = /^(\w+)(?:\[("(?:[^"\\]|\\.)*")\])?$/.exec(field) ?? [];
  if (name === "") return null;
  const key = entry === undefined ? undefined : (JSON.parse(entry) as string);
  const value = key === undefined ? document[name] : (document[name] as Members)[key];
  const fixed = corrected(value, message);
  if (fixed === null) return null;
  return key === undefined ? { [name]: fixed } : { [name]: { [key]: fixed } };
}
function corrected(value: unknown, message: string): unknown {
  const type = / of type (\w+)$/.exec(message)?.[1];
  // of a duration the kubelet says that it wants a text, and a number has no unit
  if (typeof value === "number")
    return type === "string" && FIELD_TYPES.get(fieldIn(message)) === "map[string]string" ? String(value) : null;
  if (typeof value !== "string") return null;
  if (type === "int32" || type === "int64") return /^-?\d{1,9}$/.test(value) ? Number(value) : null;
  if (type === "bool") return value === "true" || value === "false" ? value === "true" : null;
  return type === undefined ? meantDuration(value) : null;
}
const fieldIn = (message: string): string => /KubeletConfiguration\.(\w+)/.exec(message)?.[1] ?? "";

/** A field that decisions refuse, and that nothing else was said of. */
function untaken({ untaken: fields }: LintInput, found: readonly LintFinding[]): readonly LintFinding[] {
  return [...fields].flatMap(([field, why]) => {
    if (found.some((f) => f.severity === "refuses-start" && f.field.startsWith(field))) return [];
    const message = `nodewise does not take this value: ${why}`;
    return [error({ code: "not-taken", field, message, advice: "no decision can be made with it: correct it" })];
  });
}
