import type { SandboxValues } from "../../../api/decide/cgroups/container-config.ts";
import { map, type Result } from "../../../api/model/result.ts";
import type { SandboxConfig } from "../../containerd/messages.ts";
import type { ContainerPort, RunnablePod } from "../pod.ts";
import { isIPv6 } from "../spec/names.ts";
import { containerResources } from "./container-config.ts";
import { kernelHostName, sandboxLabels } from "./labels.ts";
import { groupsOf, namespacesOf } from "./security.ts";

export interface SandboxConfigRequest {
  /** The daemon's own name. */
  readonly owner: string;
  readonly attempt: number;
  /** The pod's own, absolute. */
  readonly logDirectory: string;
  /** The pod's cgroup, absolute. */
  readonly cgroupParent: string;
  readonly dns: NonNullable<SandboxConfig["dnsConfig"]>;
  /** Suffix of the names of pods in a subdomain. */
  readonly clusterDomain: string;
  /** Undefined: nothing was decided about it. */
  readonly values: SandboxValues | undefined;
  /** The version of the cgroups. */
  readonly version: 1 | 2;
}

/**
 * The request of RunPodSandbox. On the host's network the runtime uses the host's name. Errors: the kubelet's words. kubelet
 * 1.36: generatePodSandboxConfig.
 */
export function sandboxConfigOf(pod: RunnablePod, asked: SandboxConfigRequest): Result<SandboxConfig, string> {
  const { hostNetwork } = pod.spec;
  return map(kernelHostName(pod, asked.clusterDomain), (hostname): SandboxConfig => {
    const portMappings = hostNetwork ? [] : portMappingsOf(pod);
    return {
      metadata: { name: pod.name, uid: pod.uid, namespace: pod.namespace, attempt: asked.attempt },
      ...(hostNetwork ? {} : { hostname }),
      logDirectory: asked.logDirectory,
      dnsConfig: asked.dns,
      ...(portMappings.length === 0 ? {} : { portMappings }),
      labels: sandboxLabels(pod, asked.owner),
      annotations: pod.annotations,
      linux: linuxOf(pod, asked),
    };
  });
}

/** kubelet 1.36: generatePodSandboxLinuxConfig, applySandboxResources. */
function linuxOf(
  pod: RunnablePod,
  { cgroupParent, values, version }: SandboxConfigRequest,
): NonNullable<SandboxConfig["linux"]> {
  const { runAsUser, runAsGroup, sysctls } = pod.spec.securityContext;
  const all = [...pod.spec.initContainers, ...pod.spec.containers];
  return {
    cgroupParent,
    sysctls,
    securityContext: {
      namespaceOptions: namespacesOf(pod),
      ...(runAsUser === null ? {} : { runAsUser: { value: runAsUser } }),
      ...(runAsGroup === null ? {} : { runAsGroup: { value: runAsGroup } }),
      supplementalGroups: groupsOf(pod),
      privileged: all.some((c) => c.security.privileged),
      seccomp: { profileType: "RuntimeDefault" },
    },
    ...(values && {
      overhead: containerResources(values.overhead, version),
      resources: containerResources(values.resources, version),
    }),
  };
}

type PortMappings = NonNullable<SandboxConfig["portMappings"]>;

/** Port mappings of the regular containers; a port's name counts once per container. kubelet 1.36: MakePortMappings. */
const portMappingsOf = (pod: RunnablePod): PortMappings =>
  pod.spec.containers.flatMap(({ ports }) => {
    const names = new Set<string>();
    return ports
      .filter((port) => {
        const name = nameOf(port);
        const isFirst = !names.has(name);
        names.add(name);
        return isFirst;
      })
      .map(({ protocol, containerPort, hostPort, hostIP }) => ({ protocol, containerPort, hostPort, hostIp: hostIP }));
  });

function nameOf({ name, protocol, hostIP, containerPort, hostPort }: ContainerPort): string {
  if (name !== "") return name;
  const family = hostIP === "" ? "any" : isIPv6(hostIP) ? "v6" : "v4";
  return `${family}-${protocol}-${hostIP}:${containerPort}:${hostPort}`;
}
