import { isLoopback } from "../../model/fields.ts";
import { type Container, isSidecar, type Pod } from "../../model/pod.ts";
import { type PodProbe, PROBE_TYPES, type ProbeType } from "../../model/probe-spec.ts";
import type { ProbeHandlerName, ProbeReach, ProbeTiming } from "../../model/probes-decision.ts";
import { handlersOf, PROBE_FIELD } from "../../model/probes-issues.ts";

/** kubelet 1.36: minimumGracePeriodInSeconds. */
export const MIN_GRACE_SECONDS = 2;

/** How early and how late a probe can notice a change; `graceSeconds` is the pod's. */
export function reachOf(type: ProbeType, timing: ProbeTiming, graceSeconds: number): ProbeReach {
  const { initialDelaySeconds, periodSeconds, timeoutSeconds, failureThreshold, successThreshold } = timing;
  // an attempt that lasts longer than a period is followed by the next at once
  const beat = Math.max(periodSeconds, timeoutSeconds);
  const slowestFailure = periodSeconds + (failureThreshold - 1) * beat + timeoutSeconds;
  const grace = Math.max(MIN_GRACE_SECONDS, timing.terminationGracePeriodSeconds ?? graceSeconds);
  return {
    soonestFailureMs: (initialDelaySeconds + (failureThreshold - 1) * periodSeconds) * 1000,
    slowestFailureMs: slowestFailure * 1000,
    slowestSuccessMs: (periodSeconds + (successThreshold - 1) * beat + timeoutSeconds) * 1000,
    slowestEndMs: type === "readiness" ? null : (slowestFailure + grace) * 1000,
  };
}

/** One probe of a pod with its defaults. */
export interface ProbeSetting {
  readonly type: ProbeType;
  /** The path in the pod: `spec.containers[0].livenessProbe`. */
  readonly path: string;
  readonly handler: ProbeHandlerName;
  readonly timing: ProbeTiming;
  /** The host that is probed; empty: the pod itself, including the node's loopback for a pod on the host's network. */
  readonly host: string;
  /** A port name that the container does not have; null: none. */
  readonly unknownPort: string | null;
  /** Two probes of a container with the same one ask the same. */
  readonly target: string;
}
export interface ContainerSetting {
  readonly name: string;
  readonly sidecar: boolean;
  readonly restartPolicy: "Always" | "OnFailure" | "Never";
  readonly probes: readonly ProbeSetting[];
}

/** Containers with probe workers in the order in which they start: sidecars first. kubelet 1.36: manager.AddPod. */
export function settingsOf({ spec }: Pod): readonly ContainerSetting[] {
  const isOnHost = spec.hostNetwork === true;
  const of = (list: string, all: readonly Container[]): readonly ContainerSetting[] =>
    all.flatMap((c, i) => {
      const sidecar = list === "initContainers";
      if (sidecar && !isSidecar(c)) return [];
      const probes = PROBE_TYPES.flatMap((type) => settingOf(c, type, `spec.${list}[${i}]`, isOnHost));
      return [{ name: c.name, sidecar, restartPolicy: policyOf(c.restartPolicy ?? spec.restartPolicy), probes }];
    });
  return [...of("initContainers", spec.initContainers ?? []), ...of("containers", spec.containers)];
}
const policyOf = (policy: string | undefined): ContainerSetting["restartPolicy"] =>
  policy === "Never" || policy === "OnFailure" ? policy : "Always";

function settingOf(container: Container, type: ProbeType, at: string, isOnHost: boolean): readonly ProbeSetting[] {
  const probe = container[PROBE_FIELD[type]];
  const [handler] = probe === undefined ? [] : handlersOf(probe);
  if (probe === undefined || handler === undefined) return [];
  const port = handler === "exec" ? undefined : probe[handler]?.port;
  const named = container.ports?.find(({ name }) => name === port);
  const isUnknown = typeof port === "string" && named === undefined;
  const given = handler === "httpGet" || handler === "tcpSocket" ? (probe[handler]?.host ?? "") : "";
  // the kubelet is on the host's network too
  const host = isOnHost && isLoopback(given) ? "" : given;
  return [
    {
      type,
      path: `${at}.${PROBE_FIELD[type]}`,
      handler,
      timing: timingOf(probe),
      host,
      unknownPort: isUnknown ? port : null,
      target: targetOf(probe, handler, host, named?.containerPort ?? port),
    },
  ];
}
/** The target with defaults filled in. kubernetes 1.36: SetDefaults_HTTPGetAction, SetDefaults_Probe. */
const targetOf = (
  { exec, httpGet, grpc }: PodProbe,
  handler: ProbeHandlerName,
  host: string,
  port: number | string | undefined,
): string =>
  JSON.stringify([
    ...[handler, port, host, exec?.print, httpGet?.scheme ?? "HTTP", httpGet?.print],
    handler === "grpc" ? (grpc?.service ?? "") : "",
  ]);
/** kubernetes 1.36: SetDefaults_Probe, which takes 0 for absent. */
const timingOf = (probe: PodProbe): ProbeTiming => ({
  initialDelaySeconds: probe.initialDelaySeconds ?? 0,
  timeoutSeconds: probe.timeoutSeconds || 1,
  periodSeconds: probe.periodSeconds || 10,
  successThreshold: probe.successThreshold || 1,
  failureThreshold: probe.failureThreshold || 3,
  terminationGracePeriodSeconds: probe.terminationGracePeriodSeconds ?? null,
});
