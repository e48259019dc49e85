import { join } from "node:path";
import { readDeviceHistory } from "../../../actuator/pods/devices/history.ts";
import { ok } from "../../model/result.ts";
import type { Cli } from "../cli.ts";
import { stateHome } from "../directories.ts";
import { EXIT, fault, type Outcome } from "../exit.ts";
import { printData } from "../output.ts";
import type { DeviceHistoryGiven } from "./given.ts";
import { historyTable } from "./history-table.ts";

/** Prints what happened to a node's devices, newest first. */
export async function deviceHistory(given: DeviceHistoryGiven, { terminal, env }: Cli): Promise<Outcome> {
  const { resource, limit, output } = given;
  const stateDir = given.stateDir ?? join(stateHome(env), "actuator");
  const read = readDeviceHistory(stateDir, { limit: resource === undefined ? limit : Number.POSITIVE_INFINITY });
  if (!read.ok) return fault(EXIT.failed, `${read.error}: is it another user's daemon?`);
  const entries = read.value.filter((entry) => resource === undefined || entry.resource === resource).slice(0, limit);
  if (output !== "table") printData(terminal, { stateDir, entries }, output);
  else if (entries.length === 0) terminal.write(terminal.paint("dim", `nothing of devices happened in ${stateDir}\n`));
  else terminal.write(historyTable(entries, terminal));
  return ok(EXIT.ok);
}
