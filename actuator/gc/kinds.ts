import type { ContainerGcDecision, ContainerRemoval } from "../../api/model/container-gc.ts";
import type { DecisionOf } from "../../api/model/decision.ts";
import type { NodeReclaimFunction } from "../../api/model/eviction.ts";
import type { ImageGcDecision, ImageRemoval } from "../../api/model/image-gc.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { DecisionAnswer } from "../core/interfaces.ts";
import { GC_KINDS, type GcKind } from "./journal.ts";
import type { Removal } from "./remove.ts";

/** The ways in which the collections differ. */
interface GcTraits<D = DecisionOf[GcKind]> {
  /** The setting with its interval. */
  readonly period: "containerGCPeriodSeconds" | "imageGCPeriodSeconds";
  /** The function by which a decision of `eviction` names it. */
  readonly reclaimFunction: NodeReclaimFunction;
  /** True: `eviction` is also asked on its timer, and the collections that it names run. */
  readonly joinsEviction: boolean;
  /** True: it frees space on the image file system, which is measured afterwards. */
  readonly freesImages: boolean;
  /** Whether the kubelet runs no timer for it. */
  isTimerOff(decision: D): boolean;
  /** `remove` of a decision, in its order. */
  removalsOf(decision: D): readonly Removal[];
}

const TRAITS: { readonly [K in GcKind]: GcTraits<DecisionOf[K]> } = {
  "container-gc": {
    period: "containerGCPeriodSeconds",
    reclaimFunction: "delete-unused-containers",
    joinsEviction: true,
    freesImages: false,
    isTimerOff: () => false,
    removalsOf: ({ remove }: ContainerGcDecision) => remove.map(ofContainer),
  },
  "image-gc": {
    period: "imageGCPeriodSeconds",
    reclaimFunction: "delete-unused-images",
    joinsEviction: false,
    freesImages: true,
    // kubelet 1.36: StartGarbageCollection runs no timer for images that nothing could make too many or too old
    isTimerOff: ({ policy }: ImageGcDecision) => !policy.timer,
    removalsOf: ({ remove }: ImageGcDecision) => remove.map(ofImage),
  },
};
/** The traits of a collection; its functions accept only decisions of that kind. */
export const gcTraits = (kind: GcKind): GcTraits => TRAITS[kind] as GcTraits;

/** The collection that a function runs which `eviction` names. */
export const kindOfFunction = (name: NodeReclaimFunction): GcKind =>
  GC_KINDS.find((kind) => gcTraits(kind).reclaimFunction === name) as GcKind;

export const removalsOf = (kind: GcKind, { decision }: DecisionAnswer): readonly Removal[] =>
  gcTraits(kind).removalsOf(decision as DecisionOf[GcKind]);

/** The settings with the collection intervals. */
export type GcPeriods = Pick<ActuatorConfig, GcTraits["period"]>;

const ofImage = (image: ImageRemoval): Removal => ({
  target: "image",
  id: image.id,
  runtimeHandler: image.runtimeHandler,
  name: image.names[0] ?? image.id,
  bytes: image.sizeBytes,
  why: image.why,
  image,
});

const ofContainer = (container: ContainerRemoval): Removal => ({
  target: container.target,
  id: container.id,
  runtimeHandler: "",
  name: nameOf(container),
  bytes: null,
  why: container.why,
  container,
});

/** The target's name: `NAMESPACE/POD CONTAINER`; for logs, their own name. */
function nameOf({ target, id, pod, name }: ContainerRemoval): string {
  if (target === "pod-logs" || target === "log-link" || pod === null) return name ?? id;
  return `${pod.namespace}/${pod.name}${name === null ? "" : ` ${name}`}`;
}
