import { join } from "node:path";
import { Journal, recover } from "../../actuator/apply/journal.ts";
import type { Problem } from "../../actuator/core/interfaces.ts";
import { PassClock } from "../../actuator/core/pass-clock.ts";
import { containerHash } from "../../actuator/lifecycle/config/labels.ts";
import { configurationOf } from "../../actuator/pass/snapshot.ts";
import { CurrentCgroups } from "../../actuator/pods/cgroups/cgroup-view.ts";
import { ManagerFiles } from "../../actuator/pods/devices/manager-files.ts";
import { PodManager } from "../../actuator/pods/manager.ts";
import { PodRecords } from "../../actuator/pods/records/records.ts";
import { Images } from "../../actuator/pods/sync/images.ts";
import { PodWorker } from "../../actuator/pods/sync/pod-worker.ts";
import { ok } from "../../api/base/result.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { ROOT } from "../actuator/cgroups/hierarchy-kit.ts";
import { SIM_SETTINGS } from "../actuator/pods/node/settings.ts";
import { machineAt } from "./machine.ts";
import { watchedClient } from "./pods-client.ts";
import type { Life } from "./pods-life.ts";
import { CONFIGURATION } from "./pods-memory.ts";
import type { PodsNode } from "./pods-node.ts";

const HOST = {
  hostIPs: SIM_SETTINGS.hostIPs,
  clusterDomain: "",
  clusterDNS: ["10.96.0.10"],
  resolvConf: { servers: [], searches: [], options: [] },
  security: { seccompDefault: false, seccompDirectory: "/var/lib/kubelet/seccomp", maskedPaths: [] },
};

/** Opens the real daemon on a simulated machine, up to its first turn. Null: it does not start. */
export async function openDaemon(node: PodsNode, life: Life, onWorked: () => void): Promise<PodManager | null> {
  const { stateDir, hierarchy, bootId, time: clock, runtime, mounter } = node;
  const onProblem = (problem: Problem): void => {
    if (!life.isOver) node.problems.push(problem);
  };
  const journal = Journal.open(join(stateDir, "journal.jsonl"), bootId);
  if (!journal.ok) return null;
  const mended = await recover(journal.value, hierarchy, bootId);
  if (mended.journalError !== null) return null;
  const records = PodRecords.open(join(stateDir, "pods"), (message) => onProblem({ from: "pods", message }));
  if (!records.ok) return null;
  const client = watchedClient({ ...node, life, onProblem });
  const cgroups = new CurrentCgroups();
  const worker = new PodWorker({
    profile: v1_36,
    runtime,
    images: new Images(runtime, clock, { serializeImagePulls: true, maxParallelImagePulls: null }),
    mounter,
    clock,
    onEvent: () => {},
    owner: ROOT,
    roots: node.roots,
    node: () => ({ ...HOST, allocatable: {}, cgroupVersion: hierarchy.version }),
    cgroupParentOf: ({ uid }) => cgroups.parentOf(uid, ROOT),
    sandboxValuesOf: (pod) => cgroups.sandboxOf(pod, configurationOf(CONFIGURATION, v1_36)),
    memoryBytes: () => null,
  });
  return new PodManager(
    {
      clock,
      pods: { readPods: async () => node.source.read(), records: records.value },
      runtime: { runtime, worker, complete: (_, container) => container, hashOf: containerHash },
      node: {
        readConfiguration: async () => ok(CONFIGURATION),
        observeMachine: () => machineAt(new Date(clock.nowMs()).toISOString(), bootId, hierarchy.version),
        hierarchy,
        cgroups,
        journal: journal.value,
      },
      decisions: { client, files: new ManagerFiles(join(stateDir, "managers")) },
      eviction: {
        evictionClock: new PassClock(stateDir, "eviction", () => clock.monotonicMs()),
        stats: { observe: async (pods) => node.memory.look(pods, clock.nowMs()), unseen: [] },
      },
      observers: { onEvent: () => {}, onProblem, onPass: () => {}, onWorked },
    },
    SIM_SETTINGS,
  );
}
