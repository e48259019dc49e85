import type { ContainerGcAsk, ContainerGcDecision } from "../../model/container-gc.ts";
import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import { ok, type Result } from "../../model/result.ts";
import { Reasons } from "../reasons.ts";
import { evictContainers } from "./containers.ts";
import { doubts } from "./doubts.ts";
import { inputOf } from "./input.ts";
import { Ledger } from "./ledger.ts";
import { evictLogLinks, evictPodLogs } from "./logs.ts";
import { podFates } from "./pod-fates.ts";
import { evictSandboxes } from "./sandboxes.ts";
import { newestOldEnough } from "./unix-nanos.ts";
import { unlisted } from "./unlisted.ts";

/**
 * One pass over dead containers, then sandboxes, log directories and dangling log links; with `delete-unused` what
 * belongs to pods that have ended goes too. Refused: a runtime's list, the pods, a pod's uid or the time is lacking; an id
 * that is there twice; flags that the kubelet does not start with (its words). `error` is null and there are no events but
 * where the ask tells that the runtime listed nothing: the kubelet only logs single failures.
 * kubelet 1.36: containerGC.GarbageCollect, realContainerGC.DeleteAllUnusedContainers.
 */
export function decideContainerGc(asked: Asked<ContainerGcAsk>): Result<Decided<ContainerGcDecision>, Refusal> {
  const { snapshot, ask } = asked;
  const given = inputOf(snapshot, ask.error === undefined);
  if (!given.ok) return given;
  if (ask.error !== undefined) return ok(unlisted(asked, given.value, ask.error));
  const { now, runtime, containers, sandboxes, minAgeMs, maxPerPodContainer, maxContainers } = given.value;
  const reasons = new Reasons(asked.explain);
  const needs: string[] = [];
  const allSourcesReady = snapshot.kubelet?.sourcesReady ?? true;
  const underPressure = ask.operation === "delete-unused";
  const fateOf = podFates(snapshot, containers, sandboxes);
  const ledger = new Ledger(ask.done, reasons);
  const limits = { minAgeMs, newest: newestOldEnough(now, minAgeMs), maxPerPodContainer, maxContainers };
  const left = evictContainers({ containers, fateOf, allSourcesReady, underPressure, ...limits }, ledger);
  evictSandboxes({ sandboxes, containers: left, fateOf, underPressure }, ledger);
  evictPodLogs(runtime, fateOf, allSourcesReady, ledger);
  evictLogLinks(runtime, left, ledger);
  ledger.close();
  doubts(given.value, reasons, needs);
  const decision: ContainerGcDecision = {
    operation: ask.operation,
    policy: { minAgeMs, maxPerPodContainer, maxContainers },
    allSourcesReady,
    remove: ledger.remove,
    keep: ledger.keep,
    error: null,
    events: [],
  };
  const verdict = ledger.remove.some(({ end }) => end === "planned" || end === "removed") ? "removes" : "keeps";
  return ok({ decision, verdict, reasons: reasons.list, needs, next: null });
}
