import type { ResourceList } from "./fields.ts";
import type { Container, Pod } from "./pod.ts";

/**
 * What the API server fills in, for objects made by hand or by older versions: a container with a limit and no request of
 * a resource requests its limit. Pod-level requests are filled by `withPodLevelRequests`, which needs the sums.
 * kubernetes 1.36: SetDefaults_Pod.
 */
export function withDefaultRequests(pod: Pod): Pod {
  const containers = defaulted(pod.spec.containers);
  const init = pod.spec.initContainers;
  const initContainers = init === null || init === undefined ? init : defaulted(init);
  if (containers === pod.spec.containers && initContainers === init) return pod;
  return {
    ...pod,
    spec: { ...pod.spec, containers: containers as Container[], initContainers: initContainers as Container[] },
  };
}

/** The same array when nothing was missing, which is the common case. */
function defaulted(containers: readonly Container[]): readonly Container[] {
  if (!containers.some(lacksRequest)) return containers;
  return containers.map((c) => (lacksRequest(c) ? withRequests(c) : c));
}
function lacksRequest(c: Container): boolean {
  const requests = c.resources?.requests;
  for (const name in c.resources?.limits) {
    if (requests?.[name] === undefined) return true;
  }
  return false;
}
const withRequests = (c: Container): Container => ({
  ...c,
  resources: { ...c.resources, requests: sortedList({ ...c.resources?.limits, ...c.resources?.requests }) },
});
const sortedList = (list: ResourceList): ResourceList =>
  Object.fromEntries(Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1)));
