import type { TopologyDecision } from "../../model/managers.ts";
import { containersOf, type Pod, podUid } from "../../model/pod.ts";
import { cpuText } from "../cpus/sets.ts";
import type { Managers } from "../managers/node.ts";
import { blocksOf } from "../memory/decide.ts";

/** What the managers have given a pod's containers, init containers first. */
export function assignedOf(managers: Managers, pod: Pod): TopologyDecision["assigned"] {
  const uid = podUid(pod) ?? "";
  const shared = cpuText(managers.cpus.state().defaultCpus);
  return containersOf(pod).map(({ name }) => {
    const own = managers.cpus.cpusOf(uid, name);
    const held = managers.devices.state.pods.get(uid)?.get(name) ?? new Map();
    return {
      container: name,
      cpus: own === undefined ? shared : cpuText(own),
      exclusive: own !== undefined,
      memory: blocksOf(managers.memory.blocks(uid, name)),
      devices: Object.fromEntries([...held].map(([resource, { ids }]) => [resource, [...ids]])),
    };
  });
}
