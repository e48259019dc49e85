import type { PodRecord } from "../../actuator/lifecycle/record.ts";
import { withResources } from "../../actuator/pods/resize/forms.ts";
import { parseList } from "../actuator/cgroups/sim-numbers.ts";
import type { FakePodContainer } from "./fake-pod-parts.ts";
import { unfilledPod } from "./pods-cgroups.ts";
import { Ends } from "./pods-ends.ts";
import type { MadePod } from "./pods-made.ts";
import type { PodsNode } from "./pods-node.ts";
import { recordOf } from "./pods-records.ts";
import { cgroupOf } from "./pods-runtime.ts";
import { type Sizes, sizesOf } from "./pods-sizes.ts";
import type { Story } from "./pods-story.ts";

/** The CPUs that are allocatable to pods. */
export const CAPACITY_MILLI = 7000;
const NO_POD = { spec: { containers: [] } };

/** The rules that hold at every moment of a story; `wrongs` collects the violations. */
export class Checks {
  readonly wrongs: string[] = [];
  readonly ends: Ends;
  readonly #node: PodsNode;
  readonly #made: ReadonlyMap<string, MadePod>;
  /** The number of observed starts of containers with exclusive CPUs. */
  exclusiveStarts = 0;
  criticalStarts = 0;
  /** Pods that were observed running with changed resources, and pods whose resize was deferred. */
  readonly resized = new Set<string>();
  readonly deferred = new Set<string>();
  readonly #has = new Map<string, string | undefined>();

  constructor(story: Story) {
    const { node, made } = story;
    this.#node = node;
    this.#made = made;
    this.ends = new Ends(story);
    node.runtime.onStop = (one) => {
      const why = this.ends.whyNotStopped(one);
      if (why !== null) this.wrongs.push(`${nameOf(one)} is stopped: ${why}`);
    };
    node.runtime.onSandbox = ({ config }) => this.#onBegin(config.metadata.uid, config.linux?.cgroupParent ?? "");
    node.runtime.onStart = (one) => this.#onStart(one);
    node.onLook = () => this.look();
  }

  look(): void {
    for (const [uid, { state, pod, resize }] of this.#node.daemon?.manager.set.records.known ?? []) {
      const has = state === "active" ? JSON.stringify(sizesOf(pod).containers) : undefined;
      const had = this.#has.get(uid);
      if (has !== undefined && had !== undefined && had !== has) this.resized.add(uid);
      this.#has.set(uid, has);
      if (resize?.reason === "Deferred") this.deferred.add(uid);
    }
    this.wrongs.push(...this.#node.runtime.wrongs.splice(0), ...this.#sharedCpus(), ...this.ends.look());
    for (const { from, message } of this.#node.problems.splice(0)) {
      if (message.startsWith("unexpected") || from === "decision") this.wrongs.push(`${from}: ${message}`);
    }
  }

  #onBegin(uid: string, parent: string): void {
    if (uid.startsWith("foreign")) return;
    const record = recordOf(this.#node, uid);
    if (record?.state !== "active")
      this.wrongs.push(`${uid} is started, its record says ${record?.state ?? "nothing"}`);
    const made = this.#made.get(uid);
    if (made === undefined) return;
    const unfilled = this.#unfilled(record, uid, parent);
    if (unfilled !== null) this.wrongs.push(`${uid} is started in a cgroup that is not filled: ${unfilled}`);
    const held = this.#holders();
    const sizes = held.map((one) => [one, this.#sizesOf(one).cpuMilli] as const);
    // a pod with a lost record counts with its current requests instead of those with which it was admitted
    const isSure = held.every((one) => !this.#node.lost.has(one));
    if (isSure && sizes.reduce((sum, [, milli]) => sum + milli, 0) > CAPACITY_MILLI)
      this.wrongs.push(`${uid} is started beside ${sizes.map(([one, milli]) => `${one} (${milli}m)`).join(", ")}`);
    const asked = this.#node.asked.findLast((one) => one.uid === uid && !one.life.isOver);
    if (asked?.isSettled === false) this.wrongs.push(`${uid} is started, and it may be forgotten that it was let in`);
    if (made.isCritical && record?.state === "active") this.criticalStarts++;
  }

  #onStart(one: FakePodContainer): void {
    const { uid } = one.sandbox.metadata;
    if (uid.startsWith("foreign")) return;
    this.#onBegin(uid, one.sandbox.linux?.cgroupParent ?? "");
    if (this.#sizesOf(uid).exclusive.has(one.config.metadata.name)) this.exclusiveStarts++;
    this.wrongs.push(...this.#sharedCpus());
  }

  /** The resources in the pod's record, as decided. */
  #sizesOf(uid: string): Sizes {
    const record = this.#node.daemon?.manager.set.get(uid)?.record ?? recordOf(this.#node, uid);
    return sizesOf(record?.pod ?? this.#made.get(uid)?.object ?? NO_POD);
  }

  /** The pods with a running container. */
  #holders(): readonly string[] {
    const { runtime } = this.#node;
    const uids = new Set<string>();
    for (const { isReady, config } of runtime.sandboxes.values()) if (isReady) uids.add(config.metadata.uid);
    for (const one of runtime.ownContainers) if (one.state === "running") uids.add(one.sandbox.metadata.uid);
    return [...uids].filter((uid) => this.#made.has(uid));
  }

  /** While a pod is being resized, its cgroup may still have the former values. */
  #unfilled(record: PodRecord | null, uid: string, parent: string): string | null {
    if (record === null) return unfilledPod(this.#node, this.#made.get(uid)?.object ?? NO_POD, parent);
    const now = unfilledPod(this.#node, record.pod, parent);
    const former = record.resize?.actuation?.former;
    if (now === null || former === undefined) return now;
    return unfilledPod(this.#node, withResources(record.pod, former), parent);
  }

  #sharedCpus(): string[] {
    const { runtime } = this.#node;
    const running = runtime.ownContainers.filter(({ state }) => state === "running");
    const found: string[] = [];
    for (const one of running) {
      const wanted = this.#sizesOf(one.sandbox.metadata.uid).exclusive.get(one.config.metadata.name);
      if (wanted === undefined) continue;
      for (const how of ["files", "told"] as const) {
        const own = this.#cpusOf(one, how);
        if (own?.size !== wanted) found.push(`${nameOf(one)} has ${own?.size} CPUs (${how}), not ${wanted}`);
        for (const other of running) {
          if (other === one || (how === "told" && runtime.unreported.has(other.id))) continue;
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
      how === "told" ? runtime.reported.get(one.id) : kernel.find(mount, cgroupOf(one))?.files.get("cpuset.cpus");
    return text === undefined || text === "" ? null : parseList(text);
  }
}

export const nameOf = (one: FakePodContainer): string => `${one.sandbox.metadata.uid}/${one.config.metadata.name}`;
