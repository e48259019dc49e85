import { PREPARE_FAILED } from "../../model/claims.ts";
import type { ObservedEvent } from "../../model/observed.ts";
import type { Change, Finding, Missing, PodExplanationDecision } from "../../model/why.ts";
import { shellWord } from "../../text/shell-word.ts";
import { claimPart, claimsOf, devicesFor, notAllocated, unallocatedClaims } from "./claims.ts";
import { admissionExcerpt } from "./excerpts.ts";
import { imageFinding } from "./image.ts";
import { nodeAt } from "./node-at.ts";
import { admissionOf } from "./refused.ts";
import {
  conditionOf,
  containerOf,
  containersNow,
  eventsOf,
  finding,
  isWord,
  missing,
  type PodContainer,
  type WhyContext,
  wordOf,
  wordOfCondition,
  wordOfEvent,
} from "./why-context.ts";

/** Waiting reasons of a container before it has run. kubelet 1.36: the errors of images, kuberuntime and sync results. */
const OF_IMAGES: ReadonlySet<string> = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "ImageInspectError",
  "RegistryUnavailable",
  "SignatureValidationFailed",
]);
const OF_CONFIGURATION: ReadonlySet<string> = new Set([
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
  "PreCreateHookError",
  "PreStartHookError",
  "PostStartHookError",
]);
/** Waiting without an error: the kubelet has not reached the container yet. */
const NOT_YET: ReadonlySet<string> = new Set(["ContainerCreating", "PodInitializing"]);

/** Findings about why a pod waits: for a node, its volumes, its sandbox, an image, or an earlier container. */
export function startOf(of: WhyContext): readonly Finding[] {
  const { pod } = of.subject;
  const phase = pod?.status?.phase;
  if (phase === "Succeeded" || phase === "Failed") return [];
  const unscheduled = unscheduledOf(of);
  if (unscheduled !== null) return [unscheduled];
  const waiting = containersNow(of).flatMap((one) => waitingOf(of, one));
  const init = initOf(of);
  if (pod === null) return fromEvents(of);
  if (waiting.length > 0 || init !== null) return [...waiting, ...(init === null ? [] : [init])];
  return phase === "Pending" ? [notStarted(of)] : [];
}

function waitingOf(of: WhyContext, one: PodContainer): readonly Finding[] {
  const { reason = "", message } = one.status?.state?.waiting ?? {};
  if (OF_IMAGES.has(reason)) return [imageFinding(of, one, wordOf("container", reason, message))];
  if (!OF_CONFIGURATION.has(reason)) return [];
  const events = eventsOf(of, "Failed").filter((event) => containerOf(event) === one.name);
  const words = [wordOf("container", reason, message), ...events.slice(-1).map(wordOfEvent)];
  return [finding("config-error", { since: events[0]?.first ?? null, container: one.name, words, numbers: {} })];
}

/**
 * Init containers run one after the other: the first that has not succeeded blocks the rest. A sidecar no longer blocks once it
 * has started.
 */
function initOf(of: WhyContext): Finding | null {
  if (of.subject.pod?.status?.phase !== "Pending") return null;
  const init = containersNow(of).filter(({ isInit }) => isInit);
  const at = init.findIndex(({ spec, status }) =>
    spec?.restartPolicy === "Always" ? status?.started !== true : status?.state?.terminated?.exitCode !== 0,
  );
  const first = init[at];
  if (first?.status === undefined || first.status === null) return null;
  const { state, lastState } = first.status;
  const ended = state?.terminated ?? lastState?.terminated;
  if (state?.running === undefined && ended === undefined && NOT_YET.has(state?.waiting?.reason ?? "")) return null;
  const words = [
    wordOf("container", state?.waiting?.reason, state?.waiting?.message),
    wordOf("container", ended?.reason, ended?.message, ended?.finishedAt ?? null),
  ].filter(isWord);
  const rest = [...init.slice(at + 1), ...containersNow(of).filter(({ isInit }) => !isInit)];
  return finding("init-waiting", {
    since: state?.running?.startedAt ?? ended?.startedAt ?? null,
    container: first.name,
    words,
    numbers: { index: at + 1, of: init.length, waiting: rest.map(({ name }) => name) },
  });
}

/** What the last warning is about, for a pod whose containers the kubelet has not started. */
const ABOUT: Readonly<Record<string, string>> = {
  FailedMount: "volume",
  FailedAttachVolume: "volume",
  FailedMapVolume: "volume",
  [PREPARE_FAILED]: "claims",
  FailedCreatePodSandBox: "sandbox",
  FailedPodSandBoxStatus: "sandbox",
  NetworkNotReady: "sandbox",
  Pulling: "image",
  FailedCreatePodContainer: "container",
  Failed: "container",
};

function notStarted(of: WhyContext): Finding {
  const { pod, events } = of.subject;
  const relevant = events.filter(({ reason }) => ABOUT[reason] !== undefined);
  const last = relevant.at(-1);
  if (last?.reason === PREPARE_FAILED) return claimsOf(of, last);
  const unallocated = last === undefined ? notAllocated(of) : null;
  if (unallocated !== null) return unallocated;
  const scheduled = conditionOf(of, "PodScheduled");
  const begun = (pod?.status?.containerStatuses ?? []).length > 0 || pod?.status?.startTime !== undefined;
  return finding("not-started", {
    since: relevant[0]?.first ?? scheduled?.lastTransitionTime ?? pod?.metadata.creationTimestamp ?? null,
    words: latestOfEach(relevant).map(wordOfEvent),
    numbers: { pending: last === undefined ? (begun ? "container" : "kubelet") : (ABOUT[last.reason] as string) },
    missing: events.length > 0 ? [] : [missing(of, "events", "what the kubelet does with it, and what fails")],
  });
}

/** The last event of each reason. */
const latestOfEach = (events: readonly ObservedEvent[]): readonly ObservedEvent[] =>
  [...Map.groupBy(events, ({ reason }) => reason).values()].map((group) => group.at(-1) as ObservedEvent);

const MAX_NODES = 500;

/** The finding for a pod without a node: the scheduler's message, and whether each known node's kubelet would admit the pod. */
function unscheduledOf(of: WhyContext): Finding | null {
  const { pod, node, held } = of.subject;
  const events = eventsOf(of, "FailedScheduling");
  const condition = conditionOf(of, "PodScheduled");
  const isBegun = (pod?.status?.phase ?? "Pending") !== "Pending";
  if (node !== null || isBegun || (pod === null && events.length === 0)) return null;
  const words = [
    ...events.slice(-1).map(wordOfEvent),
    ...(condition?.status === "False" ? [wordOfCondition(condition)] : []),
  ];
  const gates = (pod?.spec?.schedulingGates ?? []).map(({ name }) => name);
  const claims = gates.length > 0 ? [] : unallocatedClaims(of);
  const known = of.decides && held !== null && gates.length === 0 ? [...of.evidence.nodes.keys()].sort() : [];
  const nodes = known.slice(0, MAX_NODES);
  const asked = nodes.map((name) => askNode(of, name));
  const lacks = [
    ...(pod === null ? [missing(of, "pod", "what it asks for")] : []),
    ...(words.length === 0 ? [missing(of, "events", "the scheduler's messages")] : []),
    ...(nodes.length === 0 && gates.length === 0
      ? [{ ...missing(of, "node", "what each node can give"), command: "kubectl get pods,nodes -A -o json" }]
      : []),
    ...(known.length > nodes.length ? [othersMissing(of, known.length)] : []),
    ...(claims.length > 0 && claimPart(of, "resourceSlices") === undefined
      ? [missing(of, "resourceSlices", "which devices drivers have for its claims")]
      : []),
  ];
  return finding("unscheduled", {
    since: condition?.lastTransitionTime ?? events[0]?.first ?? pod?.metadata.creationTimestamp ?? null,
    words,
    numbers: { gates, claims: claims.map(({ metadata }) => metadata.name) },
    decisions: asked.flatMap(({ decisions }) => decisions),
    whatWouldChange: [...claims.map(devicesFor), ...asked.flatMap(({ changes }) => changes)],
    missing: [...lacks, ...asked.flatMap((one) => one.missing)],
  });
}

function othersMissing({ subject: { ref } }: WhyContext, nodes: number): Missing {
  const why = `what ${nodes - MAX_NODES} of the ${nodes} nodes can give: ${MAX_NODES} are asked at a time; ask others by name`;
  const pod = shellWord(`${ref.namespace}/${ref.name}`);
  return { piece: "node", why, command: `nodewise decide admission --pod ${pod} --node NODE` };
}

interface AskedNode {
  readonly decisions: readonly PodExplanationDecision[];
  readonly changes: readonly Change[];
  readonly missing: readonly Missing[];
}

/** Decides whether the kubelet of a node would admit the pod as a new one. */
function askNode(of: WhyContext, node: string): AskedNode {
  const none = { decisions: [], changes: [], missing: [] };
  const then = nodeAt(of.evidence, { node, atMs: null, without: of.subject.ref });
  if (!then.ok) return { ...none, missing: [missing(of, "node", `${node} cannot be decided on: ${then.error}`)] };
  const asked = admissionOf(of, then.value, false);
  if (!asked.ok) return { ...none, missing: [missing(of, "node", `${node}: ${asked.error}`)] };
  const { decision, head } = asked.value;
  const decisions = [
    { kind: "admission", ...head, agrees: null, differs: null, excerpt: admissionExcerpt(decision) } as const,
  ];
  const changes = decision.admit
    ? []
    : decision.counterfactuals.map((one) => ({ ...one, numbers: { ...one.numbers, node } }));
  return { decisions, changes, missing: [] };
}

/** Without the Pod object, its events show what it waited for last. */
function fromEvents(of: WhyContext): readonly Finding[] {
  const images = of.subject.events.filter(isOfImage);
  const last = of.subject.events.findLast(({ reason }) =>
    ["Started", "Pulled", ...Object.keys(ABOUT)].includes(reason),
  );
  if (last === undefined || last.reason === "Started" || last.reason === "Pulled") return [];
  const lastImage = images.at(-1);
  if (lastImage !== undefined) {
    const name = containerOf(lastImage) ?? "";
    const one: PodContainer = { name, isInit: false, spec: null, status: null };
    return [imageFinding(of, one, ...latestOfEach(images).map(wordOfEvent))];
  }
  return [notStarted(of)];
}
const isOfImage = ({ reason, message }: ObservedEvent): boolean =>
  reason === "ErrImageNeverPull" ||
  reason === "InspectFailed" ||
  (reason === "Failed" && /image|Err(?:ImagePull|ImageNeverPull)/i.test(message)) ||
  (reason === "BackOff" && message.startsWith("Back-off pulling image"));
