import type { AdmissionDecision } from "../../model/preemption.ts";
import type { Change, Finding, FindingOf, Missing, StoryDecision } from "../../model/why.ts";
import {
  type Case,
  conditionOf,
  containersNow,
  eventsOf,
  finding,
  isWord,
  missing,
  wordOfCondition,
  wordOfEvent,
} from "./case.ts";
import { admissionExcerpt } from "./excerpts.ts";
import { type ResizeCause, resizeCause, waysToResize } from "./infeasible.ts";
import { nodeThen } from "./node-then.ts";
import { admissionOf, differenceOf } from "./refused.ts";

/** A change of a running pod's resources that waits, cannot be, or is being carried out. */
export function resizeOf(of: Case): readonly Finding[] {
  const { phase } = of.subject.pod?.status ?? {};
  if (phase === "Succeeded" || phase === "Failed") return [];
  const pending = conditionOf(of, "PodResizePending");
  const progress = conditionOf(of, "PodResizeInProgress");
  const numbers = { resources: changesOf(of) };
  const found: Finding[] = [];
  if (pending?.status === "True") {
    const isInfeasible = pending.reason === "Infeasible";
    const events = eventsOf(of, isInfeasible ? "ResizeInfeasible" : "ResizeDeferred").slice(-1);
    // an outcome has what a snapshot leaves out of the condition
    const seen = events[0]?.outcome?.outcome;
    const message = pending.message || (seen?.message ?? "");
    const since = pending.lastTransitionTime ?? seen?.at ?? null;
    const words = [wordOfCondition(pending), ...events.map(wordOfEvent)];
    // a resize that is deferred waits for room
    const cause = isInfeasible ? resizeCause(message) : "capacity";
    const asked = of.decides ? askAgain(of, cause, message) : NOTHING;
    found.push(
      isInfeasible
        ? finding("resize-infeasible", { since, words, numbers: { ...numbers, cause }, ...asked })
        : finding("resize-deferred", { since, words, numbers, ...asked }),
    );
  }
  if (progress?.status === "True") {
    const events = eventsOf(of, "ResizeError", "ResizeStarted").slice(-1);
    const words = [wordOfCondition(progress), ...events.map(wordOfEvent)].filter(isWord);
    found.push(finding("resize-in-progress", { since: progress.lastTransitionTime ?? null, words, numbers }));
  }
  return found;
}

type Resources = FindingOf<"resize-deferred">["numbers"]["resources"];

/** CPU and memory that are asked for, where something else is in force. */
function changesOf(of: Case): Resources {
  return containersNow(of).flatMap(({ name, spec, status }) =>
    (["requests", "limits"] as const).flatMap((list) =>
      ["cpu", "memory"].flatMap((resource) => {
        const to = spec?.resources?.[list]?.[resource];
        const from = status?.resources?.[list]?.[resource];
        if (to === undefined || String(to) === String(from)) return [];
        return [{ container: name, resource: `${list}.${resource}`, from: String(from ?? ""), to: String(to) }];
      }),
    ),
  );
}

interface Asked {
  readonly decisions: readonly StoryDecision[];
  readonly whatWouldChange: readonly Change[];
  readonly missing: readonly Missing[];
}
const NOTHING: Asked = { decisions: [], whatWouldChange: [], missing: [] };

/**
 * A resize is let in as a pod of that size would be, were it not there yet (kubelet 1.36: canResizePod). Where it is refused for
 * another cause than room, that says whether a pod made anew would come in.
 */
function askAgain(of: Case, cause: ResizeCause, message: string): Asked {
  const { subject, evidence } = of;
  const ways = waysToResize(cause, message);
  const none: Asked = { ...NOTHING, whatWouldChange: ways };
  if (subject.node === null) return none;
  const then = nodeThen(evidence, { node: subject.node, atMs: null, without: subject.ref });
  if (!then.ok) return { ...none, missing: [missing(of, "node", then.error)] };
  const lacks = [...then.value.lacks].flatMap((piece) =>
    piece === "node"
      ? [missing(of, "node", "what it can give")]
      : piece === "pods"
        ? [missing(of, "pods", "what others hold")]
        : [],
  );
  if (then.value.lacks.has("node")) return { ...none, missing: lacks };
  const asked = admissionOf(of, then.value, false);
  if (!asked.ok) return { ...none, missing: [...lacks, missing(of, "node", asked.error)] };
  const { decision, head } = asked.value;
  const resource = /enough (?:resource|capacity|allocatable resources): ([\w./-]+),/.exec(message)?.[1];
  const isKnown = resource !== undefined && !then.value.lacks.has("pods");
  const other = isKnown ? differenceOf({ reason: `OutOf${resource}`, message }, decision) : null;
  const isSame = decision.reason === `OutOf${resource}`;
  // others were there then; what the node can never carry has other words
  const isOther = isSame && other !== null && message.includes(" used: ");
  const agrees = !isKnown || isOther ? null : isSame;
  const differs = isOther || agrees === false ? other : null;
  const assumed = cause === "capacity" ? head.assumed : [...head.assumed, "the pod comes anew with this size"];
  return {
    decisions: [{ kind: "admission", ...head, assumed, agrees, differs, excerpt: admissionExcerpt(decision) }],
    whatWouldChange: cause === "capacity" ? atMost(decision) : [...ways, ...(decision.admit ? ANEW : [])],
    missing: lacks,
  };
}
const ANEW: readonly Change[] = [{ code: "resize_anew", numbers: {} }];

/** The most that would be let in now. */
const atMost = ({ counterfactuals }: AdmissionDecision): readonly Change[] =>
  counterfactuals.flatMap(({ code, numbers }): readonly Change[] =>
    code === "lower_request_admits" ? [{ code: "resize_at_most", numbers }] : [],
  );
