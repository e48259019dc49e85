import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { AskedMount, MountPropagation } from "../containerd/messages.ts";
import { hostNameOf } from "../lifecycle/config/names.ts";
import { type EnvPair, expandSubPath } from "../lifecycle/expand.ts";
import type { PodContainer, RunnablePod, VolumeMount } from "../lifecycle/pod.ts";
import { goErrorText } from "./go-error.ts";
import { writeHostsFile } from "./hosts-file.ts";
import type { Mounter } from "./mounter.ts";
import { containerAt, etcHostsAt, subPathAt } from "./places.ts";
import type { PodPlaces } from "./ports.ts";
import { bindSubPath } from "./sub-path.ts";
import { terminationMessageAt } from "./termination-message.ts";
import { volumeAt } from "./volumes.ts";

/** A container that is about to be made. */
export interface MountsAsked {
  readonly pod: RunnablePod;
  readonly container: PodContainer;
  /** Its restart count. */
  readonly attempt: number;
  readonly places: PodPlaces;
  /** On the host's network: the node's. */
  readonly podIps: readonly string[];
  /** The container's, for a `subPathExpr`. */
  readonly env: readonly EnvPair[];
  /** Of names of pods in a subdomain. */
  readonly clusterDomain: string;
}

const HOSTS = "/etc/hosts";
const PROPAGATION: Readonly<Record<VolumeMount["propagation"], MountPropagation>> = {
  None: "PROPAGATION_PRIVATE",
  HostToContainer: "PROPAGATION_HOST_TO_CONTAINER",
  Bidirectional: "PROPAGATION_BIDIRECTIONAL",
};

/**
 * Everything of the machine that a container gets to see: its volumes, /etc/hosts unless it mounts there itself, and the
 * file for its last words. What is missing of it is made. Error: the kubelet's words. kubelet 1.36: makeMounts.
 */
export async function mountsOf(asked: MountsAsked, mounter: Mounter): Promise<Result<readonly AskedMount[], string>> {
  const mounts: AskedMount[] = [];
  for (const [index, mount] of asked.container.mounts.entries()) {
    const hostPath = await hostPathOf(mount, index, asked, mounter);
    if (!hostPath.ok) return hostPath;
    const { mountPath, readOnly, propagation } = mount;
    const containerPath = mountPath.startsWith("/") ? mountPath : `/${mountPath}`;
    mounts.push({ containerPath, hostPath: hostPath.value, readonly: readOnly, propagation: PROPAGATION[propagation] });
  }
  const hosts = hostsMount(asked);
  if (!hosts.ok) return hosts;
  const lastWords = lastWordsMount(asked);
  return lastWords.ok ? ok([...mounts, ...hosts.value, ...lastWords.value]) : lastWords;
}

async function hostPathOf(
  mount: VolumeMount,
  index: number,
  { pod, container, places, env }: MountsAsked,
  mounter: Mounter,
): Promise<Result<string, string>> {
  const volume = pod.spec.volumes.find(({ name }) => name === mount.volume);
  if (volume === undefined)
    return err(`cannot find volume "${mount.volume}" to mount into container "${container.name}"`);
  const subPath = mount.isExpression ? expandSubPath(mount.subPath, env) : ok(mount.subPath);
  if (!subPath.ok) return subPath;
  const at = volumeAt(volume, places);
  if (!at.ok || subPath.value === "") return at;
  const target = subPathAt(places, mount.volume, container.name, index);
  if (!target.ok) return target;
  return bindSubPath(
    {
      volumePath: at.value,
      subPath: subPath.value,
      target: target.value,
      volume: mount.volume,
      container: container.name,
    },
    mounter,
  );
}

/** kubelet 1.36: shouldMountHostsFile, makeHostsMount. */
function hostsMount({ pod, container, places, podIps, clusterDomain }: MountsAsked): Result<AskedMount[], string> {
  const { hostNetwork, hostAliases } = pod.spec;
  const isWanted = podIps.length > 0 || hostNetwork;
  if (!isWanted || container.mounts.some(({ mountPath }) => mountPath === HOSTS)) return ok([]);
  const file = etcHostsAt(places);
  const names = hostNameOf(pod, clusterDomain);
  const written = writeHostsFile(file, { hostNetwork, ips: podIps, ...names, aliases: hostAliases });
  return written.ok ? ok([ownMount(HOSTS, file)]) : written;
}

/** An empty file that every user of the container may write. */
function lastWordsMount({ container, attempt, places }: MountsAsked): Result<AskedMount[], string> {
  const { terminationMessagePath: path } = container;
  const directory = containerAt(places, container.name);
  if (!directory.ok) return directory;
  const file = join(directory.value, terminationMessageAt(attempt));
  try {
    mkdirSync(directory.value, { recursive: true, mode: 0o750 });
    if (path === "") return ok([]);
    rmSync(file, { force: true });
    writeFileSync(file, "", { flag: "wx" });
    chmodSync(file, 0o666);
    return ok([ownMount(path.startsWith("/") ? path : `/${path}`, file)]);
  } catch (error) {
    return err(goErrorText(error));
  }
}

const ownMount = (containerPath: string, hostPath: string): AskedMount => ({
  containerPath,
  hostPath,
  readonly: false,
  propagation: PROPAGATION.None,
});
