import { namespacedName } from "../../model/forms.ts";
import { isTaken } from "../../model/resize.ts";
import type { Change, ExcerptOf, Finding, FindingOf, Missing, PodExplanationDecision } from "../../model/why.ts";
import { resizeExcerpt } from "./excerpts.ts";
import { ask, nodeAt } from "./node-at.ts";
import { admissionOf, differenceOf } from "./refused.ts";
import {
  conditionOf,
  containersNow,
  eventsOf,
  finding,
  isWord,
  missing,
  type WhyContext,
  wordOfCondition,
  wordOfEvent,
} from "./why-context.ts";

type ResizeExcerpt = ExcerptOf<"resize">;

/** Findings about a resize of a running pod that is deferred, infeasible or in progress. */
export function resizeOf(of: WhyContext): readonly Finding[] {
  const { phase } = of.subject.pod?.status ?? {};
  if (phase === "Succeeded" || phase === "Failed") return [];
  const pending = conditionOf(of, "PodResizePending");
  const progress = conditionOf(of, "PodResizeInProgress");
  const numbers = { resources: changesOf(of) };
  const found: Finding[] = [];
  if (pending?.status === "True") {
    const isInfeasible = pending.reason === "Infeasible";
    const events = eventsOf(of, isInfeasible ? "ResizeInfeasible" : "ResizeDeferred").slice(-1);
    // an outcome has the message that a snapshot leaves out of the condition
    const seen = events[0]?.outcome?.outcome;
    const message = pending.message || (seen?.message ?? "");
    const since = pending.lastTransitionTime ?? seen?.at ?? null;
    const words = [wordOfCondition(pending), ...events.map(wordOfEvent)];
    // a deferred resize waits for capacity
    const cause = isInfeasible ? resizeCause(message) : "capacity";
    const asked = of.decides
      ? askAgain(of, cause, { status: isInfeasible ? "Infeasible" : "Deferred", message })
      : NOTHING;
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

/** Requested CPU and memory that differ from what is in force. */
function changesOf(of: WhyContext): Resources {
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

interface ResizeAnswer {
  readonly decisions: readonly PodExplanationDecision[];
  readonly whatWouldChange: readonly Change[];
  readonly missing: readonly Missing[];
}
const NOTHING: ResizeAnswer = { decisions: [], whatWouldChange: [], missing: [] };

/** The decision on the resize that the pod's spec requests, compared with the kubelet's message. */
function askAgain(of: WhyContext, cause: ResizeCause, condition: ResizeCondition): ResizeAnswer {
  const { subject, evidence } = of;
  const ways = waysToResize(cause, condition.message);
  const none: ResizeAnswer = { ...NOTHING, whatWouldChange: ways };
  if (subject.node === null) return none;
  const then = nodeAt(evidence, { node: subject.node, atMs: null, about: subject.ref });
  if (!then.ok) return { ...none, missing: [missing(of, "node", then.error)] };
  const { lacks } = then.value;
  const unknown = [
    ...(lacks.has("node") ? [missing(of, "node", "what it can give")] : []),
    ...(lacks.has("pods") ? [missing(of, "pods", "what others hold")] : []),
  ];
  if (lacks.has("node")) return { ...none, missing: unknown };
  const name = `${subject.ref.namespace}/${subject.ref.name}`;
  // the API server's own check needs the changed spec; the kubelet never makes that check
  const asked = ask("resize", then.value, { pod: name, ...(isOfApiServer(condition.message) && { spec: {} }) });
  if (!asked.ok) return { ...none, missing: [...unknown, missing(of, "node", asked.error.message)] };
  const { head, decided } = asked.value;
  const excerpt = resizeExcerpt(of, decided.decision);
  if (excerpt === null || excerpt.status === "Unchanged")
    return { ...none, missing: [...unknown, missing(of, "state files", "what is allocated", "allocated_pods_state")] };
  const compared = comparedTo(condition, excerpt, lacks);
  const policy = compared.agrees === null && cause !== "capacity" && lacks.has("kubeletConfiguration");
  return {
    decisions: [{ kind: "resize", ...head, ...compared, excerpt }],
    whatWouldChange: cause === "capacity" ? remediesOf(excerpt) : [...ways, ...admissionAsNew(of, subject.node)],
    missing: [...unknown, ...(policy ? [missing(of, "kubeletConfiguration", "what the node resizes")] : [])],
  };
}

interface ResizeCondition {
  readonly status: "Deferred" | "Infeasible";
  readonly message: string;
}

/** The kubelet's message compared with the decision; a difference means nothing if part of the node is unknown. */
function comparedTo(
  { status, message }: ResizeCondition,
  decided: ResizeExcerpt,
  lacks: ReadonlySet<string>,
): Pick<PodExplanationDecision, "agrees" | "differs"> {
  const isStatus = decided.status === status || (decided.status === "Rejected" && status === "Infeasible");
  if (isStatus && decided.message === message) return { agrees: true, differs: null };
  const taken = isTaken(decided) ? "the kubelet would take it now" : null;
  const reason = isStatus ? status : decided.status;
  const differs =
    taken ?? differenceOf({ reason: status, message }, { admit: false, reason, message: decided.message });
  // the kubelet's message is from a time with other pods
  const isAsThen = !isStatus && !lacks.has("pods") && !lacks.has("kubeletConfiguration");
  return { agrees: isAsThen ? false : null, differs };
}

/** Changes that make room: smaller requests of the scarce resource, or other pods that leave. */
function remediesOf({
  status,
  check,
  resources,
  largest,
  terminating,
  shrinks,
  leave,
}: ResizeExcerpt): readonly Change[] {
  if (isTaken({ status }) || (check !== null && check !== "capacity")) return [];
  const short = new Map(resources.flatMap((one) => (one.insufficient > 0 ? [[one.resource, one.requested]] : [])));
  const smaller = largest.flatMap(({ resource, quantity: atMost }): readonly Change[] => {
    const requested = short.get(resource);
    if (requested === undefined || atMost === 0) return [];
    return [{ code: "resize_at_most", numbers: { resource, requested, atMost, less: requested - atMost } }];
  });
  const byPods = [
    ["resize_terminating", terminating],
    ["resize_shrinks", shrinks],
    ["resize_leave", leave ?? []],
  ] as const;
  const others = byPods.flatMap(([code, pods]) =>
    pods.length === 0 ? [] : [{ code, numbers: { pods: pods.map(namespacedName).join(", ") } }],
  );
  return [...smaller, ...others];
}

/** Whether a pod of that size would be admitted if this one did not exist. */
function admissionAsNew(of: WhyContext, node: string): readonly Change[] {
  const then = nodeAt(of.evidence, { node, atMs: null, without: of.subject.ref });
  const asked = then.ok ? admissionOf(of, then.value, false) : then;
  return asked.ok && asked.value.decision.admit ? [{ code: "resize_anew", numbers: {} }] : [];
}

type ResizeCause = FindingOf<"resize-infeasible">["numbers"]["cause"];

/**
 * Messages for an infeasible resize: the kubelet's, 1.34 to 1.37 (podResizesAdmitHandler, features_*.go), and the API server's,
 * whose checks are made here if there is no API server (ValidatePodResize, the admission plugin PodResize).
 */
const WORDS: readonly (readonly [form: RegExp, cause: ResizeCause])[] = [
  [/didn't have enough (?:capacity|allocatable resources):/, "capacity"],
  [/alongside CPU Manager policy/, "cpu-manager-policy"],
  [/alongside Memory Manager policy/, "memory-manager-policy"],
  [/^In-place resize of containers with swap/, "swap"],
  [/^Memory-backed emptyDir volume resize/, "memory-volume"],
  [/^In-place resize of static-pods/, "static-pod"],
  [/^In-place pod(?:-level resources)? resize is not supported on/, "platform"],
  [/^\w+ is disabled$/, "feature-gate"],
  [/^Pod QOS Class may not change|cannot be removed$|^only cpu and memory resources are mutable/, "not-resizable"],
];
const resizeCause = (message: string): ResizeCause => WORDS.find(([form]) => form.test(message))?.[1] ?? "unknown";

/** Whether the message is from the API server's check of a patch, or from its replacement where there is no API server. */
const isOfApiServer = (message: string): boolean =>
  resizeCause(message) === "not-resizable" || message.startsWith("node didn't have enough allocatable resources:");

/** Changes after which the kubelet would reconsider the resize; none if the cause is the pod itself or the node's size. */
function waysToResize(cause: ResizeCause, message: string): readonly Change[] {
  switch (cause) {
    case "cpu-manager-policy":
      return [setting("InPlacePodVerticalScalingExclusiveCPUs", "cpuManagerPolicy: none")];
    case "memory-manager-policy":
      return [setting("InPlacePodVerticalScalingExclusiveMemory", "memoryManagerPolicy: None")];
    case "memory-volume":
      return message.endsWith("is disabled") ? [setting("InPlacePodVerticalScalingMemoryBackedVolumes")] : [];
    case "feature-gate":
      return [setting(message.replace(/ is disabled$/, ""))];
    case "swap":
      return [{ code: "resize_restart_policy", numbers: {} }];
    default:
      return [];
  }
}
const setting = (gate: string, named?: string): Change => ({
  code: "resize_setting",
  numbers: { gate, ...(named === undefined ? {} : { setting: named }) },
});
