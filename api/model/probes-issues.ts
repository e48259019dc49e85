import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { type Container, isSidecar, type Pod } from "./pod.ts";
import { type PodProbe, PROBE_TYPES, type ProbeType } from "./probe-spec.ts";
import { PROBE_HANDLERS } from "./probes-decision.ts";

/** The field of v1.Container for each type of probe. */
export const PROBE_FIELD = {
  startup: "startupProbe",
  liveness: "livenessProbe",
  readiness: "readinessProbe",
} as const satisfies Readonly<Record<ProbeType, keyof Container>>;
export const handlersOf = (probe: PodProbe): readonly (typeof PROBE_HANDLERS)[number][] =>
  PROBE_HANDLERS.filter((name) => probe[name] !== undefined);

/** Why an API server takes none of these probes, in its words. kubernetes 1.36: validateProbe, validateHandler and callers. */
export function probesIssues(pod: Pod, at: string): readonly InputIssue[] {
  const { initContainers = [], containers } = pod.spec;
  const of = (list: "containers" | "initContainers", all: readonly Container[]): readonly InputIssue[] =>
    all.flatMap((container, i) =>
      PROBE_TYPES.flatMap((type) => {
        const probe = container[PROBE_FIELD[type]];
        if (probe === undefined) return [];
        const here = joinPath(at, ["spec", list, i, PROBE_FIELD[type]]);
        if (list === "initContainers" && !isSidecar(container)) {
          return [{ path: here, message: "may not be set for init containers without restartPolicy=Always" }];
        }
        return probeIssues(type, probe, here);
      }),
    );
  return [...of("initContainers", initContainers), ...of("containers", containers)].slice(0, LIMITS.issues);
}

const COUNTS = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
] as const;

function probeIssues(type: ProbeType, probe: PodProbe, at: string): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const note = (field: string, message: string): number => issues.push({ path: joinPath(at, [field]), message });
  const [first, ...others] = handlersOf(probe);
  if (first === undefined) issues.push({ path: at, message: "must specify a handler type" });
  for (const other of others) note(other, "may not specify more than 1 handler type");
  for (const count of COUNTS) if ((probe[count] ?? 0) < 0) note(count, "must be greater than or equal to 0");
  const { successThreshold, terminationGracePeriodSeconds: grace } = probe;
  // 0 is the default, which is 1
  if (type !== "readiness" && (successThreshold ?? 0) > 1) note("successThreshold", "must be 1");
  if (grace !== undefined && grace <= 0) note("terminationGracePeriodSeconds", "must be greater than 0");
  if (grace !== undefined && type === "readiness") {
    note("terminationGracePeriodSeconds", "must not be set for readinessProbes");
  }
  if (probe.exec !== undefined && probe.exec.print === undefined) {
    issues.push({ path: joinPath(at, ["exec", "command"]), message: "must name a command" });
  }
  const { scheme } = probe.httpGet ?? {};
  if (scheme !== undefined && scheme !== "HTTP" && scheme !== "HTTPS") {
    issues.push({ path: joinPath(at, ["httpGet", "scheme"]), message: "must be HTTP or HTTPS" });
  }
  for (const name of ["httpGet", "tcpSocket", "grpc"] as const) {
    const handler = probe[name];
    const fault = handler === undefined ? undefined : portFault(handler.port, name === "grpc");
    if (fault !== undefined) issues.push({ path: joinPath(at, [name, "port"]), message: fault });
  }
  return issues;
}

/** kubernetes 1.36: ValidatePortNumOrName, validateGRPCAction. */
function portFault(port: number | string | undefined, isNumberOnly: boolean): string | undefined {
  if (typeof port === "string" && !isNumberOnly) return isPortName(port) ? undefined : PORT_NAME;
  if (typeof port === "number" && port >= 1 && port <= 65_535) return undefined;
  return "must be between 1 and 65535, inclusive";
}
const PORT_NAME = "must be the name of a port: at most 15 of a-z, 0-9 and single -, a letter among them";
const isPortName = (name: string): boolean => /^(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name);
