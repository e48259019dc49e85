import type { ProbeHandler, ProbeHttpGet, ProbePort, ProbeSpec } from "../../../api/model/probe-spec.ts";
import { PROBE_HANDLERS } from "../../../api/model/probes-decision.ts";
import type { FieldValue } from "./field-value.ts";
import { headerName, portName } from "./names.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

/** The probes of a container; null: it has none. */
interface Probes {
  readonly startup: ProbeSpec | null;
  readonly liveness: ProbeSpec | null;
  readonly readiness: ProbeSpec | null;
}
const FIELDS = ["startupProbe", "livenessProbe", "readinessProbe"] as const;
const LARGEST = 2_147_483_647;

/** `mayHave`: false for init containers that are no sidecars. kubernetes 1.36: validateContainers, validateInitContainers. */
export function probesOf(at: FieldValue, mayHave: boolean): Probes {
  if (!mayHave) {
    for (const name of FIELDS)
      if (!at.field(name).isAbsent)
        at.field(name).fault("Forbidden: may not be set for init containers without restartPolicy=Always");
    return { startup: null, liveness: null, readiness: null };
  }
  const [startup, liveness, readiness] = FIELDS.map((name) => at.field(name)) as [FieldValue, FieldValue, FieldValue];
  return { startup: killingProbe(startup), liveness: killingProbe(liveness), readiness: readinessProbe(readiness) };
}

/** kubernetes 1.36: validateLivenessProbe, validateStartupProbe. */
const killingProbe = (at: FieldValue): ProbeSpec | null =>
  probeOf(at, ({ successThreshold }) => {
    if (successThreshold !== 1) at.field("successThreshold").invalid("must be 1");
  });
/** kubernetes 1.36: validateReadinessProbe. */
const readinessProbe = (at: FieldValue): ProbeSpec | null =>
  probeOf(at, () => {
    const grace = at.field("terminationGracePeriodSeconds");
    if (!grace.isAbsent) grace.invalid("must not be set for readinessProbes");
  });

/** kubernetes 1.36: validateProbe, SetDefaults_Probe: a 0 is as good as none. */
function probeOf(at: FieldValue, check: (spec: Omit<ProbeSpec, "handler">) => void): ProbeSpec | null {
  if (at.isAbsent || !checkFields(at, RULES.Probe)) return null;
  const handler = handlerOf(at);
  const number = (name: string, usual: number): number => {
    const given = at.field(name).whole() ?? 0;
    if (given < 0) at.field(name).invalid("must be greater than or equal to 0");
    else if (given > LARGEST) at.field(name).fault(`must be at most ${LARGEST}`);
    return given === 0 ? usual : given;
  };
  const spec = {
    initialDelaySeconds: number("initialDelaySeconds", 0),
    timeoutSeconds: number("timeoutSeconds", 1),
    periodSeconds: number("periodSeconds", 10),
    successThreshold: number("successThreshold", 1),
    failureThreshold: number("failureThreshold", 3),
    terminationGracePeriodSeconds: graceOf(at.field("terminationGracePeriodSeconds")),
  };
  check(spec);
  return handler === null ? null : { handler, ...spec };
}
function graceOf(at: FieldValue): number | null {
  const seconds = at.isAbsent ? null : at.whole();
  if (seconds !== null && seconds <= 0) at.invalid("must be greater than 0");
  return seconds;
}

/** kubernetes 1.36: validateHandler. */
function handlerOf(at: FieldValue): ProbeHandler | null {
  const [kind, ...others] = PROBE_HANDLERS.filter((name) => !at.field(name).isAbsent);
  if (kind === undefined) {
    at.required("must specify a handler type");
    return null;
  }
  for (const other of others) at.field(other).fault("Forbidden: may not specify more than 1 handler type");
  switch (kind) {
    case "exec":
      return execOf(at.field(kind));
    case "httpGet":
      return { http: httpGetOf(at.field(kind)) };
    case "tcpSocket": {
      const tcp = at.field(kind);
      checkFields(tcp, RULES.TCPSocketAction);
      return { tcp: { host: tcp.field("host").text(), port: portOf(tcp.field("port")) } };
    }
    case "grpc": {
      const grpc = at.field(kind);
      checkFields(grpc, RULES.GRPCAction);
      const port = grpc.field("port");
      if (port.isAbsent) port.required();
      return { grpc: { port: port.between(1, 65_535) ?? 0, service: grpc.field("service").text() } };
    }
  }
}

/** The command of hooks and probes. kubernetes 1.36: validateExecAction. */
export function execOf(at: FieldValue): { readonly exec: readonly string[] } {
  checkFields(at, RULES.ExecAction);
  const command = at.field("command");
  if (command.isEmpty) command.required();
  return { exec: command.texts() };
}

/** The address of hooks and probes. kubernetes 1.36: validateHTTPGetAction. */
export function httpGetOf(at: FieldValue): ProbeHttpGet {
  checkFields(at, RULES.HTTPGetAction);
  const headers = at.field("httpHeaders").items();
  for (const header of headers) {
    checkFields(header, RULES.HTTPHeader);
    header.field("name").invalids(headerName(header.field("name").text()));
  }
  return {
    scheme: at.field("scheme").choice(["HTTP", "HTTPS"], "HTTP"),
    host: at.field("host").text(),
    port: portOf(at.field("port")),
    path: at.field("path").isEmpty ? "/" : at.field("path").text(),
    headers: headers.map((h) => ({ name: h.field("name").text(), value: h.field("value").text() })),
  };
}

/** A number, or a name that one of the container's ports may have. kubernetes 1.36: ValidatePortNumOrName. */
function portOf(at: FieldValue): ProbePort {
  if (at.isAbsent) at.required();
  else if (typeof at.value === "number") return at.between(1, 65_535) ?? 0;
  else {
    at.invalids(portName(at.text()));
    return at.text();
  }
  return 0;
}
