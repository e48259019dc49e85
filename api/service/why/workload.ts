import { nearNames } from "../../model/near-name.ts";
import { type Fields, fieldsOf, isObject } from "../../model/own.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { NoSubject, podsIn } from "./find-pod.ts";

export const WORKLOADS = {
  Deployment: ["deploy", "deployment", "deployments"],
  ReplicaSet: ["rs", "replicaset", "replicasets"],
  StatefulSet: ["sts", "statefulset", "statefulsets"],
  DaemonSet: ["ds", "daemonset", "daemonsets"],
  ReplicationController: ["rc", "replicationcontroller", "replicationcontrollers"],
  Job: ["job", "jobs"],
  CronJob: ["cj", "cronjob", "cronjobs"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** The owner that makes pods and keeps them: `Deployment` and `web`. */
export interface Workload {
  readonly kind: keyof typeof WORKLOADS;
  readonly name: string;
}

type Candidate = ReturnType<typeof podsIn>[number];

/** The pods of a workload by their owner references alone, which takes no right to read it. Errors: there are none, with near names. */
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

/** The controller of a pod, and what controls that one, as far as its name tells. */
function ownersIn({ metadata }: Fields): readonly Workload[] {
  const { ownerReferences, labels } = fieldsOf(metadata);
  const owners = (Array.isArray(ownerReferences) ? (ownerReferences as readonly unknown[]) : []).filter(isObject);
  const { kind, name } = owners.find(({ controller }) => controller === true) ?? {};
  if (typeof kind !== "string" || typeof name !== "string" || !Object.hasOwn(WORKLOADS, kind)) return [];
  const controller = { kind: kind as Workload["kind"], name };
  // a Deployment names its ReplicaSets, and a CronJob its Jobs
  const ofHash = `-${String(fieldsOf(labels)["pod-template-hash"])}`;
  if (kind === "ReplicaSet" && name.endsWith(ofHash))
    return [controller, { kind: "Deployment", name: name.slice(0, -ofHash.length) }];
  const [, ofTime] = /^(.+)-\d+$/.exec(name) ?? [];
  return kind === "Job" && ofTime !== undefined ? [controller, { kind: "CronJob", name: ofTime }] : [controller];
}
