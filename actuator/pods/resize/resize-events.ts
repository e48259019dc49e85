import type { RunnablePod } from "../../lifecycle/pod.ts";
import { generationOf } from "../../lifecycle/status/allocated.ts";
import { decodedPod } from "../decoded-pod.ts";
import type { ManagerPorts } from "../manager-ports.ts";
import { PodEvents } from "../pod-events.ts";
import { resizeText } from "./texts.ts";

/** What is told of a resize. kubelet 1.36: events/resize.go. */
export class ResizeEvents {
  readonly #ports: Pick<ManagerPorts, "clock" | "onEvent">;

  constructor(ports: Pick<ManagerPorts, "clock" | "onEvent">) {
    this.#ports = ports;
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
  /** `reason`: of the handler that refuses. */
  pending(pod: RunnablePod, kind: "Deferred" | "Infeasible", reason: string, message: string): void {
    this.#of(pod).warning(`Resize${kind}`, textOf(pod, reason, message));
  }

  #of(pod: RunnablePod): PodEvents {
    return new PodEvents(pod, this.#ports.clock, this.#ports.onEvent);
  }
}

function textOf({ object }: RunnablePod, what: string, error = ""): string {
  const decoded = decodedPod(object);
  return decoded === null ? `Pod resize ${what}` : resizeText(what, decoded, generationOf(object), error);
}
