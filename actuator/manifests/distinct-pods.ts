import { LIMITS } from "../../api/model/limits.ts";
import { type RefusedItem, refusedItemOf } from "../lifecycle/refused-item.ts";
import type { PodsInForce } from "../ports.ts";
import type { FoundPod } from "./pods-of.ts";
import type { ProblemCode, ReadProblem } from "./problem.ts";
import type { PodObject } from "./static-pod.ts";

/**
 * Of pods with one namespace and name, or with one uid, which would own the same cgroup, the one in force counts, then its
 * next version in the same file, then the first. At most `LIMITS.pods`. Those left out are problems. kubelet 1.36:
 * allowStaticPodStart.
 */
export function distinctPods(
  found: readonly FoundPod[],
  inForce: PodsInForce = new Map(),
): { found: readonly FoundPod[]; problems: readonly ReadProblem[] } {
  const problems: ReadProblem[] = [];
  const leaveOut = ({ pod, source }: FoundPod, code: ProblemCode, message: string, item?: RefusedItem): void => {
    const { file, document } = source;
    const problem = { code, file, document, place: source.place([]), message: `pod ${keyOf(pod)} ${message}` };
    problems.push(item === undefined ? problem : { ...problem, item });
  };
  const rank = ({ pod, source }: FoundPod): number => {
    const known = inForce.get(keyOf(pod));
    return known?.uid === pod.metadata["uid"] ? 0 : known?.file === source.file ? 1 : 2;
  };
  const names = new Map<string, FoundPod>();
  const owners = new Map<unknown, FoundPod>();
  for (const one of found.toSorted((a, b) => rank(a) - rank(b))) {
    const uid = one.pod.metadata["uid"];
    const twin = names.get(keyOf(one.pod));
    const owner = owners.get(uid);
    if (twin !== undefined) leaveOut(one, "duplicate", `is also in ${twin.source.file}, which counts: rename one`);
    else if (owner !== undefined) {
      // what runs of its name does not end for a uid that is another's
      const item = { ...refusedItemOf(one.pod), deletion: null, owner: keyOf(owner.pod) };
      leaveOut(one, "duplicate", `has the uid of pod ${item.owner}, \`${uid}\`: remove the uid`, item);
    } else if (owners.size === LIMITS.pods)
      leaveOut(one, "too-many", `is beyond the ${LIMITS.pods} pods of a node: remove some`);
    else {
      names.set(keyOf(one.pod), one);
      owners.set(uid, one);
    }
  }
  const counting = new Set(owners.values());
  return { found: found.filter((one) => counting.has(one)), problems };
}

const keyOf = ({ metadata }: PodObject): string => `${String(metadata["namespace"])}/${metadata.name}`;
