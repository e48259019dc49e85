import type { ProbePort } from "../../../api/model/probe.ts";
import type { ContainerPort, LifecycleHandler } from "../pod.ts";
import type { At } from "./at.ts";
import { execOf, httpGetOf } from "./handlers.ts";
import { portName } from "./names.ts";
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
  if (!exec.isAbsent) return execOf(exec);
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
  const get = httpGetOf(at);
  const scheme = get.scheme === "HTTPS" ? "https" : "http";
  return { ...get, scheme, port: portNumber(at.field("port"), get.port, ports) };
}

/** A hook is run at once, so a name must be one of the container's ports. */
function portNumber(at: At, port: ProbePort, ports: readonly ContainerPort[]): number {
  if (typeof port === "number") return port;
  const named = ports.find(({ name }) => name === port);
  if (named !== undefined) return named.containerPort;
  if (portName(port).length === 0) at.invalid("no port of this container has that name");
  return 0;
}
