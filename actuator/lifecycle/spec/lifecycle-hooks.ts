import type { ContainerPort, LifecycleHandler } from "../pod.ts";
import type { At } from "./at.ts";
import { headerName, portName } from "./names.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

export interface Hooks {
  readonly postStart: LifecycleHandler | null;
  readonly preStop: LifecycleHandler | null;
}
type Http = Extract<LifecycleHandler, { http: unknown }>["http"];

/** `grace`: the pod's termination grace period; null: it is wrong itself. kubernetes 1.36: validateLifecycle. */
export function hooksOf(at: At, ports: readonly ContainerPort[], grace: number | null): Hooks {
  if (at.isAbsent || !checkFields(at, RULES.Lifecycle)) return { postStart: null, preStop: null };
  return {
    postStart: handlerOf(at.field("postStart"), ports, grace),
    preStop: handlerOf(at.field("preStop"), ports, grace),
  };
}

function handlerOf(at: At, ports: readonly ContainerPort[], grace: number | null): LifecycleHandler | null {
  if (at.isAbsent || !checkFields(at, RULES.LifecycleHandler)) return null;
  const kinds = at.keys.filter((key) => !at.field(key).isAbsent);
  if (kinds.length === 0) at.required("must specify a handler type");
  for (const kind of kinds.slice(1)) at.field(kind).fault("Forbidden: may not specify more than 1 handler type");
  const exec = at.field("exec");
  if (!exec.isAbsent) {
    checkFields(exec, RULES.ExecAction);
    const command = exec.field("command");
    if (command.isEmpty) command.required();
    return { exec: command.texts() };
  }
  const http = at.field("httpGet");
  if (!http.isAbsent) return { http: httpOf(http, ports) };
  const sleep = at.field("sleep");
  return sleep.isAbsent ? null : { sleepSeconds: sleepOf(sleep, grace) };
}

function sleepOf(at: At, grace: number | null): number {
  checkFields(at, RULES.SleepAction);
  const seconds = at.field("seconds").whole() ?? 0;
  if (grace !== null && (seconds < 0 || seconds > grace)) {
    at.field("seconds").invalid(`must be non-negative and less than terminationGracePeriodSeconds (${grace})`);
  }
  return seconds;
}

function httpOf(at: At, ports: readonly ContainerPort[]): Http {
  checkFields(at, RULES.HTTPGetAction);
  const headers = at.field("httpHeaders").items();
  for (const header of headers) {
    checkFields(header, RULES.HTTPHeader);
    header.field("name").invalids(headerName(header.field("name").text()));
  }
  const scheme = at.field("scheme").choice(["HTTP", "HTTPS"], "HTTP");
  return {
    scheme: scheme === "HTTPS" ? "https" : "http",
    host: at.field("host").text(),
    port: portOf(at.field("port"), ports),
    path: at.field("path").isEmpty ? "/" : at.field("path").text(),
    headers: headers.map((h) => ({ name: h.field("name").text(), value: h.field("value").text() })),
  };
}

/** A number, or the name of one of the container's ports. */
function portOf(at: At, ports: readonly ContainerPort[]): number {
  if (at.isAbsent) at.required();
  else if (typeof at.value === "number") return at.between(1, 65_535) ?? 0;
  else {
    const name = at.text();
    const says = portName(name);
    at.invalids(says);
    const port = ports.find((p) => p.name === name);
    if (port !== undefined) return port.containerPort;
    if (says.length === 0) at.invalid("no port of this container has that name");
  }
  return 0;
}
