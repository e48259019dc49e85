import type { Fields } from "../../../api/base/own.ts";
import { podMemoryLimit } from "../../../api/decide/cgroups/pod-config.ts";
import { memoryInUse } from "../../../api/decide/resize/actuation.ts";
import { value, ZERO } from "../../../api/model/amount.ts";
import { containersOf, type Pod } from "../../../api/model/pod.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { Hierarchy } from "../../cgroupfs/hierarchy.ts";
import type { RuntimePod } from "../../containerd/cri.ts";
import type { Problem } from "../../core/interfaces.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import { resizeRestarts } from "../../lifecycle/pod-status.ts";
import type { PendingResize } from "../../lifecycle/record.ts";
import type { CapacityGeneration } from "../admission/admission-backoff.ts";
import type { CgroupPasses } from "../cgroups/cgroup-passes.ts";
import type { PodCgroups } from "../cgroups/cgroup-view.ts";
import type { PodLifecycle } from "../pod-lifecycle.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import { withResources } from "./forms.ts";
import type { ResizeEvents } from "./resize-events.ts";

/** File names of cgroup v1 and v2. */
const FILES = {
  1: { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", cache: "total_cache" },
  2: { limit: "memory.max", usage: "memory.current", cache: "file" },
} as const;

/**
 * Why a pod cannot have the memory limits of `pod` now: more memory is in use. Null: it can. The kernel of cgroup v1 would
 * refuse, that of v2 would kill. Only limits that decrease are checked, against the kernel's present values.
 * `sparesCache` false: memory that the kernel can drop does not count as used.
 */
function whyNotBelow(
  hierarchy: Hierarchy,
  pod: Pod,
  cgroups: PodCgroups,
  runtimePod: RuntimePod | null,
  { sparesCache, profile }: { readonly sparesCache: boolean; readonly profile: Profile },
): string | null {
  const files = FILES[hierarchy.version];
  const paths = new Map<string | null, string>([[null, cgroups.path]]);
  const limits = new Map<string | null, number>([[null, podMemoryLimit(pod, profile) ?? 0]]);
  for (const { name, resources } of containersOf(pod)) {
    const id = runtimePod?.containers.find((c) => c.name === name && c.state === "running")?.id ?? "";
    const path = cgroups.containers.get(id);
    if (path !== undefined) paths.set(name, path);
    limits.set(name, value(resources?.limits?.["memory"]?.amount ?? ZERO));
  }
  const usages = new Map<string | null, number>();
  for (const [name, path] of paths) {
    const all = numberIn(hierarchy, path, files.usage);
    if (all !== null) usages.set(name, Number(sparesCache ? all : all - cacheIn(hierarchy, path, files.cache)));
  }
  const isFalling = ([name, limit]: readonly [string | null, number]): boolean => {
    const now = usages.has(name) ? numberIn(hierarchy, paths.get(name) ?? "", files.limit) : null;
    return limit !== 0 && now !== null && BigInt(limit) < now;
  };
  return memoryInUse(new Map([...limits].filter(isFalling)), (name) => usages.get(name));
}

function cacheIn(hierarchy: Hierarchy, path: string, name: string): bigint {
  const stat = hierarchy.read(path, "memory.stat");
  const found = stat.ok ? new RegExp(`^${name} (\\d+)$`, "m").exec(stat.value)?.[1] : undefined;
  return BigInt(found ?? 0);
}

/** `max` is parsed as a number above all others. */
function numberIn(hierarchy: Hierarchy, path: string, file: string): bigint | null {
  const text = hierarchy.read(path, file);
  if (!text.ok) return null;
  const trimmed = text.value.trim();
  if (trimmed === "max") return 2n ** 63n;
  return /^\d+$/.test(trimmed) ? BigInt(trimmed) : null;
}

interface Parts {
  readonly set: PodSet;
  readonly passes: CgroupPasses;
  readonly lifecycle: PodLifecycle;
  readonly capacity: CapacityGeneration;
  readonly events: ResizeEvents;
}

/**
 * Applies admitted resizes: stops the containers that must restart, and waits until no memory limit falls below the usage;
 * until then the cgroups keep their values. kubelet 1.36: doPodResizeAction.
 */
export class ResizeActuator {
  readonly #hierarchy: Hierarchy;
  readonly #parts: Parts;
  readonly #profile: Profile;
  readonly #formers = new WeakMap<object, Fields>();
  /** Pods that keep their former form for now, with the reason; "" while their containers are being stopped. */
  #held: ReadonlyMap<string, string> = new Map();

  constructor(hierarchy: Hierarchy, { profile }: { readonly profile: Profile }, parts: Parts) {
    this.#hierarchy = hierarchy;
    this.#profile = profile;
    this.#parts = parts;
  }

  /** Determines which pods may get their new form in the next pass over the cgroups. */
  observe(): void {
    const resized = this.#parts.set.living().filter(({ record }) => record.resize?.actuation !== undefined);
    const whys = resized.map((known) => [known.uid, this.#whyHeld(known)] as const);
    this.#held = new Map(whys.filter((entry): entry is readonly [string, string] => entry[1] !== null));
  }

  /** The form for a pod's cgroups: during a resize, the former form may still apply. */
  formOf({ uid, record }: KnownPod): Fields {
    const former = this.#held.has(uid) ? record.resize?.actuation?.former : undefined;
    if (former === undefined) return record.pod;
    const known = this.#formers.get(record.pod);
    if (known !== undefined) return known;
    const made = withResources(record.pod, former);
    this.#formers.set(record.pod, made);
    return made;
  }

  /** True: a container that was stopped for the resize may start, since its cgroups are ready. */
  mayRestart({ uid, record }: KnownPod): boolean {
    return this.#parts.passes.hasSeen(uid, record.pod);
  }

  /** Settles the resizes and returns the problems of the last pass. */
  report(): readonly Problem[] {
    const faults = this.#parts.set.living().map((known) => this.#settleOne(known));
    return faults.flatMap((fault) => (fault === null ? [] : [{ from: "pods" as const, message: fault }]));
  }

  #settleOne(known: KnownPod): string | null {
    const { uid, pod, record, runtimePod } = known;
    const { resize } = record;
    if (record.state !== "active" || resize?.actuation === undefined) return null;
    const held = this.#held.get(uid);
    const error = held ?? this.#parts.passes.whyNotInForce(uid, record.pod);
    if (error !== null && error !== "") return this.#fail(known, error);
    if (error === "" || resizeRestarts(record, runtimePod).size > 0) return null;
    const { actuation: _done, ...pending } = resize;
    const fault = this.#update(uid, pending.reason === "InProgress" ? null : pending);
    if (fault !== null) return fault;
    this.#parts.events.completed(pod);
    this.#parts.capacity.free();
    return null;
  }

  /** Reports an error once, even if numbers in it change. */
  #fail({ uid, pod, record }: KnownPod, error: string): string | null {
    const { resize } = record;
    if (resize?.actuation === undefined || shapeOf(resize.actuation.error) === shapeOf(error)) return null;
    const message = resize.reason === "InProgress" ? error : resize.message;
    const next: PendingResize = { ...resize, message, actuation: { ...resize.actuation, error } };
    this.#parts.events.failed(pod, error);
    return this.#update(uid, next);
  }

  /** Why the resize must wait; null: it need not wait. */
  #whyHeld({ uid, record, runtimePod }: KnownPod): string | null {
    const going = resizeRestarts(record, runtimePod);
    const ids = new Set(Object.values(record.resize?.actuation?.restarts ?? {}));
    if (runtimePod?.containers.some(({ id, state }) => state === "running" && ids.has(id)) === true) return "";
    const place = this.#parts.passes.current?.pods.get(uid);
    const decoded = decodedPod(record.pod);
    if (place === undefined || decoded === null) return null;
    // the page cache of a stopped container can be dropped
    return whyNotBelow(this.#hierarchy, decoded, place, runtimePod, {
      sparesCache: going.size === 0,
      profile: this.#profile,
    });
  }

  #update(uid: string, resize: PendingResize | null): string | null {
    return this.#parts.lifecycle.handle(uid, { kind: "ResizeUpdated", resize });
  }
}

const shapeOf = (error: string): string => error.replaceAll(/\d+/g, "0");
