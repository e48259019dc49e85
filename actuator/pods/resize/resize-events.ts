import { byKey } from "../../../api/base/order.ts";
import type { ResourceList } from "../../../api/model/fields.ts";
import type { Container, Pod } from "../../../api/model/pod.ts";
import { canonicalText } from "../../../api/model/quantity.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { generationOf } from "../../lifecycle/status/status.ts";
import type { PodEventRecorder } from "../records/records.ts";

/** Emits the events about resizes. kubelet 1.36: events/resize.go. */
export class ResizeEvents {
  readonly #of: PodEventRecorder;

  constructor(eventsOf: PodEventRecorder) {
    this.#of = eventsOf;
  }

  started(pod: RunnablePod): void {
    this.#of(pod).normal("ResizeStarted", textOf(pod, "started"));
  }
  completed(pod: RunnablePod): void {
    this.#of(pod).normal("ResizeCompleted", textOf(pod, "completed"));
  }
  failed(pod: RunnablePod, error: string): void {
    this.#of(pod).warning("ResizeError", textOf(pod, "error", error));
  }
  /** `reason`: from the admission handler that refuses. */
  pending(pod: RunnablePod, kind: "Deferred" | "Infeasible", reason: string, message: string): void {
    this.#of(pod).warning(`Resize${kind}`, textOf(pod, reason, message));
  }
}

function textOf({ object }: RunnablePod, what: string, error = ""): string {
  const decoded = decodedPod(object);
  return decoded === null ? `Pod resize ${what}` : resizeText(what, decoded, generationOf(object), error);
}

/**
 * Builds the text of an event about a resize: `Pod resize started: {"containers":[...],"generation":2}`. kubelet 1.36:
 * podResizeMessage.
 */
export function resizeText(what: string, pod: Pod, generation: number, error = ""): string {
  const { initContainers = [], containers } = pod.spec;
  const summary = {
    ...(initContainers.length > 0 && { initContainers: initContainers.map(allocationOf) }),
    containers: containers.map(allocationOf),
    generation,
    ...(error !== "" && { error }),
  };
  return `Pod resize ${what}: ${goText(JSON.stringify(summary))}`;
}

const allocationOf = ({ name, resources }: Container): object => ({
  name,
  resources: {
    ...listOf("limits", resources?.limits),
    ...listOf("requests", resources?.requests),
  },
});

/** A resource list sorted by name, as Go writes a map, with each amount in its shortest form. */
function listOf(part: string, list: ResourceList | null | undefined): object {
  const entries = Object.entries(list ?? {}).sort(byKey);
  if (entries.length === 0) return {};
  return { [part]: Object.fromEntries(entries.map(([name, q]) => [name, canonicalText(q.amount, q.format)])) };
}

/** Go's JSON escapes these three characters for HTML. */
const goText = (json: string): string =>
  json.replace(/[<>&]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
