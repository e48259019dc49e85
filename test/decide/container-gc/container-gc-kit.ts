import type { Result } from "../../../api/base/result.ts";
import { decideContainerGc } from "../../../api/decide/kinds/container-gc.ts";
import { type ContainerGcDecision, decodeContainerGcAsk } from "../../../api/model/container-gc.ts";
import type { Decided, Refusal } from "../../../api/model/decision.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { pod } from "../../kit/pods.ts";
import { podLabels, runtimeContainer, runtimeSandbox, unixNanos } from "../../kit/runtime.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";

export const NOW = Date.parse("2026-01-31T12:00:00Z");
export type Answer = Decided<ContainerGcDecision>;

/** A time in the past, in the runtime's format. */
export const made = (agoMs: number): string => unixNanos(NOW - agoMs);
/** An exited container `c` of `pod`, in the sandbox `sb-POD`. */
export const gcContainer = (id: string, pod: string, agoMs: number, more: Json = {}): Json =>
  runtimeContainer(id, { podSandboxId: `sb-${pod}`, createdAt: made(agoMs), labels: podLabels(pod), ...more });
/** A sandbox that is not ready. */
export const sandbox = (id: string, pod: string, agoMs: number, more: Json = {}): Json =>
  runtimeSandbox(id, pod, { createdAt: made(agoMs), ...more });
export const READY = { state: "SANDBOX_READY" };
export const live = (name: string): Json => pod(name, { status: { phase: "Running" } });
export const EVICTED = {
  phase: "Failed",
  conditions: [{ type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" }],
};
export const evictedPod = (name: string): Json => pod(name, { status: EVICTED });

/** A snapshot with these pods and with every list of the runtime. */
export const gcNode = (pods: readonly Json[], runtime: Json, kubelet: Json = {}): Json => ({
  observedAt: new Date(NOW).toISOString(),
  pods,
  kubelet,
  runtime: { containers: [], sandboxes: [], podLogDirectories: [], danglingLogLinks: [], ...runtime },
});

export function attempt(snapshot: unknown, ask: unknown = undefined): Result<Answer, Refusal> {
  const read = decodeContainerGcAsk(ask);
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return decideContainerGc({
    snapshot: effectiveSnapshot(decoded(snapshot)),
    facts: {},
    ask: read.value,
    explain: "full",
  });
}
/** The decision; a refusal throws its message. */
export function answer(snapshot: unknown, ask?: unknown): Answer {
  const result = attempt(snapshot, ask);
  if (!result.ok) throw new Error(`refused: ${result.error.message}`);
  return result.value;
}
export const UNDER_PRESSURE = { operation: "delete-unused" };

/** `id: why` of each removal, in order. */
export const removed = ({ decision }: Answer): readonly string[] => decision.remove.map((r) => `${r.id}: ${r.why}`);
export const kept = ({ decision }: Answer): readonly string[] => decision.keep.map((k) => `${k.id}: ${k.why}`);
export const codesOf = ({ reasons }: Answer, id: string): readonly string[] =>
  reasons.find((r) => r.at === id)?.because.map((b) => b.code) ?? [];
