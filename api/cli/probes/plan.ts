import { type PlannedProbe, probePlan } from "../../decide/probes/plan.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault, type Outcome } from "../exit.ts";
import { printData } from "../output.ts";
import { statusSource } from "../pods/read-status.ts";
import type { ProbePlanGiven } from "./given.ts";
import { planText } from "./plan-text.ts";
import { plannedOf } from "./planned.ts";
import { NOTHING_PROBED } from "./probes.ts";

/** Of an exec of which nobody knows better. */
const EXEC_MS = 100;

/** Prints what the probes of manifests, or of the running daemon, do to a node. */
export async function probesPlan(path: string | undefined, given: ProbePlanGiven, cli: Cli): Promise<Outcome> {
  const planned = path === undefined ? await ofDaemon(given, cli) : await plannedOf(path, given.execMs ?? EXEC_MS);
  if (!planned.ok) return planned;
  const plan = probePlan(planned.value);
  if (given.output !== "table") printData(cli.terminal, plan, given.output);
  else cli.terminal.write(planText(plan, cli.terminal));
  return ok(EXIT.ok);
}

/** An exec takes there what it took, except where one is to ask what would be. */
async function ofDaemon(given: ProbePlanGiven, cli: Cli): Promise<Result<readonly PlannedProbe[], Fault>> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  const seen = await source.value();
  if (!seen.ok) return seen;
  const { probes } = seen.value.status;
  if (probes === undefined) return fault(EXIT.failed, NOTHING_PROBED.trimEnd());
  return ok(
    probes.map(({ handler, periodSeconds, timeoutSeconds, tookMs }) => ({
      ...{ handler, periodSeconds, timeoutSeconds },
      seconds: (given.execMs ?? tookMs ?? EXEC_MS) / 1000,
    })),
  );
}
