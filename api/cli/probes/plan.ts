import { hostname } from "node:os";
import { readManifests } from "../../../actuator/manifests/read-manifests.ts";
import { ok, type Result } from "../../base/result.ts";
import {
  HANDLERS,
  type HandlerKind,
  type PlannedProbe,
  type ProbePlan,
  probePlan,
  WINDOW_MS,
} from "../../decide/probes/plan.ts";
import { settingsOf } from "../../decide/probes/settings.ts";
import { problemText } from "../../documents/problem.ts";
import { decodePodAsk } from "../../model/pod-ask.ts";
import type { ProbeHandlerName } from "../../model/probes-decision.ts";
import { probesIssues } from "../../model/probes-issues.ts";
import { many } from "../../text/sentences/words.ts";
import { table } from "../../text/table.ts";
import type { Cli } from "../cli.ts";
import { statusSource } from "../inputs/daemon-status.ts";
import { EXIT, type Fault, fault, type Outcome, printData, printText, type Terminal } from "../terminal.ts";
import type { ProbePlanFlags } from "./probes.ts";
import { NOTHING_PROBED } from "./probes.ts";

const KIND: Readonly<Record<ProbeHandlerName, HandlerKind>> = {
  exec: "exec",
  httpGet: "http",
  tcpSocket: "tcp",
  grpc: "grpc",
};

/** The probes of a manifest file, or of all in a directory. Errors: what cannot be run, with its position. */
async function plannedOf(path: string, execMs: number): Promise<Result<readonly PlannedProbe[], Fault>> {
  const { found, problems } = await readManifests(path, hostname().toLowerCase());
  const lines = problems.map(problemText);
  const planned: PlannedProbe[] = [];
  for (const { pod, source } of found) {
    const asked = decodePodAsk({ pod }, "");
    if (!asked.ok) {
      lines.push(...asked.error.map(({ path: at, message }) => `${source.file}: ${at}: ${message}`));
      continue;
    }
    const decoded = asked.value.pod;
    if (decoded === null || typeof decoded === "string") continue;
    lines.push(...probesIssues(decoded, "pod").map(({ path: at, message }) => `${source.file}: ${at}: ${message}`));
    for (const { probes } of settingsOf(decoded))
      for (const { handler, timing } of probes) planned.push(plannedProbe(handler, timing, execMs));
  }
  return lines.length > 0 ? fault(EXIT.badInput, ...lines) : ok(planned);
}

const plannedProbe = (
  handler: ProbeHandlerName,
  { periodSeconds, timeoutSeconds }: Pick<PlannedProbe, "periodSeconds" | "timeoutSeconds">,
  execMs: number,
): PlannedProbe => ({ handler: KIND[handler], periodSeconds, timeoutSeconds, seconds: execMs / 1000 });

/** The assumed duration of an exec, ms. */
const EXEC_MS = 100;

/** Prints the load that the probes of manifests, or of the running daemon, put on a node. */
export async function probesPlan(path: string | undefined, given: ProbePlanFlags, cli: Cli): Promise<Outcome> {
  const planned = path === undefined ? await ofDaemon(given, cli) : await plannedOf(path, given.execMs ?? EXEC_MS);
  if (!planned.ok) return planned;
  const plan = probePlan(planned.value);
  if (given.output !== "table") printData(cli.terminal, plan, given.output);
  else printText(cli.terminal, planText(plan, cli.terminal));
  return ok(EXIT.ok);
}

/** The daemon's probes. An exec takes as long as it took, unless `--exec-ms` is given. */
async function ofDaemon(given: ProbePlanFlags, cli: Cli): Promise<Result<readonly PlannedProbe[], Fault>> {
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

/** Rates by handler, and the highest concurrency. */
function planText(plan: ProbePlan, { columns, paint }: Terminal): string {
  const { probes, perSecond, maxAtOnce, execsAtOnce } = plan;
  if (probes === 0) return paint("dim", "nothing is probed\n");
  const rows = HANDLERS.filter((handler) => perSecond[handler] > 0).map((handler) => ({
    cells: [handler, numberText(perSecond[handler])],
  }));
  const sum = HANDLERS.reduce((all, handler) => all + perSecond[handler], 0);
  const drawn = table(
    [{ title: "HANDLER" }, { title: "ATTEMPTS/S", align: "right" }],
    [...rows, { cells: ["all", numberText(sum)] }],
    columns,
    paint,
  );
  const crowd = `at worst ${maxAtOnce.spread} begin within ${WINDOW_MS} ms when they are spread, ${maxAtOnce.unspread} when they are not spread`;
  const execs = `execs at the same time: ${numberText(execsAtOnce.expected)} on the average, ${numberText(execsAtOnce.hanging)} if each lasts until its timeout`;
  const lines = [many(probes, "probe"), crowd, ...(perSecond.exec > 0 ? [execs] : [])];
  return `${drawn}\n${lines.map((line) => `${line}\n`).join("")}`;
}

const numberText = (number: number): string => `${Math.round(number * 100) / 100}`;
