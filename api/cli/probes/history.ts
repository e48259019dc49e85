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
  const read = readProbeHistory(stateDir, { limit: pod === undefined ? limit : Number.POSITIVE_INFINITY });
  if (!read.ok) return fault(EXIT.failed, `${read.error}: is it another user's daemon?`);
  const isShown = (entry: (typeof read.value)[number]): boolean =>
    pod === undefined || ("pod" in entry ? entry.pod === pod : entry.kind === "probe-guard" && names(entry, pod));
  const entries = read.value.filter(isShown).slice(0, limit);
  if (output !== "table") printData(terminal, { stateDir, entries }, output);
  else if (entries.length === 0) terminal.write(terminal.paint("dim", `nothing of probes happened in ${stateDir}\n`));
  else terminal.write(historyTable(entries, terminal));
  return ok(EXIT.ok);
}

/** The guard's word on a container of this pod. */
const names = (
  {
    held,
    released,
  }: { readonly held: readonly string[]; readonly released: readonly { readonly container: string }[] },
  pod: string,
): boolean => [...held, ...released.map(({ container }) => container)].some((name) => name.startsWith(`${pod}/`));
