import type { Runtime, RuntimeContainer } from "../../model/runtime.ts";
import type { Ledger } from "./ledger.ts";
import type { PodState } from "./pod-fates.ts";
import { isPodLogsName, logLinkTarget, podLogsTarget } from "./targets.ts";

const byText = (a: string, b: string): number => (a < b ? -1 : 1);
const sortedOnce = (names: readonly string[] | undefined): readonly string[] => [...new Set(names)].sort(byText);

/**
 * The log directories of pods that are gone, by name; none before all sources of pods are ready. A pod that has only
 * ended keeps its logs, under pressure too. A directory of another form (`backup`, `lost+found`) stays: the kubelet takes
 * all of its name for a uid that no pod has, and removes it. kubelet 1.36: evictPodLogsDirectories.
 */
export function evictPodLogs(
  { podLogDirectories }: Runtime,
  fateOf: (uid: string) => PodState,
  allSourcesReady: boolean,
  ledger: Ledger,
): void {
  for (const directory of sortedOnce(podLogDirectories)) {
    const target = podLogsTarget(directory);
    const { fate, because: code } = fateOf(target.pod.uid);
    if (!isPodLogsName(directory)) ledger.leave(target, { why: "not-pod-logs", code: "not_pod_logs" });
    else if (!allSourcesReady) ledger.leave(target, { why: "sources-not-ready", code: "sources_not_ready" });
    else if (fate === "removed") ledger.take(target, { why: "pod-removed", code }, false, false);
    else ledger.leave(target, { why: "pod-exists", code });
  }
}

/**
 * The links that lead nowhere, by name; `left`: the containers that the pass leaves. While a log is rotated its link does so for a moment, so a container that the
 * runtime still lists, and not as exited, keeps its link. What has another name than a link to a container's log goes.
 * kubelet 1.36: evictPodLogsDirectories.
 */
export function evictLogLinks({ danglingLogLinks }: Runtime, left: readonly RuntimeContainer[], ledger: Ledger): void {
  if (danglingLogLinks === undefined) return;
  const containerOf = finder(left);
  for (const link of sortedOnce(danglingLogLinks)) {
    const container = containerOf(containerIdOf(link));
    const target = logLinkTarget(link, container);
    if (container === undefined || container.state === "CONTAINER_EXITED") {
      ledger.take(target, { why: "dangling", code: "link_leads_nowhere" }, false, false);
    } else ledger.leave(target, { why: "container-not-exited", code: "container_not_exited" });
  }
}

const SHORTEST_ID = 6;
/** Undefined: the name holds none. kubelet 1.36: getContainerIDFromLegacyLogSymlink. */
function containerIdOf(link: string): string | undefined {
  const last = link.slice(link.lastIndexOf("-") + 1);
  if (!last.endsWith(".log")) return undefined;
  const id = last.slice(0, -".log".length);
  return id.length < SHORTEST_ID ? undefined : id;
}

/** By id, or by its beginning: a long name of a link is cut. Of several with one beginning the first that has not exited. */
function finder(containers: readonly RuntimeContainer[]): (id: string | undefined) => RuntimeContainer | undefined {
  const byId = new Map<string, RuntimeContainer>();
  const others: RuntimeContainer[] = [];
  const exited: RuntimeContainer[] = [];
  for (const c of containers) {
    byId.set(c.id, c);
    if (c.state === "CONTAINER_EXITED") exited.push(c);
    else others.push(c);
  }
  for (const list of [others, exited]) list.sort((a, b) => byText(a.id, b.id));
  return (id) => {
    if (id === undefined) return undefined;
    return byId.get(id) ?? beginning(others, id) ?? beginning(exited, id);
  };
}

/** The first whose id begins so. */
function beginning(sorted: readonly RuntimeContainer[], id: string): RuntimeContainer | undefined {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as RuntimeContainer).id < id) low = middle + 1;
    else high = middle;
  }
  const found = sorted[low];
  return found?.id.startsWith(id) ? found : undefined;
}
