import { ok } from "../../base/result.ts";
import { humanBytes } from "../../text/size.ts";
import { clip } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { cpuPicture } from "../../text/tables/cpus.ts";
import { type LibraryMachine, libraryMachine, machineNames, suggestMachine } from "../inputs/machine-library.ts";
import { EXIT, type Form, fault, type Outcome, printData, printText, type Terminal } from "../terminal.ts";

/** Prints the library as a list; for one machine its picture, or as data what `--machine` accepts. */
export function showMachines(name: string | undefined, output: Form, terminal: Terminal): Outcome {
  if (name === undefined) {
    const machines = machineNames().flatMap((known) => libraryMachine(known) ?? []);
    if (output === "table") printText(terminal, listTable(machines, terminal));
    else printData(terminal, machines.map(factsOf), output);
    return ok(EXIT.ok);
  }
  const found = libraryMachine(name);
  if (found === undefined)
    return fault(EXIT.badInput, `no machine of the library is named \`${name}\`: ${suggestMachine(name)}`);
  if (output === "table") printText(terminal, oneMachine(found, terminal));
  else printData(terminal, found.machine, output);
  return ok(EXIT.ok);
}

function factsOf({ name, description, machine }: LibraryMachine) {
  const { cpus = [], numaNodes = [], memoryBytes = 0 } = machine;
  const count = (of: (cpu: (typeof cpus)[number]) => unknown): number =>
    new Set(cpus.map(of).filter((id) => id !== undefined)).size;
  return {
    name,
    cpus: cpus.length,
    cores: count(({ core }) => core),
    sockets: count(({ socket }) => socket),
    numaNodes: numaNodes.length,
    uncoreCaches: count(({ uncoreCache }) => uncoreCache),
    memoryBytes,
    description,
  };
}

/** The width of the other columns. */
const NUMBERS = 72;
const MIN_DESCRIPTION_WIDTH = 24;

function listTable(machines: readonly LibraryMachine[], { columns, paint }: Terminal): string {
  const right = (title: string, giveUp?: number) =>
    ({ title, align: "right", ...(giveUp === undefined ? {} : { giveUp }) }) as const;
  return table(
    [
      { title: "MACHINE" },
      right("CPUS"),
      right("CORES", 3),
      right("SOCKETS", 4),
      right("NUMA NODES"),
      right("CACHES", 2),
      right("MEMORY", 5),
      { title: "", giveUp: 1 },
    ],
    machines.map(factsOf).map((m) => ({
      cells: [
        m.name,
        `${m.cpus}`,
        `${m.cores}`,
        `${m.sockets}`,
        `${m.numaNodes}`,
        m.uncoreCaches === 0 ? "" : `${m.uncoreCaches}`,
        humanBytes(m.memoryBytes),
        clip(m.description, Math.max(MIN_DESCRIPTION_WIDTH, columns - NUMBERS)),
      ],
    })),
    columns,
    paint,
  );
}

const CPU = "■";

function oneMachine(found: LibraryMachine, { columns, paint }: Terminal): string {
  const { name, description, facts, machine } = found;
  const { cpus = [], numaNodes = [], distances = [] } = machine;
  const nodes = table(
    [
      { title: "NUMA", align: "right" },
      { title: "CPUS", align: "right" },
      { title: "MEMORY", align: "right" },
      { title: "DISTANCES", giveUp: 1 },
    ],
    numaNodes.map(({ id, memoryBytes = 0 }, i) => ({
      cells: [
        `${id}`,
        `${cpus.filter(({ numa }) => numa === id).length}`,
        humanBytes(memoryBytes),
        (distances[i] ?? []).join(" "),
      ],
    })),
    columns,
    paint,
  );
  const picture = cpuPicture(cpus, () => CPU, { columns, paint });
  return [`${paint("bold", name)}: ${description}\n${paint("dim", facts)}\n`, picture, nodes].join("\n");
}
