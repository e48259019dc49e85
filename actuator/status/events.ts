import type { PodEvent } from "../lifecycle/record.ts";
import type { SeenEvent } from "./node-status.ts";

/** client-go 1.36: NewEventCorrelator, whose rules apply to the kubelet's events. */
const MAX_ALIKE = 10;
const ALIKE_MS = 600_000;
const COMBINED = "(combined from similar events): ";
const MAX_GROUPS = 4096;
const MAX_EVENTS = 1000;
const LONGEST_MESSAGE = 4096;

/** Events that differ in their message only. */
interface Group {
  readonly messages: Set<string>;
  lastMs: number;
}

/**
 * The last events. A repeated event increases its count and becomes the newest. Of events that differ only in their message,
 * the tenth within ten minutes and all that follow are combined into one with the newest message. The limit of 25 events per
 * pod, which protects an API server, does not apply here.
 */
export class EventRing {
  /** In the order in which the events were last seen. */
  readonly #events = new Map<string, SeenEvent>();
  readonly #groups = new Map<string, Group>();
  readonly #onDropped: (count: number) => void;

  /** `earlier`: events of an earlier process, oldest first; `onDropped`: called with the number of events dropped for lack of room. */
  constructor(earlier: readonly SeenEvent[] = [], onDropped: (count: number) => void = () => {}) {
    this.#onDropped = onDropped;
    for (const event of earlier.slice(-MAX_EVENTS)) this.#events.set(keyOf(event, event.message), event);
  }

  /** Adds an event and returns what it became: counted, and perhaps combined. */
  add(event: PodEvent): SeenEvent {
    const message = event.message.slice(0, LONGEST_MESSAGE);
    const isCombined = this.#isOneOfMany(event, message);
    const key = isCombined ? groupOf(event) : keyOf(event, message);
    const before = this.#events.get(key);
    const seen: SeenEvent = {
      ...event,
      message: isCombined ? `${COMBINED}${message}` : message,
      count: (before?.count ?? 0) + 1,
      firstAt: before?.firstAt ?? event.at,
    };
    this.#events.delete(key);
    this.#events.set(key, seen);
    if (this.#events.size > MAX_EVENTS) {
      dropFirst(this.#events);
      this.#onDropped(1);
    }
    return seen;
  }

  /** The newest last. */
  list(): readonly SeenEvent[] {
    return [...this.#events.values()];
  }

  #isOneOfMany(event: PodEvent, message: string): boolean {
    const key = groupOf(event);
    const atMs = Date.parse(event.at);
    const known = this.#groups.get(key);
    const group: Group =
      known === undefined || atMs - known.lastMs > ALIKE_MS ? { messages: new Set(), lastMs: atMs } : known;
    group.messages.add(message);
    group.lastMs = atMs;
    this.#groups.delete(key);
    this.#groups.set(key, group);
    if (this.#groups.size > MAX_GROUPS) dropFirst(this.#groups);
    if (group.messages.size < MAX_ALIKE) return false;
    const [oldest = ""] = group.messages;
    group.messages.delete(oldest);
    return true;
  }
}

/** Groups without the container, as the kubelet's key has no field path. */
const groupOf = ({ pod, type, reason }: PodEvent): string =>
  JSON.stringify([pod.namespace, pod.name, pod.uid, type, reason]);
const keyOf = (event: PodEvent, message: string): string =>
  JSON.stringify([groupOf(event), event.container ?? "", message]);

function dropFirst(map: Map<string, unknown>): void {
  const [first] = map.keys();
  if (first !== undefined) map.delete(first);
}
