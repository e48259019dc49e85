import { prepareWords } from "../../model/claims.ts";
import type { FindingCode } from "../../model/finding-numbers.ts";
import type { OutcomeKind, PodOutcome } from "../../model/outcome.ts";
import type { Finding, StoryDecision } from "../../model/why.ts";
import { type Case, isSubject } from "./case.ts";
import { isNews } from "./outcomes.ts";

/** The outcomes that findings are about. */
const KIND_OF: Partial<Readonly<Record<FindingCode, OutcomeKind>>> = {
  evicted: "eviction",
  preempted: "preemption",
  refused: "admission",
  "resize-deferred": "resize",
  "resize-infeasible": "resize",
  "claims-not-prepared": "claims",
  "restarted-by-probe": "probes",
};

/**
 * The finding with the comparison that was recorded when it happened. It knew more than is asked again: where a decision that is
 * made now comes to another end than it did, nothing is said of whether that one agrees.
 */
export function withComparison(of: Case, finding: Finding): Finding {
  const kind = KIND_OF[finding.code];
  if (kind === undefined) return finding;
  const seen = of.evidence.outcomes.findLast(
    ({ outcome }) => outcome.kind === kind && isNews(outcome) && isOf(finding, outcome) && isSubject(of, outcome.pod),
  );
  if (seen === undefined) return finding;
  const { comparison: compared } = seen;
  const isSame = ({ agrees }: StoryDecision): boolean =>
    compared.verdict !== "not-comparable" && agrees === (compared.verdict === "agrees");
  const decisions = finding.decisions.map((one) => (isSame(one) ? one : { ...one, agrees: null, differs: null }));
  return { ...finding, compared, decisions } as Finding;
}

function isOf({ code, container, words }: Finding, outcome: PodOutcome): boolean {
  if (outcome.kind === "claims") {
    const { own } = prepareWords(outcome.message);
    return words.some(({ message }) => prepareWords(message).own === own);
  }
  if (outcome.kind === "resize") return code === `resize-${outcome.reason.toLowerCase()}`;
  return outcome.kind !== "probes" || outcome.container === container;
}
