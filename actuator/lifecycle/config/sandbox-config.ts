import { map, type Result } from "../../../api/model/result.ts";
import type { SandboxConfig } from "../../containerd/messages.ts";
import type { RunnablePod } from "../pod.ts";
import { sandboxLabels } from "./labels.ts";
import { kernelHostName } from "./names.ts";
import { portMappingsOf } from "./port-mappings.ts";
import { groupsOf, namespacesOf } from "./security.ts";

export interface SandboxAsked {
  /** The daemon's own name. */
  readonly owner: string;
  readonly attempt: number;
  /** The pod's own, absolute. */
  readonly logDirectory: string;
  /** The pod's cgroup, absolute. */
  readonly cgroupParent: string;
  readonly dns: NonNullable<SandboxConfig["dnsConfig"]>;
  /** Of names of pods in a subdomain. */
  readonly clusterDomain: string;
}

/**
 * What RunPodSandbox is asked. On the host's network the runtime takes the host's name.
 * Errors: the kubelet's words. kubelet 1.36: generatePodSandboxConfig.
 */
export function sandboxConfigOf(pod: RunnablePod, asked: SandboxAsked): Result<SandboxConfig, string> {
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
      linux: linuxOf(pod, asked.cgroupParent),
    };
  });
}

/** kubelet 1.36: generatePodSandboxLinuxConfig. */
function linuxOf(pod: RunnablePod, cgroupParent: string): NonNullable<SandboxConfig["linux"]> {
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
  };
}
