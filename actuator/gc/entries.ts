import type { ContainerGcDecision, ContainerRemoval } from "../../api/model/container-gc.ts";
import type { ImageGcDecision, ImageRemoval } from "../../api/model/image-gc.ts";
import type { DecisionAnswer } from "../ports.ts";
import type { Entry } from "./journal.ts";
import type { GcKind, RemovalReport } from "./ports.ts";

/** A removal that a decision names, with what the guards compare it to. */
export type Removal = Entry &
  Pick<RemovalReport, "name" | "bytes" | "why"> &
  (
    | { readonly target: "image"; readonly image: ImageRemoval }
    | { readonly target: "container" | "sandbox" | "pod-logs" | "log-link"; readonly container: ContainerRemoval }
  );

/** `remove` of an answer, in its order. */
export function removalsOf(kind: GcKind, { decision }: DecisionAnswer): readonly Removal[] {
  if (kind === "image-gc") return (decision as ImageGcDecision).remove.map(ofImage);
  return (decision as ContainerGcDecision).remove.map(ofContainer);
}

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

/** `NAMESPACE/POD CONTAINER`; of logs their own name, which says it. */
function nameOf({ target, id, pod, name }: ContainerRemoval): string {
  if (target === "pod-logs" || target === "log-link" || pod === null) return name ?? id;
  return `${pod.namespace}/${pod.name}${name === null ? "" : ` ${name}`}`;
}
