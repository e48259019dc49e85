import type { Result } from "../../api/base/result.ts";
import { decideImageGc } from "../../api/decide/kinds/image-gc.ts";
import type { Done, GcOperation } from "../../api/model/container-gc.ts";
import type { Decided, Refusal } from "../../api/model/decision.ts";
import type { ImageGcDecision } from "../../api/model/image-gc.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { runtimeContainer } from "../kit/runtime.ts";
import { decoded } from "../kit/snapshots.ts";
import { type Suite, suite } from "./suite.ts";

interface Step {
  readonly atMs: number;
  readonly images: readonly { readonly id: string; readonly sizeBytes: number; readonly pinned: boolean }[];
  readonly inUse: readonly string[] | null;
  readonly availableBytes: number;
  readonly capacityBytes: number;
  readonly op: GcOperation;
}
interface Case {
  readonly highThresholdPercent: number;
  readonly lowThresholdPercent: number;
  readonly minAgeMs: number;
  readonly maxAgeMs: number;
  readonly steps: readonly Step[];
}
interface ReadStep {
  readonly operation: GcOperation;
  readonly snapshot: Snapshot;
}
const START = Date.parse("2026-01-31T12:00:00Z");
/** Longer than any case, so that no image is ever too old. */
const NEVER = "2000000h";

/**
 * The suite calls the image manager directly. The kubelet calls it by a timer, which it does not start with a high
 * threshold of 100 and no maximum age. For such a case a maximum age that is never reached makes the manager run.
 */
function readCase(input: Case): readonly ReadStep[] {
  const { highThresholdPercent: high, lowThresholdPercent: low, minAgeMs, maxAgeMs, steps } = input;
  const noTimer = high === 100 && maxAgeMs === 0;
  const kubeletConfiguration = {
    imageGCHighThresholdPercent: high,
    imageGCLowThresholdPercent: low,
    imageMinimumGCAge: `${minAgeMs}ms`,
    imageMaximumGCAge: noTimer ? NEVER : `${maxAgeMs}ms`,
  };
  return steps.map(({ images, inUse, availableBytes, capacityBytes, atMs, op }) => {
    const snapshot = decoded({
      observedAt: new Date(START + atMs).toISOString(),
      kubeletConfiguration,
      kubelet: { startedAt: new Date(START).toISOString() },
      stats: { node: { runtime: { imageFs: { availableBytes, capacityBytes } } } },
      runtime: {
        images: images.map(({ id, sizeBytes, pinned }) => ({ id, size: sizeBytes, pinned })),
        containers: (inUse ?? []).map((imageId, i) =>
          runtimeContainer(`c${i}`, { imageId, state: "CONTAINER_RUNNING" }),
        ),
      },
    });
    return { operation: op, snapshot };
  });
}
/** The snapshot without the images that earlier steps removed, which the case continues to list. */
const without = (snapshot: Snapshot, removed: ReadonlySet<string>): Snapshot => {
  const images = (snapshot.runtime?.images ?? []).filter(({ id }) => !removed.has(id));
  return { ...snapshot, runtime: { ...snapshot.runtime, images } };
};

interface StepDecisions {
  readonly plan: ImageGcDecision;
  readonly pass: ImageGcDecision;
}
interface StepAnswer {
  readonly removed: readonly string[];
  readonly error: string | null;
  readonly events: readonly string[];
}

/** Plans each step, and then reports its removals as done. The next step gets the facts of the second answer. */
function decideSteps(
  steps: readonly ReadStep[],
  profile: Profile,
): { policyError: string } | { steps: readonly StepDecisions[] } {
  const removed = new Set<string>();
  const decisions: StepDecisions[] = [];
  let facts: unknown;
  for (const step of steps) {
    const snapshot = without(step.snapshot, removed);
    const decide = (done: readonly Done[] | null): Result<Decided<ImageGcDecision>, Refusal> => {
      const ask = { operation: step.operation, done, fileSystem: null, afterContainerGc: false };
      return decideImageGc({
        snapshot: effectiveSnapshot(snapshot, profile),
        facts: { "image-gc": facts },
        ask,
        explain: "off",
      });
    };
    const plan = decide(null);
    if (!plan.ok) return { policyError: plan.error.message };
    const ids = plan.value.decision.remove.map((r) => r.id);
    const pass = decide(ids.map((id) => ({ id, end: "removed" })));
    if (!pass.ok) throw new Error(pass.error.message);
    decisions.push({ plan: plan.value.decision, pass: pass.value.decision });
    for (const id of ids) removed.add(id);
    facts = pass.value.next;
  }
  return { steps: decisions };
}
/** Both answers of a step must be equal. */
function shownStep({ plan, pass }: StepDecisions): object {
  const { error, ...rest } = answerOf(pass);
  if (JSON.stringify(answerOf(plan)) !== JSON.stringify({ ...rest, error })) throw new Error("plan and pass differ");
  return { ...rest, ...(error !== null && { error }) };
}
/**
 * The answer without the event about a second consecutive failure: the kubelet's timer sends that event, and the suite
 * ran only the manager.
 */
const answerOf = ({ remove, error, events }: ImageGcDecision): StepAnswer => ({
  removed: remove.map((r) => r.id),
  events: events.filter((e) => e.reason !== "ImageGCFailed").map((e) => `${e.type} ${e.reason} ${e.message}`),
  error,
});

const imageGc = suite({
  read: readCase,
  decide: decideSteps,
  show: (answer) => ("policyError" in answer ? answer : { steps: answer.steps.map(shownStep) }),
});

export const IMAGE_GC_SUITES: Readonly<Record<string, Suite>> = { "image-gc": imageGc };
