import { LIMITS } from "../../api/model/limits.ts";
import type { ProblemCode, ReadProblem } from "./problem.ts";
import type { SourceDocument } from "./source-document.ts";
import type { PodObject } from "./static-pod.ts";

export interface FoundPod {
  readonly pod: PodObject;
  readonly source: SourceDocument;
}

/**
 * Of pods with one namespace and name the last counts, as in the kubelet's store; of pods with one uid the first, because
 * both would own the same cgroup. At most `LIMITS.pods`. Those left out are problems.
 */
export function distinctPods(found: readonly FoundPod[]): {
  pods: readonly PodObject[];
  problems: readonly ReadProblem[];
} {
  const problems: ReadProblem[] = [];
  const leaveOut = ({ pod, source }: FoundPod, code: ProblemCode, message: string): void => {
    const { file, document } = source;
    problems.push({ code, file, document, place: source.place([]), message: `pod ${keyOf(pod)} ${message}` });
  };
  const last = new Map(found.map((one) => [keyOf(one.pod), one]));
  const owners = new Map<unknown, FoundPod>();
  for (const one of found) {
    const winner = last.get(keyOf(one.pod));
    if (winner !== undefined && winner !== one) {
      leaveOut(one, "duplicate", `is also in ${winner.source.file}, which counts: rename one`);
      continue;
    }
    const uid = one.pod.metadata["uid"];
    const owner = owners.get(uid);
    if (owner !== undefined)
      leaveOut(one, "duplicate", `has the uid of pod ${keyOf(owner.pod)}, \`${uid}\`: remove the uid`);
    else if (owners.size === LIMITS.pods)
      leaveOut(one, "too-many", `is beyond the ${LIMITS.pods} pods of a node: remove some`);
    else owners.set(uid, one);
  }
  return { pods: Array.from(owners.values(), ({ pod }) => pod), problems };
}

const keyOf = ({ metadata }: PodObject): string => `${String(metadata["namespace"])}/${metadata.name}`;
