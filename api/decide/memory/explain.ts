import { containersOf, podUid } from "../../model/pod.ts";
import type { Answered } from "../managers/desk.ts";
import type { Reasons } from "../reasons.ts";
import { qosClass } from "../resources/qos.ts";

/** Why each container of the asked pod has the memory that it has, under its name. */
export function explainMemory({ node, pod, after, refusal }: Answered, reasons: Reasons): void {
  for (const [id, { memoryMap }] of after.memory.state.machineState) {
    const table = memoryMap.get("memory");
    if (table !== undefined) reasons.add("memory_table", `NUMA node ${id}`, "memory", { ...table });
  }
  if (node.memory.policy === "None") {
    reasons.add("memory_not_managed", "node", "memory", { because: "memoryManagerPolicy is None" });
  }
  if (pod === null) return;
  if (refusal !== null) return;
  const qos = qosClass(pod);
  const because = node.memory.policy === "None" ? "memoryManagerPolicy is None" : `the pod is ${qos}`;
  for (const { name } of containersOf(pod)) {
    const blocks = after.memory.blocks(podUid(pod) ?? "", name);
    if (blocks.length === 0) reasons.add("memory_anywhere", name, "memory", { because });
    for (const { numaAffinity, type, size } of blocks) {
      reasons.add("memory_given", name, type, { numaNodes: numaAffinity.join(","), size });
    }
  }
}
