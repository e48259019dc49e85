import { configurationPath } from "../../model/kubelet-configuration.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { amountDoubts } from "./amounts.ts";
import { decodeFaults } from "./decode-faults.ts";
import { headFindings } from "./document-head.ts";
import { droppedDefaults } from "./dropped.ts";
import { enforcementFindings } from "./enforcement.ts";
import { fieldFindings } from "./fields.ts";
import { error, inOrder, type LintFinding } from "./finding.ts";
import { gateFindings } from "./gates.ts";
import type { Members } from "./given.ts";
import { idleFindings } from "./idle.ts";
import { imageGcFindings } from "./image-gc.ts";
import { type LintInput, lintInput } from "./input.ts";
import { managerFindings } from "./managers.ts";
import { podFindings } from "./pods.ts";
import { amountFindings } from "./reserves.ts";
import { shutdownFindings } from "./shutdown.ts";
import { standingRenames } from "./signal-fix.ts";
import { swapFindings } from "./swap.ts";
import { thresholdFaults } from "./threshold-faults.ts";
import { thresholdFindings } from "./thresholds.ts";
import { typeFindings } from "./type-fix.ts";
import { imageFindings } from "./validate-images.ts";
import { loggingFindings } from "./validate-logging.ts";
import { numberFindings } from "./validate-numbers.ts";
import { otherFindings } from "./validate-others.ts";
import { spanFindings } from "./validate-spans.ts";
import { sysctlFindings } from "./validate-sysctls.ts";
import { taintFindings } from "./validate-taints.ts";
import { telemetryFindings } from "./validate-telemetry.ts";
import { tlsFindings } from "./validate-tls.ts";
import { wordFindings } from "./validate-words.ts";

export { LINT_SEVERITIES, type LintFinding, type LintSeverity } from "./finding.ts";

const CHECKS: readonly ((input: LintInput) => readonly LintFinding[])[] = [
  ({ gates }) => gateFindings(gates),
  numberFindings,
  wordFindings,
  spanFindings,
  otherFindings,
  taintFindings,
  imageFindings,
  loggingFindings,
  telemetryFindings,
  tlsFindings,
  sysctlFindings,
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
  const readFindings = (given: Members) => findingsOf(given, isOfKubelet, snapshot);
  const refused = typeFindings(unread, document as Members, readFindings);
  return inOrder([
    ...headFindings(document as Members),
    ...refused,
    ...readFindings(readable(document as Members, unread)),
  ]);
}
function findingsOf(configuration: Members, isOfKubelet: boolean, snapshot?: Snapshot): readonly LintFinding[] {
  const checked = (given: Members) => checkedBy(given, isOfKubelet, snapshot);
  return standingRenames(checked(configuration), configuration, checked);
}
function checkedBy(configuration: Members, isOfKubelet: boolean, snapshot?: Snapshot): readonly LintFinding[] {
  const input = lintInput(configuration, snapshot);
  const found = [...CHECKS.flatMap((check) => check(input)), ...fieldFindings(input, isOfKubelet)];
  return [...found, ...untaken(input, found)];
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

/** A field that decisions refuse, and that nothing else was said of. */
function untaken({ untaken: fields }: LintInput, found: readonly LintFinding[]): readonly LintFinding[] {
  return [...fields].flatMap(([field, why]) => {
    if (found.some((f) => f.severity === "refuses-start" && f.field.startsWith(field))) return [];
    const message = `nodewise does not take this value: ${why}`;
    return [error({ code: "not-taken", field, message, advice: "no decision can be made with it: correct it" })];
  });
}
