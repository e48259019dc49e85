import type { PodRow } from "../../../actuator/status/node-status.ts";
import { ok } from "../../model/result.ts";
import type { Cli } from "../cli.ts";
import type { Outcome } from "../exit.ts";
import { printData } from "../output.ts";
import type { Sort, TopGiven } from "./given.ts";
import { headText } from "./head-text.ts";
import { byName } from "./pods-table.ts";
import { statusSource } from "./read-status.ts";
import { topText } from "./top-table.ts";
import { showOften } from "./watch.ts";

/** Prints what pods use; those that have ended, or never began, use nothing. */
export async function top(given: TopGiven, cli: Cli): Promise<Outcome> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  return showOften(source.value, given, cli, (seen, terminal) => {
    const { at, nodeName, pods } = seen.status;
    const shown = pods
      .filter(({ namespace }) => given.namespace === undefined || namespace === given.namespace)
      .filter(({ state, usage }) => usage !== null || state === "lives" || state === "ends")
      .sort(ORDERS[given.sort]);
    if (given.output === "table") terminal.write(headText(seen, terminal) + topText(shown, terminal));
    else printData(terminal, { at, nodeName, pods: shown.map(usageOf) }, given.output);
    return ok(null);
  });
}

const most =
  (of: (pod: PodRow) => number | null | undefined) =>
  (a: PodRow, b: PodRow): number =>
    (of(b) ?? -1) - (of(a) ?? -1) || byName(a, b);
const ORDERS: Readonly<Record<Sort, (a: PodRow, b: PodRow) => number>> = {
  cpu: most(({ usage }) => usage?.cpuMilli),
  memory: most(({ usage }) => usage?.memoryWorkingSetBytes),
  name: byName,
};

const usageOf = ({ namespace, name, uid, phase, qos, resources, usage }: PodRow) => ({
  namespace,
  name,
  uid,
  phase,
  qos,
  resources,
  usage,
});
