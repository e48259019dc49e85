import type { ProbeRow } from "../../../actuator/status/probe-row.ts";
import { ok } from "../../model/result.ts";
import type { Cli } from "../cli.ts";
import type { Outcome } from "../exit.ts";
import { printData } from "../output.ts";
import { headText } from "../pods/head-text.ts";
import { statusSource } from "../pods/read-status.ts";
import { showOften } from "../pods/watch.ts";
import type { ProbesGiven } from "./given.ts";
import { isWell, probesText } from "./probes-table.ts";

export const NOTHING_PROBED =
  "This daemon probes nothing: with `pods: enforce` in its settings it does, for the pods that it runs.\n";

/** Prints the node's probes as its daemon sees them. */
export async function probes(given: ProbesGiven, cli: Cli): Promise<Outcome> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  const isShown = (row: ProbeRow): boolean =>
    (given.namespace === undefined || row.namespace === given.namespace) && (given.failing !== true || !isWell(row));
  return showOften(source.value, given, cli, (seen, terminal) => {
    const { at, nodeName } = seen.status;
    const rows = seen.status.probes?.filter(isShown);
    if (given.output !== "table") printData(terminal, { at, nodeName, probes: rows ?? null }, given.output);
    else {
      const text = rows === undefined ? terminal.paint("dim", NOTHING_PROBED) : probesText(rows, at, terminal);
      terminal.write(headText(seen, terminal) + text);
    }
    return ok(null);
  });
}
