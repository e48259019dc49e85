import type { AskOf, Kind } from "../../model/decision.ts";
import { traitsOf } from "../../model/kinds.ts";
import type { Pod } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { podsHere } from "./node-pods.ts";

/**
 * Paths of the overheads that are not known: of pods that name a RuntimeClass and have none. The API server writes the
 * class's overhead into each pod that it stores, so where it stored one without, the class has none.
 * kubernetes 1.36: the admission plugin RuntimeClass.
 */
export function unknownOverheads(kind: Kind, snapshot: Snapshot, ask: AskOf[Kind]): readonly string[] {
  if (traitsOf(kind).pods !== "overhead") return [];
  const here = podsHere(snapshot).filter(lacksOverhead);
  const paths = here.map((pod) => `pods[${snapshot.pods?.indexOf(pod)}].spec.overhead`);
  const asked = ask !== undefined && "pod" in ask ? ask.pod : null;
  return asked !== null && typeof asked === "object" && lacksOverhead(asked)
    ? [...paths, "ask.pod.spec.overhead"]
    : paths;
}
const lacksOverhead = ({ metadata, spec }: Pod): boolean =>
  (spec.runtimeClassName ?? "") !== "" && spec.overhead === undefined && metadata.creationTimestamp === undefined;
