import { formatCpuSet, gapsIn } from "../../api/model/cpu-set.ts";
import { kubeletConfiguration as configurationSchema } from "../../api/model/kubelet-configuration.ts";
import {
  type EffectiveConfiguration,
  effectiveConfiguration,
  effectiveDocument,
  gateOn,
} from "../../api/profiles/effective.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import type { ImageFileSystems } from "../containerd/file-systems.ts";
import type { MachineFacts } from "../machine/facts.ts";
import { nodeNameOf, nodeOf } from "../machine/node.ts";
import { summaryOf } from "../stats/summary.ts";

export interface SnapshotParts {
  readonly machine: MachineFacts;
  /** The simulated kubelet, whose version the node then reports; absent: none. */
  readonly profile?: Profile;
  /**
   * The configuration as posted: any subset of KubeletConfiguration, or `{"kubeletconfig": ...}`; `undefined`: not
   * known.
   */
  readonly kubeletConfiguration: unknown;
  /** The pods; absent: not known, which differs from none. */
  readonly pods?: readonly unknown[];
  /** `root`: where the hierarchies are mounted; absent: as on the machine. */
  readonly cgroup: {
    readonly driver: "cgroupfs" | "systemd";
    readonly root?: string;
    readonly runtimeCpuWeight?: "curve" | "linear";
  };
  /** The node's name; absent: the host name in lower case. */
  readonly nodeName?: string;
  /** Counts the snapshots of one boot, so that an older one is known as such. */
  readonly sequence?: number;
  readonly runtime?: unknown;
  /** File systems of the runtime's images and containers. */
  readonly imageFileSystems?: ImageFileSystems;
  readonly devices?: readonly unknown[];
  readonly devicePlugins?: readonly unknown[];
  /** Facts about the kubelet's managers themselves. */
  readonly kubelet?: object;
  readonly assignments?: unknown;
}

/**
 * The NodeSnapshot of this machine as plain JSON, for `POST /v1/decisions/*`. Pure: what `machine` does
 * not contain is absent, never guessed, and the decisions then list it under `needs`.
 */
export function snapshotOf(parts: SnapshotParts): Readonly<Record<string, unknown>> {
  const { machine, cgroup, profile } = parts;
  const nodeName = parts.nodeName ?? nodeNameOf(machine);
  const configuration = configurationOf(parts.kubeletConfiguration, profile ?? NEWEST);
  const sparesHugePages = gateOn(configuration, "HugepageAwareEviction");
  const snapshot = {
    observedAt: machine.observedAt,
    bootId: machine.system.bootID,
    sequence: parts.sequence ?? 0,
    node: nodeName === undefined ? undefined : nodeOf(machine, nodeName, configuration, profile),
    kubeletConfiguration: parts.kubeletConfiguration,
    pods: parts.pods,
    stats: plain(summaryOf(machine, nodeName ?? "", { images: parts.imageFileSystems, sparesHugePages })),
    machine: plain(machineOf(machine)),
    cgroup:
      machine.cgroup.version === undefined
        ? undefined
        : { root: machine.cgroup.root, ...cgroup, version: machine.cgroup.version },
    runtime: parts.runtime,
    devices: parts.devices,
    devicePlugins: parts.devicePlugins,
    kubelet: parts.kubelet,
    assignments: parts.assignments,
  };
  return Object.fromEntries(Object.entries(snapshot).filter(([, value]) => value !== undefined));
}
/** The value without undefined fields, at every depth. */
export const plain = (value: object): Readonly<Record<string, unknown>> => JSON.parse(JSON.stringify(value));

/** Only the defaults if the configuration has a fault: it is posted unchanged, and the API reports the fault. */
export function configurationOf(input: unknown, profile: Profile): EffectiveConfiguration {
  const parsed = configurationSchema.safeParse(input);
  return effectiveConfiguration(profile, parsed.success ? parsed.data : {});
}

function machineOf(machine: MachineFacts) {
  return {
    cpus: machine.cpus.map(({ cpu, core, socket, numa, uncoreCache }) => ({ cpu, core, socket, numa, uncoreCache })),
    offlineCpus: formatCpuSet(gapsIn(machine.cpus.map(({ cpu }) => cpu))) || undefined,
    numaNodes: machine.numaNodes,
    distances: machine.distances.length === 0 ? undefined : machine.distances,
    memoryBytes: machine.memory.totalBytes,
    swapBytes: machine.memory.swapTotalBytes,
    hugetlb: machine.cgroup.version === undefined ? undefined : machine.cgroup.hugetlb,
    pageSizeBytes: machine.memory.pageSizeBytes,
  };
}

/** The cgroup driver of a configuration as posted. */
export const driverOf = (configuration: unknown, profile: Profile): "cgroupfs" | "systemd" =>
  effectiveDocument(profile, configuration).cgroupDriver === "systemd" ? "systemd" : "cgroupfs";
