import type { ContainerSecurityContext, NamespaceOptions, SecurityProfile } from "../../containerd/messages.ts";
import type { PodContainer, Profile, RunnablePod } from "../pod.ts";

/** The node's additions to a pod's security settings. */
export interface NodeSecurity {
  /** Containers without a seccomp profile get the runtime's. kubelet: seccompDefault. */
  readonly seccompDefault: boolean;
  /** Where `Localhost` profiles of seccomp lie. */
  readonly seccompDirectory: string;
  /** Paths of this machine beyond those of every machine: /sys/devices/system/cpu/cpuN/thermal_throttle where it exists. */
  readonly maskedPaths: readonly string[];
}

/** As every runtime of containers hides them. kubernetes 1.36: securitycontext.defaultMaskedPaths. */
const MASKED_PATHS = [
  ..."asound acpi interrupts kcore keys latency_stats timer_list timer_stats sched_debug scsi"
    .split(" ")
    .map((name) => `/proc/${name}`),
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];
const READONLY_PATHS = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** kubelet 1.36: NamespacesForPod. */
export const namespacesOf = ({ spec }: RunnablePod): Required<NamespaceOptions> => ({
  network: spec.hostNetwork ? "NODE" : "POD",
  pid: spec.hostPID ? "NODE" : spec.shareProcessNamespace ? "POD" : "CONTAINER",
  ipc: spec.hostIPC ? "NODE" : "POD",
});

export const groupsOf = ({ spec: { securityContext: s } }: RunnablePod): readonly number[] => [
  ...(s.fsGroup === null ? [] : [s.fsGroup]),
  ...s.supplementalGroups,
];

const int64 = (value: number | null) => (value === null ? undefined : { value });

/**
 * The container's over the pod's; `imageUser`: the number of the image's user, null where that is a name.
 * kubelet 1.36: determineEffectiveSecurityContext.
 */
export function containerSecurity(
  pod: RunnablePod,
  { security: own }: PodContainer,
  imageUser: number | null,
  node: NodeSecurity,
): ContainerSecurityContext {
  const ofPod = pod.spec.securityContext;
  const runAsUser = int64(own.runAsUser ?? ofPod.runAsUser ?? imageUser);
  const runAsGroup = int64(own.runAsGroup ?? ofPod.runAsGroup);
  const appArmor = own.appArmor ?? ofPod.appArmor;
  const { addCapabilities, dropCapabilities } = own;
  const hasCapabilities = addCapabilities.length + dropCapabilities.length > 0;
  return {
    namespaceOptions: namespacesOf(pod),
    ...(runAsUser === undefined ? {} : { runAsUser }),
    ...(runAsGroup === undefined ? {} : { runAsGroup }),
    privileged: own.privileged,
    readonlyRootfs: own.readOnlyRootFilesystem,
    supplementalGroups: groupsOf(pod),
    ...(hasCapabilities ? { capabilities: { addCapabilities, dropCapabilities } } : {}),
    noNewPrivs: own.allowPrivilegeEscalation === false,
    maskedPaths: [...MASKED_PATHS, ...node.maskedPaths],
    readonlyPaths: READONLY_PATHS,
    seccomp: seccompOf(own.seccomp ?? ofPod.seccomp, node),
    ...(appArmor === null ? {} : { apparmor: profileOf(appArmor) }),
  };
}

/** kubelet 1.36: getSeccompProfile. */
function seccompOf(profile: Profile | null, node: NodeSecurity): SecurityProfile {
  if (profile === null) return { profileType: node.seccompDefault ? "RuntimeDefault" : "Unconfined" };
  if (profile.type !== "Localhost") return profileOf(profile);
  return { profileType: "Localhost", localhostRef: `${node.seccompDirectory.replace(/\/+$/, "")}/${profile.ref}` };
}
const profileOf = (profile: Profile): SecurityProfile =>
  profile.type === "Localhost"
    ? { profileType: "Localhost", localhostRef: profile.ref }
    : { profileType: profile.type };
