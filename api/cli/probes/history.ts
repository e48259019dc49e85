import { join } from "node:path";
import { readProbeHistory } from "../../../actuator/probes/history.ts";
import { ok } from "../../model/result.ts";
import type { Cli } from "../cli.ts";
import { stateHome } from "../directories.ts";
import { EXIT, fault, type Outcome } from "../exit.ts";
import { printData } from "../output.ts";
import type { ProbeHistoryGiven } from "./given.ts";
import { historyTable } from "./history-table.ts";

/** Prints what became of a node's probes, newest first. */
export async function probeHistory(given: ProbeHistoryGiven, { terminal, env }: Cli): Promise<Outcome> {
  const { pod, limit, output } = given;
  const stateDir = given.stateDir ?? join(stateHome(env), "actuator");
  const read = readProbeHistory(stateDir, { limit, pod });
  if (!read.ok) return fault(EXIT.failed, `${read.error}: is it another user's daemon?`);
  const entries = read.value;
  if (output !== "table") printData(terminal, { stateDir, entries }, output);
  else if (entries.length === 0) terminal.write(terminal.paint("dim", `nothing of probes happened in ${stateDir}\n`));
  else terminal.write(historyTable(entries, terminal));
  return ok(EXIT.ok);
}
