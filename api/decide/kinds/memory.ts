import { ok, type Result } from "../../base/result.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import type { MemoryBlock, MemoryDecision, MemoryTable } from "../../model/memory.ts";
import { containersOf, podUid } from "../../model/pod.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import { bytes } from "../../model/units.ts";
import type { EffectiveArguments } from "../../profiles/effective.ts";
import { decideWith, type ManagerQuery } from "../managers/manager-query.ts";
import { podNames } from "../managers/node.ts";
import type { Block, Table } from "../memory/machine-memory.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { qosClass } from "../resources/qos.ts";

/** Decides which pods have memory and huge pages on which NUMA nodes, and what the asked pod would get or why not. */
export function decideMemory(asked: EffectiveArguments<PodAsk>): Result<DecidedOf<"memory">, Refusal> {
  const { memoryManagerPolicy: policy } = asked.snapshot.kubeletConfiguration;
  return decideWith<"memory">(asked, {
    decided: (answered, reasons) => ok({ policy, ...decided(answered, reasons) }),
    notStarted: (startErrors, warnings) => ({ policy, ...NOTHING, startErrors, warnings }),
  });
}

const NOTHING = {
  refusal: null,
  numaNodes: [],
  assigned: [],
  assignments: [],
  placements: [],
} as const;

function decided(
  answered: ManagerQuery,
  reasons: ReasonRecorder<ReasonCode<"memory">>,
): Omit<MemoryDecision, "policy"> {
  const { node, pod, after, placements, refusal } = answered;
  const { machineState, entries } = after.memory.state;
  const uid = pod === null ? "" : (podUid(pod) ?? "");
  const names = podNames(pod === null ? node.active : [...node.active, pod]);
  explainMemory(answered, reasons);
  return {
    startErrors: [],
    warnings: answered.warnings,
    refusal,
    numaNodes: [...machineState].map(([id, { numberOfAssignments, memoryMap, cells }]) => ({
      id,
      group: cells,
      assignments: numberOfAssignments,
      memory: Object.fromEntries([...memoryMap].map(([name, table]) => [name, tableOf(table)])),
    })),
    assigned:
      refusal === null && pod !== null
        ? containersOf(pod).map(({ name }) => ({ container: name, blocks: blocksOf(after.memory.blocks(uid, name)) }))
        : [],
    assignments: [...entries].flatMap(([of, containers]) =>
      [...containers].map(([container, blocks]) => ({ pod: names(of), container, blocks: blocksOf(blocks) })),
    ),
    placements,
  };
}

const tableOf = ({ total, systemReserved, allocatable, reserved, free }: Table): MemoryTable => ({
  total: bytes(total),
  systemReserved: bytes(systemReserved),
  allocatable: bytes(allocatable),
  reserved: bytes(reserved),
  free: bytes(free),
});
export const blocksOf = (blocks: readonly Block[]): readonly MemoryBlock[] =>
  blocks.map(({ numaAffinity, type, size }) => ({ numaNodes: numaAffinity, resource: type, size: bytes(size) }));

/** Explains the memory of each container of the asked pod, under its name. */
export function explainMemory(
  { node, pod, after, refusal }: ManagerQuery,
  reasons: ReasonRecorder<ReasonCode<"memory">>,
): void {
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
