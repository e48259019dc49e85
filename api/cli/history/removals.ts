import { ok } from "../../model/result.ts";
import { stateHome } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Outcome, printData } from "../terminal.ts";
import { type Times, timesOf, tokenOf } from "./history.ts";
import type { RemovalSource, RemovalsGiven } from "./removals-table.ts";
import { removalsTable, summaryText } from "./removals-table.ts";

export async function removals(given: RemovalsGiven, cli: Cli): Promise<Outcome> {
  const times = timesOf(given, Date.now());
  if (!times.ok) return times;
  const { api, dataDir = stateHome(cli.env) } = given;
  const print = (source: RemovalSource): Promise<Outcome> =>
    given.summary === true
      ? printSummary(source, given, times.value, cli)
      : printRemovals(source, given, times.value, cli);
  if (api === undefined) {
    const [{ withHistory }, { removalsOfStore }] = await Promise.all([
      import("./open-history.ts"),
      import("./removals-store.ts"),
    ]);
    return withHistory(dataDir, false, (store) => print(removalsOfStore(store)));
  }
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  const { removalsOfApi } = await import("./removals-api.ts");
  const source = removalsOfApi(api, token.value);
  return source.ok ? print(source.value) : source;
}

async function printRemovals(
  source: RemovalSource,
  { node, image, search = image, end, limit, output }: RemovalsGiven,
  times: Times,
  { terminal }: Cli,
): Promise<Outcome> {
  const found = await source.list(
    {
      node,
      ...(image === undefined ? {} : { target: "image" }),
      ...(search === undefined ? {} : { search }),
      ...(end === undefined ? {} : { end }),
      ...times,
    },
    limit,
  );
  if (!found.ok) return found;
  if (output !== "table") printData(terminal, found.value, output);
  else if (found.value.length === 0) terminal.warn("no such removals");
  else terminal.write(removalsTable(found.value, terminal));
  return ok(EXIT.ok);
}

async function printSummary(
  source: RemovalSource,
  { node, output }: RemovalsGiven,
  times: Times,
  { terminal }: Cli,
): Promise<Outcome> {
  const found = await source.summarize(node, times);
  if (!found.ok) return found;
  if (output === "table") terminal.write(summaryText(found.value, terminal));
  else printData(terminal, found.value, output);
  return ok(EXIT.ok);
}
