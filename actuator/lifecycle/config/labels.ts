import { err, ok, type Result } from "../../../api/base/result.ts";
import type { NameValue } from "../../../api/model/devices.ts";
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
} from "../../containerd/cri.ts";
import type { LifecycleHandler, PodContainer, RunnablePod, TextMap } from "../pod.ts";

const HOSTNAME_LENGTH = 63;
const FQDN_LENGTH = 64;

/** The path below the pod's log directory. kubelet 1.36: buildContainerLogsPath. */
export const logPathOf = (container: Pick<PodContainer, "name">, attempt: number): string =>
  `${container.name}/${attempt}.log`;

/** The short name and its domain; empty: none. kubelet 1.36: GeneratePodHostNameAndDomain. */
export function hostNameOf(
  pod: RunnablePod,
  clusterDomain: string,
): { readonly hostname: string; readonly domain: string } {
  const { hostname, subdomain } = pod.spec;
  const name = hostname ?? pod.name;
  return {
    hostname: name.length <= HOSTNAME_LENGTH ? name : name.slice(0, HOSTNAME_LENGTH).replace(/[-.]+$/, ""),
    domain: subdomain === null ? "" : `${subdomain}.${pod.namespace}.svc.${clusterDomain}`,
  };
}

/** The host name for the kernel. Errors: the kubelet's words. kubelet 1.36: GetNodenameForKernel. */
export function kernelHostName(pod: RunnablePod, clusterDomain: string): Result<string, string> {
  const { hostname, domain } = hostNameOf(pod, clusterDomain);
  if (domain === "" || !pod.spec.setHostnameAsFQDN) return ok(hostname);
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length <= FQDN_LENGTH) return ok(fqdn);
  return err(
    `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long ` +
      `(${FQDN_LENGTH} characters is the max, ${fqdn.length} characters requested)`,
  );
}

const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/**
 * The hash that changes when a running container must be restarted: by name and image, since everything else of a pod
 * is fixed or changes in place. Equal to the kubelet's own, hexadecimal. kubelet 1.36: HashContainer (FNV-1a of the
 * dump of a JSON).
 */
export function containerHash(_pod: RunnablePod, container: Pick<PodContainer, "name" | "image">): string {
  const json = JSON.stringify({ image: container.image, name: container.name }).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const dump = `([]uint8)[${new TextEncoder().encode(json).join(" ")}]`;
  let hash = OFFSET;
  for (let i = 0; i < dump.length; i++) hash = Math.imul(hash ^ dump.charCodeAt(i), PRIME) >>> 0;
  return hash.toString(16);
}

/** Annotation of a container whose pod is being deleted. */
const DELETION_GRACE_PERIOD = "io.kubernetes.pod.deletionGracePeriod";
const PRE_STOP_HANDLER = "io.kubernetes.container.preStopHandler";
const CONTAINER_PORTS = "io.kubernetes.container.ports";

const identity = (pod: RunnablePod, owner: string): TextMap => ({
  [POD_NAME]: pod.name,
  [POD_NAMESPACE]: pod.namespace,
  [POD_UID]: pod.uid,
  [OWNER]: owner,
});

/** kubelet 1.36: newPodLabels; plus the owner's label. */
export const sandboxLabels = (pod: RunnablePod, owner: string): TextMap => ({ ...pod.labels, ...identity(pod, owner) });
/** kubelet 1.36: newContainerLabels; plus the owner's label. */
export const containerLabels = (pod: RunnablePod, container: PodContainer, owner: string): TextMap => ({
  ...identity(pod, owner),
  [CONTAINER_NAME]: container.name,
});

/** `ofPlugins`: annotations of device plugins; the kubelet's own override them. kubelet 1.36: newContainerAnnotations. */
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

/** A v1.LifecycleHandler as Go writes it. */
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
