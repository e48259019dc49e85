import { err, map, ok, type Result } from "../../../api/base/result.ts";
import type { SandboxValues } from "../../../api/decide/cgroups/container-config.ts";
import { pageSizeUnit } from "../../../api/decide/hugepages.ts";
import type { CgroupValues } from "../../../api/model/cgroups.ts";
import type { DeviceOptions } from "../../../api/model/devices.ts";
import { type Bytes, NO_PAGE_LIMIT } from "../../../api/model/units.ts";
import type {
  ContainerConfig,
  ContainerSecurityContext,
  LinuxContainerResources,
  MountConfig,
  NamespaceOptions,
  SandboxConfig,
  SecurityProfile,
} from "../../containerd/messages.ts";
import { type EnvPair, expandAll } from "../env.ts";
import type { ContainerPort, PodContainer, Profile, RunnablePod } from "../pod.ts";
import { isIPv6 } from "../spec/names.ts";
import { containerAnnotations, containerLabels, kernelHostName, logPathOf, sandboxLabels } from "./labels.ts";

type Pages = NonNullable<LinuxContainerResources["hugepageLimits"]>;

/** The kubelet's value for "no limit": 1 << 62. */
const NO_PAGES = 2 ** 62;

/** Without a limit (-1) the field is left out. */
const limit = (bytes: Bytes): number | undefined => (bytes <= 0 ? undefined : bytes);
/** A value without a field in CRI is passed by the name of its file, on cgroup v2 only. */
const byFile = (file: string, bytes: Bytes): LinuxContainerResources => ({
  unified: { [file]: bytes === -1 ? "max" : String(bytes) },
});

/** How each value of a container reaches the runtime; null: not at all. */
const RUNTIME_FIELDS: {
  readonly [V in keyof CgroupValues]-?:
    | ((
        value: NonNullable<CgroupValues[V]>,
        version: 1 | 2,
      ) => { readonly [F in keyof LinuxContainerResources]?: unknown })
    | null;
} = {
  cpuPeriod: (cpuPeriod) => ({ cpuPeriod }),
  cpuQuota: (cpuQuota) => ({ cpuQuota }),
  cpuShares: (cpuShares) => ({ cpuShares }),
  // the runtime converts the shares
  cpuWeight: null,
  memory: (bytes) => ({ memoryLimitInBytes: limit(bytes) }),
  oomScoreAdj: (oomScoreAdj) => ({ oomScoreAdj }),
  cpusetCpus: (cpusetCpus) => ({ cpusetCpus }),
  cpusetMems: (cpusetMems) => ({ cpusetMems }),
  hugePageLimit: (limits) => ({ hugepageLimits: pagesOf(limits) }),
  memoryOomGroup: (isOn) => (isOn ? { unified: { "memory.oom.group": "1" } } : {}),
  memorySwap: (bytes, version) =>
    version === 1 ? { memorySwapLimitInBytes: limit(bytes) } : byFile("memory.swap.max", bytes),
  memoryMin: (bytes) => byFile("memory.min", bytes),
  memoryLow: (bytes) => byFile("memory.low", bytes),
  memoryHigh: (bytes) => byFile("memory.high", bytes),
  // the limit of process ids is the pod's
  pidsLimit: null,
};

/**
 * A container's resources in the runtime's form, for its creation and updates. An absent value is left to the runtime.
 * kubelet 1.36: generateLinuxContainerResources.
 */
export function containerResources(values: CgroupValues, version: 1 | 2): LinuxContainerResources {
  const resources: Record<string, unknown> = {};
  const unified: Record<string, string> = {};
  for (const [name, convert] of Object.entries(RUNTIME_FIELDS)) {
    const value = values[name as keyof CgroupValues];
    if (value === undefined || convert === null) continue;
    const { unified: files, ...fields } = (convert as (value: unknown, version: 1 | 2) => LinuxContainerResources)(
      value,
      version,
    );
    for (const [field, one] of Object.entries(fields)) if (one !== undefined) resources[field] = one;
    if (version === 2) Object.assign(unified, files);
  }
  return Object.keys(unified).length === 0 ? resources : { ...resources, unified };
}

const pagesOf = (limits: Readonly<Record<string, Bytes>>): Pages =>
  Object.entries(limits).map(([size, bytes]) => ({
    pageSize: pageSizeUnit(Number(size)),
    limit: bytes === NO_PAGE_LIMIT ? NO_PAGES : bytes,
  }));

const MAX_ID = 2_147_483_647;

/** The user of an image: a number, or a name that only the image's own files resolve. */
interface ImageUser {
  readonly uid: number | null;
  readonly name: string;
}

/**
 * The image's user. `user`: as the runtime reports it; null: root. Its group is ignored. kubelet 1.36: getImageUser.
 */
function imageUserOf(user: string | null): ImageUser {
  const [name = ""] = (user ?? "").split(":");
  if (name === "") return { uid: 0, name: "" };
  return /^\d+$/.test(name) ? { uid: Number(name), name: "" } : { uid: null, name };
}

/** Why the container may not start, in the kubelet's words; null: it may. kubelet 1.36: verifyRunAsNonRoot. */
function nonRootFault(pod: RunnablePod, container: PodContainer, user: ImageUser): string | null {
  const ofPod = pod.spec.securityContext;
  if (!(container.security.runAsNonRoot ?? ofPod.runAsNonRoot)) return null;
  const where = `(pod: "${pod.name}_${pod.namespace}(${pod.uid})", container: ${container.name})`;
  const asked = container.security.runAsUser ?? ofPod.runAsUser;
  if (asked !== null) return asked === 0 ? `container's runAsUser breaks non-root policy ${where}` : null;
  if (user.uid === null) {
    return `container has runAsNonRoot and image has non-numeric user (${user.name}), cannot verify user is non-root ${where}`;
  }
  if (user.uid === 0) return `container has runAsNonRoot and image will run as root ${where}`;
  if (user.uid <= MAX_ID) return null;
  const range = `must be between 0 and ${MAX_ID}, inclusive`;
  return `container has runAsNonRoot and image has an invalid user id (${user.uid}). (Must be 1-(${MAX_ID})): ${range} ${where}`;
}

export interface ContainerConfigRequest {
  /** The daemon's own name. */
  readonly owner: string;
  /** The instance's restart count. */
  readonly attempt: number;
  /** The id, or the name, of the image to run. */
  readonly image: string;
  /** The image's user as the runtime reports it; null: root. */
  readonly imageUser: string | null;
  /** The variables from `resolveEnv`, after those of its devices. */
  readonly env: readonly EnvPair[];
  /** Mounts of volumes, the hosts file and the termination message, with their places on the host. */
  readonly mounts: readonly MountConfig[];
  /** The options for the container's devices; null: it has none. */
  readonly devices: DeviceOptions | null;
  /** The decided values; undefined: nothing was decided. */
  readonly resources: CgroupValues | undefined;
  /** The version of the cgroups. */
  readonly version: 1 | 2;
  readonly security: NodeSecurity;
}

/** The request of CreateContainer. Errors: the kubelet's words. kubelet 1.36: generateContainerConfig. */
export function containerConfigOf(
  pod: RunnablePod,
  container: PodContainer,
  asked: ContainerConfigRequest,
): Result<ContainerConfig, string> {
  const user = imageUserOf(asked.imageUser);
  const fault = nonRootFault(pod, container, user);
  if (fault !== null) return err(fault);
  const { resources, devices } = asked;
  const { mounts, ...given } = deviceParts(devices);
  return ok({
    metadata: { name: container.name, attempt: asked.attempt },
    image: { image: asked.image, userSpecifiedImage: container.image },
    command: expandAll(container.command, asked.env),
    args: expandAll(container.args, asked.env),
    workingDir: container.workingDir,
    envs: asked.env,
    mounts: [...mounts, ...asked.mounts],
    ...given,
    labels: containerLabels(pod, container, asked.owner),
    annotations: containerAnnotations(pod, container, asked.attempt, devices?.annotations),
    logPath: logPathOf(container, asked.attempt),
    stdin: container.stdin,
    stdinOnce: container.stdinOnce,
    tty: container.tty,
    linux: {
      ...(resources === undefined ? {} : { resources: containerResources(resources, asked.version) }),
      securityContext: containerSecurity(pod, container, user.uid, asked.security),
    },
  });
}

/** The parts of a container's configuration that its devices bring. */
type DeviceParts = Pick<ContainerConfig, "devices" | "CDIDevices"> & { readonly mounts: readonly MountConfig[] };

/** `options` null: the container has no devices. kubelet 1.36: deviceRunContainerOptions, makeMounts, makeDevices, makeCDIDevices. */
function deviceParts(options: DeviceOptions | null): DeviceParts {
  if (options === null) return { mounts: [] };
  return {
    mounts: options.mounts.map(({ containerPath, hostPath, readOnly }) => ({
      containerPath,
      hostPath,
      readonly: readOnly,
      propagation: "PROPAGATION_PRIVATE",
    })),
    devices: options.devices.map(({ pathInContainer, pathOnHost, permissions }) => ({
      containerPath: pathInContainer,
      hostPath: pathOnHost,
      permissions,
    })),
    CDIDevices: options.cdiDevices.map((name) => ({ name })),
  };
}

/** The options with the CDI devices of claims in front. kubelet 1.37: containerManagerImpl.GetResources. */
export function withClaimedDevices(options: DeviceOptions | null, claimed: readonly string[]): DeviceOptions | null {
  if (claimed.length === 0) return options;
  const none = { envs: [], mounts: [], devices: [], annotations: [], cdiDevices: [], conflicts: [] };
  const own = options ?? none;
  return { ...own, cdiDevices: [...claimed, ...own.cdiDevices] };
}

/**
 * The variables of the devices, then the container's own, which override them: the kubelet passes both, and the last
 * one counts. A command and a `subPathExpr` may refer to all of them, the container's own variables only to each
 * other. kubelet 1.36: GenerateRunContainerOptions, ExpandContainerCommandAndArgs.
 */
export function withDeviceEnv(options: DeviceOptions | null, own: readonly EnvPair[]): readonly EnvPair[] {
  if (options === null) return own;
  const all = [...options.envs.map(({ name, value }) => [name, value] as const), ...own.map(pairOf)];
  return [...new Map(all)].map(([key, value]) => ({ key, value }));
}
const pairOf = ({ key, value }: EnvPair) => [key, value] as const;

export interface SandboxConfigRequest {
  /** The daemon's own name. */
  readonly owner: string;
  readonly attempt: number;
  /** The absolute path of the pod's log directory. */
  readonly logDirectory: string;
  /** The pod's cgroup, absolute. */
  readonly cgroupParent: string;
  readonly dns: NonNullable<SandboxConfig["dnsConfig"]>;
  /** Suffix of the names of pods in a subdomain. */
  readonly clusterDomain: string;
  /** The decided values; undefined: nothing was decided. */
  readonly values: SandboxValues | undefined;
  /** The version of the cgroups. */
  readonly version: 1 | 2;
}

/**
 * The request of RunPodSandbox. On the host network the runtime uses the host's name. Errors: the kubelet's words. kubelet
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

/** The node's additions to a pod's security settings. */
export interface NodeSecurity {
  /** Containers without a seccomp profile get the runtime's. kubelet: seccompDefault. */
  readonly seccompDefault: boolean;
  /** The directory of seccomp's `Localhost` profiles. */
  readonly seccompDirectory: string;
  /** Paths of this machine besides the general ones: /sys/devices/system/cpu/cpuN/thermal_throttle if it exists. */
  readonly maskedPaths: readonly string[];
}

/** Paths that every container runtime masks. kubernetes 1.36: securitycontext.defaultMaskedPaths. */
const MASKED_PATHS = [
  ..."asound acpi interrupts kcore keys latency_stats timer_list timer_stats sched_debug scsi"
    .split(" ")
    .map((name) => `/proc/${name}`),
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];
const READONLY_PATHS = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** kubelet 1.36: NamespacesForPod. */
const namespacesOf = ({ spec }: RunnablePod): Required<NamespaceOptions> => ({
  network: spec.hostNetwork ? "NODE" : "POD",
  pid: spec.hostPID ? "NODE" : spec.shareProcessNamespace ? "POD" : "CONTAINER",
  ipc: spec.hostIPC ? "NODE" : "POD",
});

const groupsOf = ({ spec: { securityContext: s } }: RunnablePod): readonly number[] => [
  ...(s.fsGroup === null ? [] : [s.fsGroup]),
  ...s.supplementalGroups,
];

const int64 = (value: number | null) => (value === null ? undefined : { value });

/**
 * Combines the container's security context with the pod's; `imageUser`: the number of the image's user, null if it is a name.
 * kubelet 1.36: determineEffectiveSecurityContext.
 */
function containerSecurity(
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
