import { hostname } from "node:os";
import { problemText } from "../../../actuator/manifests/problem.ts";
import { readManifests } from "../../../actuator/manifests/read-manifests.ts";
import type { HandlerKind, PlannedProbe } from "../../decide/probes/plan.ts";
import { settingsOf } from "../../decide/probes/settings.ts";
import { decodePodAsk } from "../../model/ask.ts";
import type { ProbeHandlerName } from "../../model/probes-decision.ts";
import { probesIssues } from "../../model/probes-issues.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";

const KIND: Readonly<Record<ProbeHandlerName, HandlerKind>> = {
  exec: "exec",
  httpGet: "http",
  tcpSocket: "tcp",
  grpc: "grpc",
};

/** The probes of a manifest file, or of all in a directory. Errors: whatever of it cannot be run, with its place. */
export async function plannedOf(path: string, execMs: number): Promise<Result<readonly PlannedProbe[], Fault>> {
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
