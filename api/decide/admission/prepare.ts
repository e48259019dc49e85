import type { PodAsk } from "../../model/ask.ts";
import type { Refusal } from "../../model/decision.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { Node } from "../../model/node.ts";
import type { Pod } from "../../model/pod.ts";
import { isActive } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { allocatedPod } from "../cgroups/allocated.ts";
import { podsOfNode, withoutPodLevel } from "../cgroups/node-pods.ts";
import { configurationOf, gateOn } from "../config.ts";
import { Reasons } from "../reasons.ts";
import type { Admitting } from "./admitting.ts";
import { askedPod } from "./asked.ts";

/** One admission made ready. */
export interface Prepared {
  readonly admitting: Admitting;
  /** With its pod-level resources whatever the gate, and what it asks for rather than what is allocated. */
  readonly asked: Pod;
  readonly onNode: boolean;
}

/**
 * Finds the asked pod and those that count beside it, with what the kubelet has allocated to each.
 * Errors: no pod in the ask, or one that is not there; the node's pods are not known.
 */
export function prepare(snapshot: Snapshot, ask: PodAsk, reasons: Reasons): Result<Prepared, Refusal> {
  if (snapshot.pods === undefined) {
    const message = "which pods are on the node? post them; an empty list says that there are none";
    return err({ code: "needs_input", message, needs: ["pods"] });
  }
  const config = configurationOf(snapshot);
  const here = podsOfNode(snapshot);
  const found = askedPod(snapshot, ask.pod, here, reasons);
  if (!found.ok) return found;
  const { pod: asked, known } = found.value;
  const podLevel = gateOn(config, "PodLevelResources");
  const quiet = new Reasons("off");
  const allocated = (pod: Pod): Pod =>
    allocatedPod(podLevel ? pod : withoutPodLevel(pod), snapshot.assignments?.allocated_pods_state, "", quiet);
  const counted = here.filter(isActive);
  if (counted.length < here.length) reasons.add("ended_pods", "pods", "used", { ended: here.length - counted.length });
  const admitting: Admitting = {
    pod: allocated(asked),
    node: snapshot.node ?? { metadata: {} },
    config,
    kubelet: snapshot.kubelet ?? {},
    others: counted.filter((pod) => pod !== known).map(allocated),
    reasons,
    needs: new Set(),
  };
  const { priority, priorityClassName = "" } = admitting.pod.spec;
  if (priority === undefined && priorityClassName !== "") admitting.needs.add("ask.pod.spec.priority");
  return ok({ admitting, asked, onNode: known !== undefined });
}

/** What the node can give to pods. Error: it does not say. */
export function allocatableOf({ status }: Node): Result<ResourceList, Refusal> {
  const allocatable = status?.allocatable;
  if (allocatable !== undefined) return ok(allocatable);
  const message = "what the node can give to pods is not known";
  return err({ code: "needs_input", message, needs: ["node.status.allocatable"] });
}
