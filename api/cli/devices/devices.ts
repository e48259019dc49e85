import { ok } from "../../model/result.ts";
import type { Cli } from "../cli.ts";
import type { Outcome } from "../exit.ts";
import { printData } from "../output.ts";
import { headText } from "../pods/head-text.ts";
import { statusSource } from "../pods/read-status.ts";
import { showOften } from "../pods/watch.ts";
import { devicesText } from "./devices-table.ts";
import type { DevicesGiven } from "./given.ts";

const NONE_TAKEN =
  "This daemon takes no device plugins: with `devicePlugins: serve` in its settings it does, for the pods that it runs.\n";

/** Prints the node's devices, and who has them. */
export async function devices(given: DevicesGiven, cli: Cli): Promise<Outcome> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  return showOften(source.value, given, cli, (seen, terminal) => {
    const { at, nodeName, devices: rows } = seen.status;
    if (given.output !== "table") printData(terminal, { at, nodeName, devices: rows ?? null }, given.output);
    else {
      const text = rows === undefined ? terminal.paint("dim", NONE_TAKEN) : devicesText(rows, terminal);
      terminal.write(headText(seen, terminal) + text);
    }
    return ok(null);
  });
}
