import type { Hierarchy } from "../../cgroupfs/hierarchy.ts";
import type { PendingResize, PodRecord } from "../../lifecycle/record.ts";
import { resizeRestarts } from "../../lifecycle/resize-restarts.ts";
import type { Problem } from "../../ports.ts";
import type { CgroupPasses } from "../cgroup-passes.ts";
import { decodedPod } from "../decoded-pod.ts";
import type { ManagerPorts } from "../manager-ports.ts";
import type { KnownPod, PodSet } from "../pod-set.ts";
import { withResources } from "./forms.ts";
import { memoryInUse } from "./memory-in-use.ts";
import { ResizeEvents } from "./resize-events.ts";

type Form = Readonly<Record<string, unknown>>;

/**
 * Brings resizes that were let in into force: containers that have to go are stopped first, and memory that is in use is
 * not taken away; until then the cgroups stay as they were. kubelet 1.36: doPodResizeAction.
 */
export class ResizeActuator {
  readonly #set: PodSet;
  readonly #passes: CgroupPasses;
  readonly #hierarchy: Hierarchy;
  readonly #events: ResizeEvents;
  readonly #onDone: () => void;
  readonly #formers = new WeakMap<object, Form>();
  /** Pods that keep their former form for now: why, or "" while containers of them are being stopped. */
  #held: ReadonlyMap<string, string> = new Map();

  constructor(ports: ManagerPorts, set: PodSet, passes: CgroupPasses, onDone: () => void) {
    this.#set = set;
    this.#passes = passes;
    this.#hierarchy = ports.hierarchy;
    this.#events = new ResizeEvents(ports);
    this.#onDone = onDone;
    passes.formOf = (known) => this.formOf(known);
  }

  /** Looks which pods may have their new form, before the next pass over the cgroups. */
  look(): void {
    const resized = this.#set.living().filter(({ record }) => record.resize?.actuation !== undefined);
    const whys = resized.map((known) => [known.uid, this.#whyHeld(known)] as const);
    this.#held = new Map(whys.filter((entry): entry is readonly [string, string] => entry[1] !== null));
  }

  formOf({ uid, record }: KnownPod): Form {
    const former = this.#held.has(uid) ? record.resize?.actuation?.former : undefined;
    if (former === undefined) return record.pod;
    const known = this.#formers.get(record.pod);
    if (known !== undefined) return known;
    const made = withResources(record.pod, former);
    this.#formers.set(record.pod, made);
    return made;
  }

  /** A container that was stopped for it may start again: its cgroups are ready. */
  mayRestart({ uid, record }: KnownPod): boolean {
    return this.#passes.hasSeen(uid, record.pod);
  }

  /** What the last pass came to. */
  settle(): readonly Problem[] {
    const faults = this.#set.living().map((known) => this.#settleOne(known));
    return faults.flatMap((fault) => (fault === null ? [] : [{ from: "pods" as const, message: fault }]));
  }

  #settleOne(known: KnownPod): string | null {
    const { uid, pod, record, seen } = known;
    const { resize } = record;
    if (record.state !== "lives" || resize?.actuation === undefined) return null;
    const held = this.#held.get(uid);
    const error = held ?? this.#passes.whyNotInForce(uid, record.pod);
    if (error !== null && error !== "") return this.#fail(known, error);
    if (error === "" || resizeRestarts(record, seen).size > 0) return null;
    const { actuation: _done, ...pending } = resize;
    const fault = this.#put(uid, { ...record, resize: pending.reason === "InProgress" ? null : pending });
    if (fault !== null) return fault;
    this.#events.completed(pod);
    this.#onDone();
    return null;
  }

  /** Told once, whatever the figures in it do. */
  #fail({ uid, pod, record }: KnownPod, error: string): string | null {
    const { resize } = record;
    if (resize?.actuation === undefined || shapeOf(resize.actuation.error) === shapeOf(error)) return null;
    const message = resize.reason === "InProgress" ? error : resize.message;
    const next: PendingResize = { ...resize, message, actuation: { ...resize.actuation, error } };
    this.#events.failed(pod, error);
    return this.#put(uid, { ...record, resize: next });
  }

  /** Null: nothing does. */
  #whyHeld({ uid, record, seen }: KnownPod): string | null {
    const going = resizeRestarts(record, seen);
    const ids = new Set(Object.values(record.resize?.actuation?.restarts ?? {}));
    if (seen?.containers.some(({ id, state }) => state === "running" && ids.has(id)) === true) return "";
    const place = this.#passes.current?.pods.get(uid);
    const decoded = decodedPod(record.pod);
    if (place === undefined || decoded === null) return null;
    // what a stopped container has left in the page cache is nobody's any more
    return memoryInUse(this.#hierarchy, decoded, place, seen, { sparesCache: going.size === 0 });
  }

  #put(uid: string, record: PodRecord): string | null {
    const put = this.#set.records.put(uid, record);
    return put.ok ? null : put.error;
  }
}

const shapeOf = (error: string): string => error.replaceAll(/\d+/g, "0");
