import { pathPart } from "./fields.ts";
import { type InputIssue, joinPath } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import { MIRROR_ANNOTATION, type Pod, podNamespace, podUid } from "./pod.ts";

/** What the schema of one field cannot see: pods with one uid, containers with one name, an annotation that serves as uid. `place`: the path of a pod. */
export function podIssues(pods: readonly Pod[], place: (i: number) => string): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const seen = new Map<string, number>();
  for (const [i, pod] of pods.entries()) {
    const here = place(i);
    const uid = podUid(pod);
    const first = uid === undefined ? undefined : seen.get(uid);
    if (first !== undefined) {
      const other = `${place(first)} (${nameOf(pods[first])})`;
      issues.push({ path: `${here}.metadata.uid`, message: `uid \`${uid}\` is also that of ${other}` });
    } else if (uid !== undefined) seen.set(uid, i);
    if (pod.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined && !pathPart.safeParse(uid).success) {
      const path = joinPath(`${here}.metadata.annotations`, [MIRROR_ANNOTATION]);
      issues.push({ path, message: "names the pod's cgroup: must be letters, digits, `-` or `.`, at most 253" });
    }
    const id = repeatedContainerId(pod);
    if (id !== undefined) issues.push({ path: `${here}.status`, message: `two containers have the id \`${id}\`` });
    const twin = repeatedName(pod);
    if (twin !== undefined) issues.push({ path: `${here}.spec`, message: `two containers are named \`${twin}\`` });
    if (issues.length >= LIMITS.issues) break;
  }
  return issues;
}
const nameOf = (p: Pod | undefined): string => (p === undefined ? "" : `${podNamespace(p)}/${p.metadata.name}`);

function repeatedContainerId(pod: Pod): string | undefined {
  const ids = new Set<string>();
  for (const { containerID = "" } of [
    ...(pod.status?.initContainerStatuses ?? []),
    ...(pod.status?.containerStatuses ?? []),
  ]) {
    if (containerID !== "" && ids.has(containerID)) return containerID;
    ids.add(containerID);
  }
  return undefined;
}

function repeatedName(pod: Pod): string | undefined {
  const init = pod.spec.initContainers ?? [];
  if (pod.spec.containers.length + init.length === 1) return undefined;
  const names = new Set<string>();
  for (const c of [...init, ...pod.spec.containers]) {
    if (names.has(c.name)) return c.name;
    names.add(c.name);
  }
  return undefined;
}
