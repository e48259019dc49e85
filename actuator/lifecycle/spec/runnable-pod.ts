import { err, ok, type Result } from "../../../api/model/result.ts";
import type { RunnablePod, SpecFault } from "../pod.ts";
import { checkAppArmor } from "./app-armor-annotation.ts";
import { At, Faults } from "./at.ts";
import { deletionOf, identityOf } from "./metadata.ts";
import { podSpecOf } from "./pod-spec.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

/**
 * A v1.Pod as this daemon can run it, of a manifest or as `kubectl get -o json` and a kubelet's /pods print it, with what
 * an API server would have filled in. Errors: every fault of it with its place, in the order of the fields: what v1 does
 * not have, what this daemon does not do, and what an API server would refuse, in its words.
 */
export function runnablePod(object: unknown): Result<RunnablePod, readonly SpecFault[]> {
  const faults = new Faults();
  const pod = new At(object, "", faults);
  if (!checkFields(pod, RULES.Pod)) return err(faults.all);
  checkKind(pod);
  const metadata = pod.field("metadata");
  const identity = identityOf(metadata);
  const spec = podSpecOf(pod.field("spec"), identity.annotations);
  const deletion = deletionOf(metadata, spec.terminationGracePeriodSeconds);
  const names = [...spec.containers, ...spec.initContainers].map(({ name }) => name);
  checkAppArmor(metadata.field("annotations"), new Set(names));
  if (faults.all.length > 0) return err(faults.all);
  return ok({ ...identity, deletion, spec, object: withPriority(pod.value as RunnablePod["object"], spec.priority) });
}

/** As an API server would have stored it: what is decided about the pod reads the number. */
function withPriority(object: RunnablePod["object"], priority: number | null): RunnablePod["object"] {
  const spec = object["spec"] as { readonly priority?: unknown };
  return priority === null || spec.priority === priority ? object : { ...object, spec: { ...spec, priority } };
}

/** A kubelet's /pods leaves both out of its items. */
function checkKind(pod: At): void {
  for (const [name, value] of [
    ["apiVersion", "v1"],
    ["kind", "Pod"],
  ] as const) {
    const at = pod.field(name);
    if (!at.isEmpty && at.value !== value) at.invalid(`must be ${value}`);
  }
}
