import { fieldsOf, isObject } from "../../base/own.ts";
import type { FindingCode } from "../../model/finding-numbers.ts";
import type {
  ObservedCondition,
  ObservedContainer,
  ObservedContainerStatus,
  ObservedEvent,
  ObservedSummary,
} from "../../model/observed.ts";
import {
  type Change,
  type Finding,
  type FindingOf,
  isOnlyDecided,
  type Missing,
  type Next,
  type Piece,
  type PodExplanationDecision,
  type Word,
} from "../../model/why.ts";
import { shellWord } from "../../text/shell-word.ts";
import { type Evidence, observed, observedSummary } from "./evidence.ts";
import { type Subject, timeOf } from "./find-pod.ts";
import type { EventOrOutcome } from "./outcomes.ts";

/** A pod with everything known about it. */
export interface WhyContext {
  readonly evidence: Evidence;
  readonly subject: Subject;
  /** When the live cluster was read, or else the latest time in the documents. Epoch ms; 0 if no document has a time. */
  readonly asOfMs: number;
  /** False: only the state is wanted, and no decisions are made. */
  readonly decides: boolean;
}

interface Parts<C extends FindingCode> {
  readonly since: string | null;
  readonly numbers: FindingOf<C>["numbers"];
  readonly container?: string | null;
  readonly words?: readonly Word[];
  readonly decisions?: readonly PodExplanationDecision[];
  readonly whatWouldChange?: readonly Change[];
  readonly next?: readonly Next[];
  readonly missing?: readonly Missing[];
}

export function finding<C extends FindingCode>(code: C, parts: Parts<C>): Finding {
  const { since, numbers, container = null, words = [], whatWouldChange = [], next = [], missing = [] } = parts;
  const decisions = (parts.decisions ?? []).map((one) =>
    isOnlyDecided(words) ? { ...one, agrees: null, differs: null } : one,
  );
  const made = { code, since, container, words, numbers, compared: null, decisions, whatWouldChange, next, missing };
  // the compiler does not see that code and numbers belong together
  return made as unknown as Finding;
}

/** Longer messages are cut: a container's termination message may be anything. */
const LONGEST = 4096;
export const cut = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

export const wordOfEvent = ({ reason, message, last, count, outcome }: EventOrOutcome): Word => ({
  from: outcome === undefined ? "event" : "outcome",
  reason,
  message: cut(message),
  at: last ?? null,
  count,
});
export const wordOfCondition = ({ reason = "", message = "", lastTransitionTime }: ObservedCondition): Word => ({
  from: "condition",
  reason,
  message: cut(message),
  at: lastTransitionTime ?? null,
  count: 1,
});
export const wordOf = (from: Word["from"], reason = "", message = "", at: string | null = null): Word => ({
  from,
  reason,
  message: cut(message),
  at,
  count: 1,
});

/** The pod's events with these reasons, oldest first. */
export const eventsOf = ({ subject }: WhyContext, ...reasons: readonly string[]): readonly EventOrOutcome[] =>
  subject.events.filter(({ reason }) => reasons.includes(reason));
export const conditionOf = ({ subject }: WhyContext, type: string): ObservedCondition | undefined =>
  subject.pod?.status?.conditions?.find((one) => one.type === type);

/** The container that an event is about: `spec.containers{app}`. */
export const containerOf = ({ about }: ObservedEvent): string | null =>
  /\{(.+)\}$/.exec(about.fieldPath ?? "")?.[1] ?? null;

/** A container of the pod's spec with its status, init containers first. */
export interface PodContainer {
  readonly name: string;
  readonly isInit: boolean;
  readonly spec: ObservedContainer | null;
  readonly status: ObservedContainerStatus | null;
}
export function containersNow({ subject: { pod } }: WhyContext): readonly PodContainer[] {
  const { spec, status } = pod ?? {};
  const joined = (
    isInit: boolean,
    specs: readonly ObservedContainer[] = [],
    statuses: readonly ObservedContainerStatus[] = [],
  ): readonly PodContainer[] =>
    specs.map((one) => ({
      name: one.name,
      isInit,
      spec: one,
      status: statuses.find(({ name }) => name === one.name) ?? null,
    }));
  return [
    ...joined(true, spec?.initContainers, status?.initContainerStatuses),
    ...joined(false, spec?.containers, status?.containerStatuses),
  ];
}

/** The latest of some times; null if there are none. */
export const latest = (...times: readonly (string | null | undefined)[]): string | null =>
  times.filter((one): one is string => timeOf(one) > 0).toSorted((a, b) => timeOf(b) - timeOf(a))[0] ?? null;

/** The node's /stats/summary; null if there is none, or it is of another node. */
export function summaryOf({ evidence: { parts }, subject: { node } }: WhyContext): ObservedSummary | null {
  const stats = parts.get(node ?? "")?.["stats"] ?? parts.get("")?.["stats"];
  return isObject(stats) ? observedSummary(stats) : null;
}
/** The pod's part of the node's stats. */
export const statsOf = (of: WhyContext): NonNullable<ObservedSummary["pods"]>[number] | null =>
  summaryOf(of)?.pods?.find(({ podRef: { namespace = "", name = "", uid = "" } }) =>
    isSubject(of, { namespace, name, uid }),
  ) ?? null;

const V1_FILES = ["cpu/cpu.stat", "memory/memory.max_usage_in_bytes"] as const;
const V2_FILES = ["cpu.stat", "memory.peak"] as const;
const cgroupVersionOf = ({ parts }: Evidence, { node }: Subject): unknown =>
  fieldsOf((parts.get(node ?? "") ?? parts.get(""))?.["cgroup"])["version"];

/** A missing piece and the command that gets it. `of`: the container whose file is read, or the file itself. */
export function missing({ subject, evidence }: WhyContext, piece: Piece, why: string, of = ""): Missing {
  const { namespace, name } = subject.ref;
  const pod = `-n ${shellWord(namespace)} ${shellWord(name)}`;
  const node = subject.node === null ? "NODE" : shellWord(subject.node);
  const [cpu, memory] = cgroupVersionOf(evidence, subject) === 1 ? V1_FILES : V2_FILES;
  const inside = `kubectl exec ${pod} -c ${shellWord(of)} -- cat /sys/fs/cgroup`;
  const commands: Readonly<Record<Piece, string>> = {
    pod: `kubectl get pod ${pod} -o json`,
    pods: `kubectl get pods -A --field-selector spec.nodeName=${node} -o json`,
    node: `kubectl get node ${node} -o json`,
    events: `kubectl get events -n ${shellWord(namespace)} --field-selector involvedObject.name=${shellWord(name)} -o json`,
    kubeletConfiguration: `kubectl get --raw /api/v1/nodes/${node}/proxy/configz`,
    stats: `kubectl get --raw /api/v1/nodes/${node}/proxy/stats/summary`,
    "cpu.stat": `${inside}/${cpu}`,
    "memory.peak": `${inside}/${memory}`,
    images: "crictl images -o json",
    containers: "crictl ps -a -o json",
    resourceClaims: `kubectl get resourceclaims -n ${shellWord(namespace)} -o json`,
    resourceSlices: "kubectl get resourceslices -o json",
    deviceClasses: "kubectl get deviceclasses -o json",
    "state files": `cat /var/lib/kubelet/${of}`,
    machine: "nodewise snapshot",
    history: "nodewise why --data-dir DIR (or --api URL)",
  };
  return { piece, why, command: commands[piece] };
}

/** Whether there is a reason or a message to show. */
export const isWord = ({ reason, message }: Word): boolean => reason !== "" || message !== "";

/** Whether a pod is the explained pod. */
export const isSubject = (
  { subject: { ref } }: WhyContext,
  other: { readonly namespace: string; readonly name: string; readonly uid: string },
): boolean =>
  ref.uid !== "" && other.uid !== ""
    ? ref.uid === other.uid
    : ref.namespace === other.namespace && ref.name === other.name;

export { observed, timeOf };
