import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Outbox } from "../../actuator/client/outbox.ts";
import type { PodRecord } from "../../actuator/lifecycle/record.ts";
import type { SimCgroup } from "../actuator/cgroups/sim-kernel.ts";
import { unfilledContainer, unfilledPod } from "./pods-cgroups.ts";
import { CAPACITY_MILLI, nameOf } from "./pods-checks.ts";
import type { MadePod } from "./pods-made.ts";
import type { PodsNode } from "./pods-node.ts";
import { sizesOf } from "./pods-sizes.ts";

const OVER: ReadonlySet<unknown> = new Set(["Succeeded", "Failed"]);

/** The errors of a node that had enough time without faults. */
export function unsettled(node: PodsNode, wanted: ReadonlyMap<string, MadePod>): string[] {
  const found: string[] = [];
  const runs = new Map<string, number>();
  for (const one of node.runtime.ownContainers) {
    if (one.state !== "running") continue;
    runs.set(nameOf(one), (runs.get(nameOf(one)) ?? 0) + 1);
    if (!wanted.has(one.sandbox.metadata.uid)) found.push(`${nameOf(one)} runs, and nobody asked for it`);
  }
  const records = new Map([...wanted.keys()].map((uid) => [uid, node.daemon?.manager.set.get(uid)?.record ?? null]));
  const held = [...records.values()].reduce((sum, r) => sum + (r?.state === "active" ? cpuOf(r.pod) : 0), 0);
  for (const [uid, made] of wanted) {
    const record = records.get(uid) ?? null;
    const names = made.object.spec.containers.map(({ name }) => `${uid}/${name}`);
    if (record === null) found.push(`${uid} is not known`);
    else if (record.state === "terminating") found.push(`${uid} does not come to its end`);
    else if (record.state === "terminated" && record.end === null && !made.isJob) found.push(`${uid} ended of nothing`);
    else if (record.state === "terminated" && !OVER.has(record.status?.["phase"]))
      found.push(`${uid} ended ${record.status?.["phase"]}`);
    else if (record.state === "pending" && held + cpuOf(made.object) <= CAPACITY_MILLI)
      found.push(`${uid} waits, and would fit: ${JSON.stringify(record.refusal)}`);
    else if (record.state === "active") {
      if (made.isJob) found.push(`${uid} does not come to its end`);
      for (const name of names) if (runs.get(name) !== 1) found.push(`${name} runs ${runs.get(name) ?? 0} times`);
      // a pod that was adopted without its record may have the CPUs of an earlier form
      found.push(...unresized(made, record, held), ...(node.lost.has(uid) ? [] : misplaced(node, uid, record)));
    }
    if (record?.state !== "active")
      for (const name of names) if (runs.has(name)) found.push(`${name} runs, its pod is ${record?.state}`);
  }
  return [...found, ...leftOver(node, wanted)];
}

const cpuOf = (form: object): number => sizesOf(form).cpuMilli;

/** A resize that is neither carried out nor infeasible. */
function unresized({ uid, object }: MadePod, { pod, resize }: PodRecord, held: number): string[] {
  const [wanted, has] = [sizesOf(object), sizesOf(pod)];
  const differs = JSON.stringify(wanted.containers) !== JSON.stringify(has.containers);
  if (resize === null) return differs ? [`${uid} has not the resources that it asks for, and nobody says why`] : [];
  if (resize.actuation !== undefined)
    return [`the resize of ${uid} does not come into force: ${JSON.stringify(resize)}`];
  if (!differs) return [`${uid} has what it asks for, and is ${resize.reason}: ${resize.message}`];
  const movesCpu = wanted.cpuMilli !== has.cpuMilli;
  const isNever = (movesCpu && has.memoryLimit !== null) || wanted.cpuMilli > CAPACITY_MILLI;
  const mayNot = resize.reason === "Infeasible" ? isNever : held - has.cpuMilli + wanted.cpuMilli > CAPACITY_MILLI;
  return mayNot ? [] : [`${uid} could be resized, and is ${resize.reason}: ${resize.message}`];
}

/** The cgroups that do not have the decided values. */
function misplaced(node: PodsNode, uid: string, { pod }: PodRecord): string[] {
  const running = node.runtime.ownContainers.filter((c) => c.state === "running" && c.sandbox.metadata.uid === uid);
  const parent = running[0]?.sandbox.linux?.cgroupParent;
  const faults = [
    parent === undefined ? null : unfilledPod(node, pod, parent),
    ...running.map((one) => unfilledContainer(node, pod, one)),
  ];
  return faults.filter((fault) => fault !== null);
}

function leftOver(node: PodsNode, wanted: ReadonlyMap<string, MadePod>): string[] {
  const found: string[] = [];
  const { runtime, kernel } = node;
  for (const { id, config } of runtime.sandboxes.values()) {
    if (runtime.isOwn(config.metadata.uid, config.labels) && !wanted.has(config.metadata.uid))
      found.push(`sandbox ${id} of ${config.metadata.uid} is left over`);
  }
  for (const uid of readdirSync(node.roots.podsDirectory)) {
    if (!wanted.has(uid)) found.push(`directory of ${uid} is left over`);
  }
  for (const name of readdirSync(node.roots.podLogsDirectory)) {
    // the garbage collector removes the logs of pods with lost records
    const uid = name.slice(name.lastIndexOf("_") + 1);
    if (!wanted.has(uid) && !node.lost.has(uid)) found.push(`logs ${name} are left over`);
  }
  for (const file of readdirSync(join(node.stateDir, "pods"))) {
    if (!wanted.has(file.replace(".pod.json", ""))) found.push(`record ${file} is left over`);
  }
  const living = new Set([...(node.daemon?.manager.set.living() ?? [])].map(({ uid }) => uid));
  const cgroups: SimCgroup[] = [...kernel.tops.values()].flatMap((top) => [...top.subtree()]);
  for (const { path } of cgroups) {
    const uid = /\/pod([^/]+)$/.exec(path)?.[1];
    if (uid !== undefined && !living.has(uid)) found.push(`cgroup ${path} is left over`);
  }
  const { size } = Outbox.open(join(node.stateDir, "outbox.jsonl"));
  if (size > 0) found.push(`${size} decisions were not sent`);
  return [...new Set(found)];
}
