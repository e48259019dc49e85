import { CONTAINER_HASH } from "../../actuator/containerd/cri.ts";
import { containerHash } from "../../actuator/lifecycle/config/labels.ts";
import type { PodEnd, PodRecord } from "../../actuator/lifecycle/record.ts";
import type { FakePodContainer } from "./fake-pod-parts.ts";
import { recordOf, recordsOf } from "./pods-records.ts";
import type { Story } from "./pods-story.ts";

/** The time that an eviction waits for the former one. */
const ONE_VICTIM_MS = 30_000;

/** The pods that may end in a story, with the reason; no other pod may end. */
export class Ends {
  readonly #story: Pick<Story, "node" | "made" | "wanted">;
  /** When each end was first seen, by the monotonic clock. */
  readonly #notedMs = new Map<string, number>();
  evictions = 0;
  preemptions = 0;
  drained = 0;

  constructor(story: Pick<Story, "node" | "made" | "wanted">) {
    this.#story = story;
  }

  /** The ends that were ordered since the last call and are not allowed. */
  look(): string[] {
    const { node } = this.#story;
    const found: string[] = [];
    const records = recordsOf(node);
    for (const [uid, { end }] of records) {
      const key = `${uid} ${end?.cause} ${end?.sinceMs}`;
      if (end === null || this.#notedMs.has(key)) continue;
      const why = this.#whyWrong(uid, end, records);
      if (why !== null) found.push(`${uid} was ${end.cause}: ${why}`);
      this.#notedMs.set(key, node.time.monotonicMs());
    }
    return found;
  }

  #whyWrong(uid: string, { cause }: PodEnd, records: ReadonlyMap<string, PodRecord>): string | null {
    const { node, made, wanted } = this.#story;
    switch (cause) {
      case "deleted":
        return wanted.has(uid) ? "it is asked for" : null;
      case "preempted": {
        this.preemptions++;
        if (made.get(uid)?.isCritical !== false) return "it is critical itself";
        return [...wanted.values()].some(({ isCritical }) => isCritical) ? null : "nobody critical waits";
      }
      case "evicted":
        this.evictions++;
        return this.#whyNoVictim(uid, records);
      case "drained":
        this.drained++;
        return node.isDraining ? null : "nobody drains the node";
      case "deadline":
        return "it has none";
    }
  }

  #whyNoVictim(uid: string, records: ReadonlyMap<string, PodRecord>): string | null {
    const { node } = this.#story;
    const isFresh = (other: string, { end }: PodRecord): boolean => {
      const notedMs = this.#notedMs.get(`${other} evicted ${end?.sinceMs}`) ?? Number.NEGATIVE_INFINITY;
      return node.time.monotonicMs() - notedMs < ONE_VICTIM_MS;
    };
    const other = [...records].find(([one, r]) => one !== uid && r.state === "terminating" && isFresh(one, r));
    return other === undefined ? node.memory.whyNoVictim(uid) : `${other[0]} is still on its way`;
  }

  /** Why the daemon must not stop this running container now; null: it may. */
  whyNotStopped(one: FakePodContainer): string | null {
    const { node, wanted } = this.#story;
    const { uid } = one.sandbox.metadata;
    const record = recordOf(node, uid);
    if (node.isDraining) return this.#whyNotDrained(uid);
    // an end is in force even if it could not be written to the full disk
    if (node.disk.refused > 0 && recordsOf(node).get(uid)?.state === "terminating") return null;
    if (record === null) return wanted.has(uid) ? "it has no record" : null;
    if (record.state === "terminating") return null;
    if (record.state !== "active") return `its record says ${record.state}`;
    return this.#isReplaced(one, record) ? null : "nobody chose it";
  }

  /**
   * Whether the container of a living pod is replaced: by a new sandbox, a new definition or a resize, or because none
   * of the pod's own containers runs.
   */
  #isReplaced({ id, sandboxId, sandbox, config }: FakePodContainer, record: PodRecord): boolean {
    const { runtime, daemon } = this.#story.node;
    const { uid } = sandbox.metadata;
    const { name } = config.metadata;
    const ready = [...runtime.sandboxes.values()].filter((s) => s.isReady && s.config.metadata.uid === uid);
    if (ready.length !== 1 || ready[0]?.id !== sandboxId) return true;
    if (record.resize?.actuation?.restarts[name] === id) return true;
    const pod = daemon?.manager.set.podOf(record) ?? null;
    if (pod === null) return false;
    const own = pod.spec.containers.find((one) => one.name === name);
    const container = own ?? pod.spec.initContainers.find((one) => one.name === name);
    if (container !== undefined && config.annotations?.[CONTAINER_HASH] !== containerHash(pod, container)) return true;
    const runs = (other: string): boolean => runtime.running(other).some((one) => one.sandbox.metadata.uid === uid);
    return own === undefined && !pod.spec.containers.some((one) => runs(one.name));
  }

  /** A drain requires that pods of lower priority have ended before. */
  #whyNotDrained(uid: string): string | null {
    const { node } = this.#story;
    const running = node.runtime.ownContainers.filter(({ state }) => state === "running");
    const lower = running.find(({ sandbox }) => this.#priorityOf(sandbox.metadata.uid) < this.#priorityOf(uid));
    return lower === undefined ? null : `${lower.sandbox.metadata.uid} of a lower priority still runs`;
  }
  #priorityOf(uid: string): number {
    const { priority } = (this.#story.made.get(uid)?.object.spec ?? {}) as { readonly priority?: number };
    return priority ?? 0;
  }
}
