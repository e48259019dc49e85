import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { PodRecord } from "../../actuator/lifecycle/record.ts";
import type { Store } from "../../db/store.ts";
import type { SimCgroup } from "../actuator/cgroups/sim-kernel.ts";
import { parseList } from "../actuator/cgroups/sim-numbers.ts";
import type { FakePodContainer } from "./fake-pod-parts.ts";
import type { MadePod } from "./pods-made.ts";
import type { PodsNode } from "./pods-node.ts";
import { cgroupOf } from "./pods-runtime.ts";

/** CPUs that pods may have. */
export const CAPACITY_MILLI = 7000;

/** What must hold at every moment of a story; what does not is kept in `wrongs`. */
export class Checks {
  readonly wrongs: string[] = [];
  readonly #node: PodsNode;
  readonly #made: ReadonlyMap<string, MadePod>;
  /** Exclusive containers that were seen to start. */
  exclusiveStarts = 0;
  criticalStarts = 0;

  constructor(node: PodsNode, made: ReadonlyMap<string, MadePod>) {
    this.#node = node;
    this.#made = made;
    node.runtime.onSandbox = ({ config }) => this.#onBegin(config.metadata.uid, config.linux?.cgroupParent ?? "");
    node.runtime.onStart = (one) => this.#onStart(one);
    node.onLook = () => this.look();
  }

  look(): void {
    this.wrongs.push(...this.#node.runtime.wrongs.splice(0), ...this.#sharedCpus());
    for (const { from, message } of this.#node.problems.splice(0)) {
      if (message.startsWith("unexpected") || from === "decision") this.wrongs.push(`${from}: ${message}`);
    }
  }

  #onBegin(uid: string, parent: string): void {
    if (uid.startsWith("foreign")) return;
    const record = recordOf(this.#node, uid);
    if (record?.state !== "lives") this.wrongs.push(`${uid} is started, its record says ${record?.state ?? "nothing"}`);
    const made = this.#made.get(uid);
    if (made === undefined) return;
    const unfilled = this.#unfilled(made, parent);
    if (unfilled !== null) this.wrongs.push(`${uid} is started in a cgroup that is not filled: ${unfilled}`);
    const held = this.#holders();
    if (held.reduce((sum, one) => sum + one.cpuMilli, 0) > CAPACITY_MILLI)
      this.wrongs.push(`${uid} is started beside ${held.map((one) => `${one.uid} (${one.cpuMilli}m)`).join(", ")}`);
    if (made.isCritical && record?.state === "lives") this.criticalStarts++;
  }

  #onStart(one: FakePodContainer): void {
    const { uid } = one.sandbox.metadata;
    if (uid.startsWith("foreign")) return;
    this.#onBegin(uid, one.sandbox.linux?.cgroupParent ?? "");
    if (this.#made.get(uid)?.exclusive.has(one.config.metadata.name)) this.exclusiveStarts++;
    this.wrongs.push(...this.#sharedCpus());
  }

  /** Pods that have something running. */
  #holders(): readonly MadePod[] {
    const { runtime } = this.#node;
    const uids = new Set<string>();
    for (const { isReady, config } of runtime.sandboxes.values()) if (isReady) uids.add(config.metadata.uid);
    for (const one of runtime.ownContainers) if (one.state === "running") uids.add(one.sandbox.metadata.uid);
    return [...uids].flatMap((uid) => this.#made.get(uid) ?? []);
  }

  #unfilled({ memoryLimit, exclusive, cpuMilli }: MadePod, parent: string): string | null {
    const { kernel } = this.#node;
    const [isV1, files] = [kernel.rules.version === 1, (mount: string) => kernel.find(mount, parent)?.files];
    if (files(isV1 ? "cpu" : "") === undefined) return `${parent} is not there`;
    const memory = isV1 ? files("memory")?.get("memory.limit_in_bytes") : files("")?.get("memory.max");
    if (memoryLimit !== null && memory !== String(memoryLimit)) return `memory ${memory}, not ${memoryLimit}`;
    const [quota, period] = isV1
      ? [files("cpu")?.get("cpu.cfs_quota_us"), files("cpu")?.get("cpu.cfs_period_us")]
      : (files("")?.get("cpu.max")?.split(" ") ?? []);
    if (memoryLimit === null || exclusive.size > 0) return null;
    return Number(quota) === (Number(period) * cpuMilli) / 1000 ? null : `quota ${quota} of ${period}`;
  }

  #sharedCpus(): string[] {
    const { runtime } = this.#node;
    const running = runtime.ownContainers.filter(({ state }) => state === "running");
    const found: string[] = [];
    for (const one of running) {
      const wanted = this.#made.get(one.sandbox.metadata.uid)?.exclusive.get(one.config.metadata.name);
      if (wanted === undefined) continue;
      for (const how of ["files", "told"] as const) {
        const own = this.#cpusOf(one, how);
        if (own?.size !== wanted) found.push(`${nameOf(one)} has ${own?.size} CPUs (${how}), not ${wanted}`);
        for (const other of running) {
          if (other === one) continue;
          const theirs = this.#cpusOf(other, how);
          if (theirs === null || [...theirs].some((cpu) => own?.has(cpu)))
            found.push(
              `${nameOf(one)} (${[...(own ?? [])]}) shares CPUs (${how}) with ${nameOf(other)} (${[...(theirs ?? ["all"])]})`,
            );
        }
      }
    }
    return found;
  }

  #cpusOf(one: FakePodContainer, how: "files" | "told"): ReadonlySet<number> | null {
    const { kernel, runtime } = this.#node;
    const mount = kernel.rules.version === 1 ? "cpuset" : "";
    const text =
      how === "told" ? runtime.told.get(one.id) : kernel.find(mount, cgroupOf(one))?.files.get("cpuset.cpus");
    return text === undefined || text === "" ? null : parseList(text);
  }
}

const nameOf = (one: FakePodContainer): string => `${one.sandbox.metadata.uid}/${one.config.metadata.name}`;

export function recordOf(node: PodsNode, uid: string): PodRecord | null {
  const file = join(node.stateDir, "pods", `${uid}.pod.json`);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { record: PodRecord }).record : null;
}

/** What the history does not have as it was: each admission that was decided once, with one report at most. */
export async function misrecorded({ asked }: PodsNode, store: Store): Promise<string[]> {
  const found: string[] = [];
  const kept = new Map<string, number>();
  for (let pageToken: string | null = ""; pageToken !== null; ) {
    const from = pageToken === "" ? {} : { pageToken };
    const page = await store.listDecisions({ kind: "admission", limit: 500, ...from });
    if (!page.ok) throw new Error(page.error.message);
    for (const { id } of page.value.items) {
      const results = await store.listResults(id);
      kept.set(id, results.ok ? results.value.length : -1);
    }
    pageToken = page.value.nextPageToken;
  }
  const byApi = asked.filter(({ answer }) => answer.decidedBy === "api");
  const here = asked.filter(({ answer }) => answer.decidedBy === "here");
  for (const { uid, answer } of byApi) if (!kept.has(answer.id ?? "")) found.push(`${answer.id} of ${uid} is not kept`);
  for (const [id, results] of kept) if (results > 1) found.push(`${id} has ${results} results`);
  const certain = here.filter(({ reports, mayBeLost }) => reports > 0 && !mayBeLost).length;
  const ofApi = new Set(byApi.map(({ answer }) => answer.id)).size;
  if (kept.size < ofApi + certain || kept.size > ofApi + here.length)
    found.push(`${kept.size} admissions are kept of ${ofApi} by the API and ${certain} to ${here.length} here`);
  const untold = asked.filter(({ reports, life }) => reports !== 1 && !life.isOver);
  return [...found, ...untold.map(({ uid, reports }) => `an admission of ${uid} has ${reports} reports`)];
}

/** What is wrong with a node on which nothing fails any more, and that had time. */
export function unsettled(node: PodsNode, wanted: ReadonlyMap<string, MadePod>): string[] {
  const found: string[] = [];
  const runs = new Map<string, number>();
  for (const one of node.runtime.ownContainers) {
    if (one.state !== "running") continue;
    runs.set(nameOf(one), (runs.get(nameOf(one)) ?? 0) + 1);
    if (!wanted.has(one.sandbox.metadata.uid)) found.push(`${nameOf(one)} runs, and nobody asked for it`);
  }
  let held = 0;
  const states = new Map(
    [...wanted.keys()].map((uid) => [uid, node.daemon?.manager.set.get(uid)?.record ?? null] as const),
  );
  for (const [uid, made] of wanted) if (states.get(uid)?.state === "lives") held += made.cpuMilli;
  for (const [uid, made] of wanted) {
    const record = states.get(uid) ?? null;
    const names = made.object.spec.containers.map(({ name }) => `${uid}/${name}`);
    if (record === null) found.push(`${uid} is not known`);
    else if (record.state === "ends") found.push(`${uid} does not come to its end`);
    else if (record.state === "ended" && record.end === null && !made.isJob) found.push(`${uid} ended of nothing`);
    else if (record.state === "waits" && held + made.cpuMilli <= CAPACITY_MILLI)
      found.push(`${uid} waits, and would fit: ${JSON.stringify(record.refusal)}`);
    else if (record.state === "lives")
      for (const name of names)
        if (!made.isJob && runs.get(name) !== 1) found.push(`${name} runs ${runs.get(name) ?? 0} times`);
  }
  return [...found, ...leftOver(node, wanted)];
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
    // those of pods whose records were lost are the garbage collector's
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
  if (node.outboxSize > 0) found.push(`${node.outboxSize} decisions were not sent`);
  return [...new Set(found)];
}
