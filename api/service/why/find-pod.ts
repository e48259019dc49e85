import { perObject } from "../../base/cache.ts";
import { nearNames } from "../../base/near-name.ts";
import { type Fields, fieldsOf, isObject } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { namespacedName, type PodRef } from "../../model/forms.ts";
import type { ObservedEvent, ObservedPod } from "../../model/observed.ts";
import { type Evidence, issueText, type ObservedPodAt, observed } from "./evidence.ts";
import type { EventOrOutcome } from "./outcomes.ts";

/** The pod that an explanation is about, with everything known about it. */
export interface Subject {
  readonly ref: PodRef;
  /** Null if no document is the pod itself. */
  readonly held: ObservedPodAt | null;
  readonly pod: ObservedPod | null;
  /** Null if the pod is not bound to a node, or its node is unknown. */
  readonly node: string | null;
  /** Events with this pod's uid, oldest first. */
  readonly events: readonly EventOrOutcome[];
  /** The number of events of other pods with the same name, which existed before or after it. */
  readonly othersEvents: number;
  /** Uids of other pods with the same name. */
  readonly namesakes: readonly string[];
}

/** Why no pod was found. */
export interface NoSubject {
  readonly code: "no_pods" | "no_such_pod" | "ambiguous_pod" | "invalid_document";
  readonly message: string;
  /** Similar names that may have been meant. */
  readonly near: readonly string[];
}
export const NO_PODS: NoSubject = {
  code: "no_pods",
  message: "no document is about a pod: give `kubectl get pods,nodes,events -A -o json`",
  near: [],
};
const none = (code: NoSubject["code"], message: string, near: readonly string[] = []): Result<never, NoSubject> =>
  err({ code, message, near });

const isEmpty = ({ name, uid }: PodRef): boolean => name === "" && uid === "";

/** A pod that some document names. If a pod appears twice, the fuller and later one counts. */
interface Candidate {
  readonly ref: PodRef;
  readonly held: ObservedPodAt | null;
}

/** All pods that the documents mention: Pod objects, and pods named in events, stats and decisions. */
export const podsIn = perObject(({ pods, events, decisions }: Evidence): readonly Candidate[] => {
  const byUid = new Map<string, Candidate>();
  const keyOf = (ref: PodRef): string => ref.uid || namespacedName(ref);
  for (const held of pods) {
    const known = byUid.get(keyOf(held.ref))?.held;
    if (known === undefined || known === null || known.snapshot !== null || held.snapshot === null) {
      byUid.set(keyOf(held.ref), { ref: held.ref, held });
    }
  }
  const names = new Set([...byUid.values()].map(({ ref }) => namespacedName(ref)));
  const named = [...events.map(aboutOf), ...decisions.map(({ pod }) => pod)];
  for (const ref of named) {
    if (ref === null || isEmpty(ref) || byUid.has(keyOf(ref)) || names.has(namespacedName(ref))) continue;
    byUid.set(keyOf(ref), { ref, held: null });
  }
  return [...byUid.values()];
});

function aboutOf({ about }: ObservedEvent): PodRef | null {
  const { kind, namespace = "default", name, uid = "" } = about;
  return kind === "Pod" && name !== undefined ? { namespace, name, uid } : null;
}

/** How the user names a pod: NAME, NAMESPACE/NAME or a uid, with an optional namespace. */
export interface PodName {
  readonly pod: string;
  readonly namespace: string | null;
}

/** Finds the named pod. Errors: no pod matches, several match, or the match does not have the form of a pod. */
export function findPod(evidence: Evidence, { pod: given, namespace }: PodName): Result<Subject, NoSubject> {
  const all = podsIn(evidence);
  if (all.length === 0) return err(NO_PODS);
  const [space, name] = given.includes("/") ? (given.split("/", 2) as [string, string]) : [namespace, given];
  const found = all.filter(
    ({ ref }) => ref.uid === given || (ref.name === name && (space === null || ref.namespace === space)),
  );
  const spaces = [...new Set(found.map(({ ref }) => ref.namespace))].sort();
  if (spaces.length > 1) {
    const names = spaces.map((one) => `${one}/${name}`);
    return none(
      "ambiguous_pod",
      `there is a pod ${name} in ${spaces.length} namespaces: ${names.join(", ")}; name one`,
      names,
    );
  }
  const newest = found.reduce<Candidate | undefined>((a, b) => (a === undefined || isNewer(b, a) ? b : a), undefined);
  if (newest === undefined)
    return missing(
      all.map(({ ref }) => ref),
      given,
      space,
    );
  return subjectOf(evidence, newest, found);
}

/**
 * Whether the first is preferred. A pod with a document of its own comes before one that is only mentioned; otherwise the later
 * created.
 */
function isNewer(one: Candidate, than: Candidate): boolean {
  if (one.held === null || than.held === null) return one.held !== null;
  return one.held.createdAt > than.held.createdAt;
}

function missing(refs: readonly PodRef[], given: string, space: string | null): Result<never, NoSubject> {
  const bare = given.slice(given.indexOf("/") + 1);
  const elsewhere = refs.filter(({ name }) => name === bare).map(namespacedName);
  const near = elsewhere.length > 0 ? elsewhere : nearest(refs, bare, space);
  const where = space === null ? "" : ` in namespace ${space}`;
  const meant = near.length === 0 ? "" : `; there ${near.length === 1 ? "is" : "are"} ${near.join(", ")}`;
  const count = refs.length === 1 ? "1 pod" : `${refs.length} pods`;
  return none(
    "no_such_pod",
    `no pod \`${bare.slice(0, 253)}\`${where} among the ${count} that the documents tell of${meant}`,
    near,
  );
}

/** The pods with similar names; a Deployment's name finds its pods as well. */
function nearest(refs: readonly PodRef[], given: string, space: string | null): readonly string[] {
  const here = refs.filter(({ namespace }) => space === null || namespace === space);
  const begins = here.filter(({ name }) => name.startsWith(`${given}-`)).slice(0, 3);
  const names = new Set(
    nearNames(
      given,
      here.map(({ name }) => name),
    ),
  );
  return [...new Set([...begins, ...here.filter(({ name }) => names.has(name))].map(namespacedName))].slice(0, 3);
}

const eventsByPod = perObject(({ events }: Evidence) =>
  Map.groupBy(events, (event) => {
    const about = aboutOf(event);
    return about === null ? "" : namespacedName(about);
  }),
);

/** The pod with its own events; the uid separates them from those of another pod of the same name. */
export function subjectOf(
  evidence: Evidence,
  { ref, held }: Candidate,
  namesakes: readonly Candidate[] = [],
): Result<Subject, NoSubject> {
  const read = held === null ? ok(null) : observed(held);
  if (!read.ok) {
    return none("invalid_document", `${held?.place}: is no v1.Pod as Kubernetes writes it: ${issueText(read.error)}`);
  }
  const uids = new Set([ref.uid, read.value?.metadata.uid ?? ""].filter((uid) => uid !== ""));
  const named = eventsByPod(evidence).get(namespacedName(ref)) ?? [];
  const own = named.filter(({ about }) => uids.size === 0 || (about.uid ?? "") === "" || uids.has(about.uid ?? ""));
  const reported = own.find(({ component, host }) => component === "kubelet" && (host ?? "") !== "")?.host;
  const decided = evidence.decisions.find(
    ({ pod }) => pod !== null && namespacedName(pod) === namespacedName(ref),
  )?.node;
  return ok({
    ref,
    held,
    pod: read.value,
    node: (held === null ? (reported ?? decided) : held.node) || null,
    events: own.toSorted((a, b) => timeOf(a.first) - timeOf(b.first) || timeOf(a.last) - timeOf(b.last)),
    othersEvents: named.length - own.length,
    namesakes: namesakes.map((one) => one.ref.uid).filter((uid) => uid !== "" && uid !== ref.uid),
  });
}

/** Epoch ms of an RFC 3339 text; 0 if there is none. */
export function timeOf(text: string | null | undefined): number {
  const at = Date.parse(text ?? "");
  return Number.isNaN(at) ? 0 : at;
}

export const WORKLOADS = {
  Deployment: ["deploy", "deployment", "deployments"],
  ReplicaSet: ["rs", "replicaset", "replicasets"],
  StatefulSet: ["sts", "statefulset", "statefulsets"],
  DaemonSet: ["ds", "daemonset", "daemonsets"],
  ReplicationController: ["rc", "replicationcontroller", "replicationcontrollers"],
  Job: ["job", "jobs"],
  CronJob: ["cj", "cronjob", "cronjobs"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** A controller of pods: `Deployment` and `web`. */
export interface Workload {
  readonly kind: keyof typeof WORKLOADS;
  readonly name: string;
}

/**
 * The pods of a workload, found by owner references alone, so no permission to read the workload is needed. Errors: there are
 * none; lists similar names.
 */
export function podsOfWorkload(
  all: readonly Candidate[],
  { kind, name }: Workload,
): Result<readonly Candidate[], NoSubject> {
  const ownersOf = ({ held }: Candidate): readonly Workload[] => (held === null ? [] : ownersIn(held.value));
  const ofKind = all.flatMap((pod) =>
    ownersOf(pod)
      .filter((owner) => owner.kind === kind)
      .map((owner) => ({ pod, name: owner.name })),
  );
  const own = ofKind.filter((one) => one.name === name);
  if (own.length > 0) return ok(own.map(({ pod }) => pod));
  const near = nearNames(name, [...new Set(ofKind.map((one) => one.name))]);
  const meant = near.length === 0 ? "" : `; there ${near.length === 1 ? "is" : "are"} ${near.join(", ")}`;
  const message = `no pod of the ${kind} \`${name}\` is among ${all.length === 1 ? "the one" : `the ${all.length}`} looked at${meant}`;
  return err({ code: "no_such_pod", message, near });
}

/** The pod's controller, and the controller of that one if its name can be derived. */
function ownersIn({ metadata }: Fields): readonly Workload[] {
  const { ownerReferences, labels } = fieldsOf(metadata);
  const owners = (Array.isArray(ownerReferences) ? (ownerReferences as readonly unknown[]) : []).filter(isObject);
  const { kind, name } = owners.find(({ controller }) => controller === true) ?? {};
  if (typeof kind !== "string" || typeof name !== "string" || !Object.hasOwn(WORKLOADS, kind)) return [];
  const controller = { kind: kind as Workload["kind"], name };
  // a Deployment's name is a prefix of its ReplicaSets' names, a CronJob's of its Jobs' names
  const ofHash = `-${String(fieldsOf(labels)["pod-template-hash"])}`;
  if (kind === "ReplicaSet" && name.endsWith(ofHash))
    return [controller, { kind: "Deployment", name: name.slice(0, -ofHash.length) }];
  const [, ofTime] = /^(.+)-\d+$/.exec(name) ?? [];
  return kind === "Job" && ofTime !== undefined ? [controller, { kind: "CronJob", name: ofTime }] : [controller];
}
