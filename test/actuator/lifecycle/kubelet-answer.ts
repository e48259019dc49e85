import { backOffMessage, backOffOfStarts } from "../../../actuator/lifecycle/back-off.ts";
import { containersToKill, effectiveGracePeriod } from "../../../actuator/lifecycle/container-termination.ts";
import { latestOf, mayRun } from "../../../actuator/lifecycle/instances.ts";
import { podActions } from "../../../actuator/lifecycle/pod-actions.ts";
import { naturalPhase, podStatus } from "../../../actuator/lifecycle/pod-status.ts";
import { isOverPhase, type PodStatus } from "../../../actuator/lifecycle/status/status.ts";
import { CRASH_LOOP_BACK_OFF } from "../../../api/decide/probes/back-off.ts";
import { hashOf } from "../../kit/seen-pods.ts";
import type { KubeletAnswer, KubeletCase } from "./kubelet-cases.ts";
import { recordOf, runnableOf } from "./small-pods.ts";

const sorted = <T>(list: readonly T[], by: (t: T) => string): readonly T[] =>
  [...list].sort((a, b) => (by(a) < by(b) ? -1 : 1));
const itself = (text: string): string => text;

/** The answer of our rules to a case, in the format of the kubelet's answers. */
export function ourAnswer(c: KubeletCase): unknown {
  const pod = runnableOf(c.object);
  const record = recordOf(c.object, { state: c.state, end: c.end, resize: c.resize, backOff: c.backOff });
  const options = {
    nowMs: c.nowMs,
    backOff: c.backOff,
    limits: CRASH_LOOP_BACK_OFF,
    hashOf,
    resizeRestarts: new Set(c.resizeRestarts),
  };
  const actions = podActions(pod, c.seen, options);
  const names = [...actions.initToStart, ...actions.toStart].map((s) => s.name);
  const delays = backOffOfStarts(pod, c.seen, names, options);
  const isInit = (id: string): boolean =>
    pod.spec.initContainers.some((i) => c.seen.containers.some((s) => s.id === id && s.name === i.name));
  const reported = podStatus(pod, record, c.seen, {
    nowMs: c.nowMs,
    hostIPs: c.hostIPs,
    qosClass: "BestEffort",
    previous: c.previous,
    errors: c.errors,
    heldBack: actions.heldBack,
  });
  return {
    actions: {
      killPod: actions.killPod,
      createSandbox: actions.createSandbox,
      attempt: actions.attempt,
      initToStart: actions.initToStart.map((s) => s.name),
      toStart: actions.toStart.map((s) => s.name),
      toKill: sorted(actions.toKill, (k) => k.containerId),
      removed: sorted(actions.toRemove.filter(isInit), itself),
      heldBack: actions.heldBack.map((h) => ({ ...h, message: backOffMessage(pod, h) })),
      nextDelay: Object.fromEntries(names.filter((n) => delays[n]).map((n) => [n, delays[n]?.delayMs])),
    },
    stops: sorted(
      containersToKill(pod, c.seen).map(({ name, waitsFor }) => ({ name, waitsFor: sorted(waitsFor, itself) })),
      (s) => s.name,
    ),
    status: comparable(reported, c),
    finished: isForgotten(c) || isLate(c) ? null : naturalPhase(pod, c.seen, c.previous),
    grace: effectiveGracePeriod(pod, c.end),
  };
}

export function kubeletsAnswer(answer: KubeletAnswer, c: KubeletCase): unknown {
  const { sandboxId: _, ...actions } = answer.actions;
  const restarted = [...(actions.initToStart ?? []), ...(actions.toStart ?? [])];
  return {
    actions: {
      ...actions,
      initToStart: actions.initToStart ?? [],
      toStart: actions.toStart ?? [],
      toKill: actions.toKill ?? [],
      removed: actions.removed ?? [],
      heldBack: actions.heldBack ?? [],
      nextDelay: Object.fromEntries(Object.entries(actions.nextDelay).filter(([n]) => restarted.includes(n))),
    },
    stops: sorted(answer.stops ?? [], (s) => s.name),
    status: comparable(answer.status, c),
    finished: isOverPhase(answer.natural) && !isForgotten(c) && !isLate(c) ? answer.natural : null,
    grace: answer.grace,
  };
}

/**
 * The status without what Nodewise deliberately writes differently from the kubelet: times of conditions and of the
 * start, resource fields that have another source, DisruptionTarget, empty texts, the QoS class.
 */
function comparable(status: PodStatus, c: KubeletCase): unknown {
  const { startTime: _, qosClass: __, ...rest } = plain(status) as Record<string, unknown>;
  const conditions = status.conditions
    .filter(({ type }) => type !== "DisruptionTarget")
    .map((condition) => {
      const { lastTransitionTime: _, lastProbeTime: __, ...reported } = plain(condition) as Record<string, unknown>;
      return reported;
    });
  const { observedGeneration: ___, allocatedResources: _a, resources: _r, ...own } = rest;
  if ((c.previous === null && c.state !== "terminated" && mayRun(c.seen)) || isLate(c)) own["phase"] = "?";
  const { hostNetwork } = c.object.spec;
  if (hostNetwork === true && c.seen.sandboxes[0]?.ips.length) for (const key of ["podIP", "podIPs"]) delete own[key];
  const kept = isOverPhase(c.previous?.phase);
  return { ...own, conditions, ...(kept && { reason: "kept", message: "kept" }) };
}

/** The kubelet treats a sidecar as started one pass later than its status says so. */
const isLate = (c: KubeletCase): boolean =>
  (c.object.spec.initContainers ?? []).some(
    ({ name, restartPolicy }) =>
      restartPolicy === "Always" &&
      latestOf(c.seen, name)?.state === "running" &&
      !c.previous?.initContainerStatuses?.some((s) => s.name === name && s.started && s.state.running !== undefined),
  );

/**
 * A container that was removed from the runtime and cannot be started: the kubelet treats its last exit, with code 0,
 * as a failure.
 */
const isForgotten = (c: KubeletCase): boolean =>
  Object.keys(c.errors).some((name) => latestOf(c.seen, name) === undefined);

/** The value without null and without empty lists. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, v: unknown) => (v === null || (Array.isArray(v) && v.length === 0) ? undefined : v)),
  );
