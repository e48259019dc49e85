import type { PodAsk } from "../../model/ask.ts";
import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import type { MemoryBlock, MemoryDecision, MemoryTable } from "../../model/managers.ts";
import { containersOf, podUid } from "../../model/pod.ts";
import { ok, type Result } from "../../model/result.ts";
import { bytes } from "../../model/units.ts";
import { configurationOf } from "../config.ts";
import { type Answered, decideWith } from "../managers/desk.ts";
import { podNames } from "../managers/pods.ts";
import type { Reasons } from "../reasons.ts";
import { explainMemory } from "./explain.ts";
import type { Block, Table } from "./state.ts";

/** Who has memory and huge pages of which NUMA nodes, and what the asked pod would get or why not. */
export function decideMemory(asked: Asked<PodAsk>): Result<Decided<MemoryDecision>, Refusal> {
  const policy = configurationOf(asked.snapshot).memoryManagerPolicy === "Static" ? "Static" : "None";
  return decideWith<MemoryDecision>(asked, {
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

function decided(answered: Answered, reasons: Reasons): Omit<MemoryDecision, "policy"> {
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
