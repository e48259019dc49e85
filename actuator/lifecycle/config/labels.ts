import type { NameValue } from "../../../api/model/device-decision.ts";
import type { LifecycleHandler, PodContainer, RunnablePod, TextMap } from "../pod.ts";
import {
  CONTAINER_HASH,
  CONTAINER_NAME,
  CONTAINER_RESTART_COUNT,
  OWNER,
  POD_GRACE_PERIOD,
  POD_NAME,
  POD_NAMESPACE,
  POD_UID,
  TERMINATION_MESSAGE_PATH,
  TERMINATION_MESSAGE_POLICY,
} from "../runtime-pod.ts";
import { containerHash } from "./container-hash.ts";

/** Of a container of a pod whose end was asked for. */
const DELETION_GRACE_PERIOD = "io.kubernetes.pod.deletionGracePeriod";
const PRE_STOP_HANDLER = "io.kubernetes.container.preStopHandler";
const CONTAINER_PORTS = "io.kubernetes.container.ports";

const identity = (pod: RunnablePod, owner: string): TextMap => ({
  [POD_NAME]: pod.name,
  [POD_NAMESPACE]: pod.namespace,
  [POD_UID]: pod.uid,
  [OWNER]: owner,
});

/** kubelet 1.36: newPodLabels, and whose it is. */
export const sandboxLabels = (pod: RunnablePod, owner: string): TextMap => ({ ...pod.labels, ...identity(pod, owner) });
/** kubelet 1.36: newContainerLabels, and whose it is. */
export const containerLabels = (pod: RunnablePod, container: PodContainer, owner: string): TextMap => ({
  ...identity(pod, owner),
  [CONTAINER_NAME]: container.name,
});

/** `ofPlugins`: what device plugins want; the kubelet's own stand above them. kubelet 1.36: newContainerAnnotations. */
export function containerAnnotations(
  pod: RunnablePod,
  container: PodContainer,
  attempt: number,
  ofPlugins: readonly NameValue[] = [],
): TextMap {
  const { deletion, spec } = pod;
  return {
    ...Object.fromEntries(ofPlugins.map(({ name, value }) => [name, value])),
    [CONTAINER_HASH]: containerHash(pod, container),
    [CONTAINER_RESTART_COUNT]: String(attempt),
    [TERMINATION_MESSAGE_PATH]: container.terminationMessagePath,
    [TERMINATION_MESSAGE_POLICY]: container.terminationMessagePolicy,
    ...(deletion === null ? {} : { [DELETION_GRACE_PERIOD]: String(deletion.graceSeconds) }),
    [POD_GRACE_PERIOD]: String(spec.terminationGracePeriodSeconds),
    ...(container.preStop === null ? {} : { [PRE_STOP_HANDLER]: handlerJson(container.preStop) }),
    ...(container.ports.length === 0 ? {} : { [CONTAINER_PORTS]: portsJson(container) }),
  };
}

/** As Go writes a v1.LifecycleHandler. */
function handlerJson(handler: LifecycleHandler): string {
  if ("exec" in handler) return JSON.stringify({ exec: { command: handler.exec } });
  if ("sleepSeconds" in handler) return JSON.stringify({ sleep: { seconds: handler.sleepSeconds } });
  const { path, port, host, scheme, headers } = handler.http;
  const httpGet = {
    path,
    port,
    ...(host === "" ? {} : { host }),
    scheme: scheme.toUpperCase(),
    ...(headers.length === 0 ? {} : { httpHeaders: headers }),
  };
  return JSON.stringify({ httpGet });
}

const portsJson = ({ ports }: PodContainer): string =>
  JSON.stringify(
    ports.map(({ name, hostPort, containerPort, protocol, hostIP }) => ({
      ...(name === "" ? {} : { name }),
      ...(hostPort === 0 ? {} : { hostPort }),
      containerPort,
      protocol,
      ...(hostIP === "" ? {} : { hostIP }),
    })),
  );
