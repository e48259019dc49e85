import { countCpus } from "../../model/cpu-set.ts";
import { knowsMemory } from "../../model/machine.ts";
import type { PodSize, TopologyDecision } from "../../model/topology.ts";
import { humanBytes } from "../size.ts";
import { printable } from "../style.ts";
import { table } from "../table.ts";
import { blockText } from "./memory.ts";
import { caption, listText, placementsTable, type Shown, sections, verdictText } from "./shown.ts";

/**
 * Shows whether the asked pod is admitted and where, how the rest is placed, and the largest pod that would still be admitted.
 */
export function topologyTable(shown: Shown<TopologyDecision>): string {
  const { decision } = shown;
  const verdict = verdictText(shown);
  if (decision.startErrors.length > 0) return verdict;
  return sections(
    `${verdict}${caption(shown, captionOf(decision))}`,
    assignedTable(shown),
    placementsTable(shown, decision.refusal !== null),
    capacityTable(shown),
  );
}

function captionOf({ policy, scope, options }: TopologyDecision): string {
  const given = Object.entries(options).map(([name, value]) => printable(`${name}=${value}`));
  return [`topologyManagerPolicy ${policy}`, `scope ${scope}`, ...given].join(", ");
}

/** Shows what each container of the asked pod would be given. */
export function assignedTable({
  decision,
  columns,
  paint,
  notesAt,
}: Shown<Pick<TopologyDecision, "assigned">>): string {
  if (decision.assigned.length === 0) return "";
  return table(
    [
      { title: "CONTAINER", shrinkTo: 10 },
      { title: "CPUS", shrinkTo: 10 },
      { title: "COUNT", align: "right" },
      { title: "", giveUp: 1 },
      { title: "MEMORY FROM", shrinkTo: 8 },
      { title: "DEVICES", shrinkTo: 8 },
    ],
    decision.assigned.map(({ container, cpus, exclusive, memory, devices }) => ({
      cells: [
        printable(container),
        cpus,
        `${countCpus(cpus) ?? ""}`,
        exclusive ? { text: "its own", color: "green" } : { text: "shared pool", color: "dim" },
        memory
          .map((block) => `${block.resource === "memory" ? "" : `${printable(block.resource)} `}${blockText(block)}`)
          .join(", "),
        Object.entries(devices)
          .map(([resource, ids]) => `${printable(resource)}: ${listText(ids, " ")}`)
          .join(", "),
      ],
      notes: notesAt(container).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}

function capacityTable({ decision, columns, paint, notesAt, machine }: Shown<TopologyDecision>): string {
  const { numaNodes, node } = decision;
  const isMemoryKnown = machine === undefined || numaNodes.length === 0 || knowsMemory(machine);
  const share = (part: number): string => `${Math.round(part * 100)} %`;
  const rowOf = (name: string, room: (typeof numaNodes)[number] | typeof node) => [
    name,
    `${room.freeCpus}`,
    `${room.freeCores}`,
    share(room.splitShare),
    `${room.largestBlock}`,
    isMemoryKnown ? humanBytes(room.freeMemory) : "not known",
    isMemoryKnown ? podSizeText(room.largestPod) : "not known",
  ];
  const drawn = table(
    [
      { title: "NUMA", align: "right" },
      { title: "FREE CPUS", align: "right" },
      { title: "WHOLE CORES", align: "right", giveUp: 3 },
      { title: "SPLIT", align: "right", giveUp: 1 },
      { title: "LARGEST BLOCK", align: "right", giveUp: 2 },
      { title: "FREE MEMORY", align: "right" },
      { title: "LARGEST GUARANTEED POD" },
    ],
    [
      ...numaNodes.map((room) => ({
        cells: rowOf(`${room.numaNode}`, room),
        notes: notesAt(`NUMA node ${room.numaNode}`).map((note) => `  ${note}`),
      })),
      ...(numaNodes.length === 1 ? [] : [{ cells: rowOf("all", node) }]),
    ],
    columns,
    paint,
  );
  const scattered =
    node.scattered > 0 ? paint("dim", `${share(node.scattered)} of the free CPUs lie outside the largest block\n`) : "";
  return `${drawn}${scattered}${isMemoryKnown ? "" : paint("yellow", `${NO_MEMORY}\n`)}`;
}

const NO_MEMORY =
  "not known: memoryBytes of each of machine.numaNodes, which lscpu does not report (give the machine that `nodewise snapshot` prints there, or cAdvisor's MachineInfo)";

const podSizeText = (size: PodSize | null): string =>
  size === null ? "none" : `${size.cpus} CPUs, ${humanBytes(size.memory)}`;
