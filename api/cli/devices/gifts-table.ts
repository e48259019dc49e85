import { printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import type { Terminal } from "../terminal.ts";
import type { ContainerGift } from "./gifts.ts";

/** Each container's devices, and below them what comes with them, as the runtime is to be given it. */
export function giftsTable(gifts: readonly ContainerGift[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "CONTAINER", shrinkTo: 10 },
    { title: "GETS" },
    { title: "", shrinkTo: 14 },
    { title: "", shrinkTo: 14 },
    { title: "" },
  ] as const;
  const rows = gifts.flatMap((gift) =>
    linesOf(gift).map((line, i) => ({
      cells: [i === 0 ? printable(gift.container) : "", ...line.map(printable)],
      notes: [],
    })),
  );
  const conflicts = gifts.flatMap(({ container, conflicts: found }) =>
    found.map(({ kind, name, kept, dropped }) =>
      paint(
        "yellow",
        `${printable(`container ${container}: ${kind} ${name} of ${kept.resource} stays, that of ${dropped.resource} (${dropped.value}) is dropped`)}\n`,
      ),
    ),
  );
  return table(columns, rows, width, paint) + conflicts.join("");
}

type Line = readonly [what: string, name: string, value: string, more: string];
const linesOf = ({ resources, devices, mounts, envs, annotations, cdiDevices }: ContainerGift): readonly Line[] => [
  ...resources.map(({ resource, ids, numa }): Line => {
    return ["devices", resource, ids.join(" "), numa.length === 0 ? "" : `NUMA ${numa.join("+")}`];
  }),
  ...devices.map(({ pathInContainer, pathOnHost, permissions }): Line => {
    return ["device node", pathInContainer, `from ${pathOnHost}`, permissions];
  }),
  ...mounts.map(({ containerPath, hostPath, readOnly }): Line => {
    return ["mount", containerPath, `from ${hostPath}`, readOnly ? "read-only" : ""];
  }),
  ...envs.map(({ name, value }): Line => ["env", name, value, ""]),
  ...annotations.map(({ name, value }): Line => ["annotation", name, value, ""]),
  ...cdiDevices.map((name): Line => ["CDI device", name, "", ""]),
];
