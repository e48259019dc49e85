import type { NodeStatus } from "../../../actuator/status/node-status.ts";
import { printable } from "../../text/style.ts";
import type { Terminal } from "../terminal.ts";

/** Manifests that are not run: each with the fields that keep them from it, and what to do. */
export function refusedText(refused: NodeStatus["refusedManifests"], { paint }: Terminal): string {
  if (refused.length === 0) return "";
  const lines = refused.flatMap(({ pod, file, faults }) => [
    `${paint("red", "refused")} ${printable(pod)}`,
    ...faults.map(({ path, message, line, column }) => {
      const where = file === undefined ? "" : `${file}:${line}:${column}: `;
      return `  ${printable(where)}${printable(path)}: ${printable(message)}`;
    }),
  ]);
  return `${lines.join("\n")}\n`;
}
