import type { Removal, Removals, Return } from "../../db/removal.ts";
import type { ContainerRemoval } from "../model/container-gc.ts";
import type { DecisionOf, Kind } from "../model/decision.ts";
import type { ImageRemoval, PulledAgain } from "../model/image-gc.ts";

/** What an answer tells of a pass that ran: the history keeps it longer than the answer. */
export type Told = Omit<Removals, "atMs">;

/** Of an image's names; more would make a row that a database refuses. */
const MOST_NAMES = 32;

/** What was removed, or was tried to be, by `ask.done`; and which images came back. Null: nothing, as of a mere plan. */
export function removalsIn(kind: Kind, decision: DecisionOf[Kind]): Told | null {
  if (kind === "image-gc" && "pulledAgain" in decision) {
    const { operation, remove, pulledAgain } = decision;
    return told({ kind, operation, removals: ended(remove, ofImage), returns: pulledAgain.map(returnOf) });
  }
  if (kind === "container-gc" && "allSourcesReady" in decision) {
    const { operation, remove } = decision;
    return told({ kind, operation, removals: ended(remove, ofContainer), returns: [] });
  }
  return null;
}
const told = (all: Told): Told | null => (all.removals.length + all.returns.length === 0 ? null : all);

function ended<R extends ImageRemoval | ContainerRemoval>(
  remove: readonly R[],
  rest: (removal: R) => Omit<Removal, "end" | "id" | "message" | "why">,
): readonly Removal[] {
  const found: Removal[] = [];
  for (const removal of remove) {
    const { id, why, end, message = null } = removal;
    if (end !== "planned") found.push({ id, why, end, message, ...rest(removal) });
  }
  return found;
}

const ofImage = ({ runtimeHandler, names, sizeBytes }: ImageRemoval) => ({
  target: "image" as const,
  runtimeHandler,
  names: names.slice(0, MOST_NAMES),
  sizeBytes,
  pod: null,
  container: null,
});
const ofContainer = ({ target, pod, name }: ContainerRemoval) => ({
  target,
  runtimeHandler: "",
  names: [],
  sizeBytes: null,
  pod,
  container: name,
});
const returnOf = ({ id, runtimeHandler, againAtMs }: PulledAgain): Return => ({ id, runtimeHandler, againAtMs });
