import { err, ok, type Result } from "../../../api/model/result.ts";
import type { PodContainer, RunnablePod } from "../pod.ts";

const HOSTNAME_LENGTH = 63;
const FQDN_LENGTH = 64;

/** Of a pod's directory below the one of all logs. kubelet 1.36: BuildPodLogsDirectory. */
export const logDirectoryName = (pod: Pick<RunnablePod, "namespace" | "name" | "uid">): string =>
  `${pod.namespace}_${pod.name}_${pod.uid}`;
/** Below the pod's log directory. kubelet 1.36: buildContainerLogsPath. */
export const logPathOf = (container: Pick<PodContainer, "name">, attempt: number): string =>
  `${container.name}/${attempt}.log`;

/** The short name, and the domain behind it; empty: none. kubelet 1.36: GeneratePodHostNameAndDomain. */
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

/** What the kernel is told. Errors: the kubelet's words. kubelet 1.36: GetNodenameForKernel. */
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
