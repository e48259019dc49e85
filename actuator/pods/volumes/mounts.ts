import { chmodSync, closeSync, fstatSync, lstatSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { MountConfig, MountPropagation } from "../../containerd/messages.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import { hostNameOf } from "../../lifecycle/config/labels.ts";
import { type EnvPair, expandSubPath } from "../../lifecycle/env.ts";
import type { PodContainer, RunnablePod, VolumeMount } from "../../lifecycle/pod.ts";
import { writeHostsFile } from "../networking/dns.ts";
import type { PodPlaces } from "../pod-clock.ts";
import { type Mounter, mountAt } from "./mounter.ts";
import { containerAt, etcHostsAt, exists, makeWithin, openWithin, subPathAt, terminationMessageAt } from "./places.ts";
import { volumeAt } from "./volumes.ts";

/** A container that is about to be made. */
export interface MountsRequest {
  readonly pod: RunnablePod;
  readonly container: PodContainer;
  /** The container's restart count. */
  readonly attempt: number;
  readonly places: PodPlaces;
  /** The pod's addresses; on the host network, the node's. */
  readonly podIps: readonly string[];
  /** The container's environment, for a `subPathExpr`. */
  readonly env: readonly EnvPair[];
  /** Suffix of the names of pods in a subdomain. */
  readonly clusterDomain: string;
}

const HOSTS = "/etc/hosts";
const PROPAGATION: Readonly<Record<VolumeMount["propagation"], MountPropagation>> = {
  None: "PROPAGATION_PRIVATE",
  HostToContainer: "PROPAGATION_HOST_TO_CONTAINER",
  Bidirectional: "PROPAGATION_BIDIRECTIONAL",
};

/**
 * Everything of the machine that a container can access: its volumes, /etc/hosts unless the container mounts something there,
 * and its termination message file. Missing parts are created. Error: the kubelet's words. kubelet 1.36: makeMounts.
 */
export async function mountsOf(
  asked: MountsRequest,
  mounter: Mounter,
): Promise<Result<readonly MountConfig[], string>> {
  const mounts: MountConfig[] = [];
  for (const [index, mount] of asked.container.mounts.entries()) {
    const hostPath = await hostPathOf(mount, index, asked, mounter);
    if (!hostPath.ok) return hostPath;
    const { mountPath, readOnly, propagation } = mount;
    const containerPath = mountPath.startsWith("/") ? mountPath : `/${mountPath}`;
    mounts.push({ containerPath, hostPath: hostPath.value, readonly: readOnly, propagation: PROPAGATION[propagation] });
  }
  const hosts = hostsMount(asked);
  if (!hosts.ok) return hosts;
  const lastWords = terminationMessageMount(asked);
  return lastWords.ok ? ok([...mounts, ...hosts.value, ...lastWords.value]) : lastWords;
}

async function hostPathOf(
  mount: VolumeMount,
  index: number,
  { pod, container, places, env }: MountsRequest,
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
function hostsMount({ pod, container, places, podIps, clusterDomain }: MountsRequest): Result<MountConfig[], string> {
  const { hostNetwork, hostAliases } = pod.spec;
  const isWanted = podIps.length > 0 || hostNetwork;
  if (!isWanted || container.mounts.some(({ mountPath }) => mountPath === HOSTS)) return ok([]);
  const file = etcHostsAt(places);
  const names = hostNameOf(pod, clusterDomain);
  const written = writeHostsFile(file, { hostNetwork, ips: podIps, ...names, aliases: hostAliases });
  return written.ok ? ok([ownMount(HOSTS, file)]) : written;
}

/** Makes an empty file that every user of the container may write. */
function terminationMessageMount({ container, attempt, places }: MountsRequest): Result<MountConfig[], string> {
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

const ownMount = (containerPath: string, hostPath: string): MountConfig => ({
  containerPath,
  hostPath,
  readonly: false,
  propagation: PROPAGATION.None,
});

interface SubPath {
  /** The volume's path on the machine. */
  readonly volumePath: string;
  /** Relative to `volumePath`. */
  readonly subPath: string;
  /** The bind mount's place, below the pod's directory. */
  readonly target: string;
  /** Name of the volume, for the error. */
  readonly volume: string;
  readonly container: string;
}

/**
 * Returns the path that the container gets: a bind mount of exactly the file or directory that was checked, so that later
 * changes in the volume cannot lead out of it. A missing path is created as directories with the volume's mode. The error
 * reveals nothing about the machine, since the pod's author sees it. kubelet 1.36: makeMounts, PrepareSafeSubpath.
 */
export async function bindSubPath(asked: SubPath, mounter: Mounter): Promise<Result<string, string>> {
  const { subPath, volume, container } = asked;
  if (subPath.startsWith("/")) return err(`error SubPath \`${subPath}\` must not be an absolute path`);
  if (subPath.split("/").includes(".."))
    return err(`unable to provision SubPath \`${subPath}\`: must not contain '..'`);
  const of = `for volumeMount "${volume}" of container "${container}"`;
  const base = attempt(() => realpathSync(asked.volumePath));
  if (base === null) return err(`failed to prepare subPath ${of}`);
  const made = attempt(() => {
    if (!exists(join(base, subPath))) makeWithin(base, subPath);
    return true;
  });
  if (made === null) return err(`failed to create subPath directory ${of}`);
  const fd = attempt(() => openWithin(base, subPath));
  if (fd === null) return err(`failed to prepare subPath ${of}`);
  try {
    const bound = await bind(fd, asked.target, mounter);
    return bound ? ok(asked.target) : err(`failed to prepare subPath ${of}`);
  } finally {
    closeSync(fd);
  }
}

async function bind(fd: number, target: string, mounter: Mounter): Promise<boolean> {
  const mounted = mountAt(target, mounter);
  if (!mounted.ok) return false;
  if (mounted.value !== undefined) {
    if (attempt(() => isSame(fd, target)) === true) return true;
    if (!(await mounter.unmount(target)).ok) return false;
  }
  if (attempt(() => makeTarget(target, fstatSync(fd).isDirectory())) === null) return false;
  return (await mounter.bind(fd, target)).ok;
}

function isSame(fd: number, target: string): boolean {
  const [one, other] = [fstatSync(fd), lstatSync(target)];
  return one.dev === other.dev && one.ino === other.ino;
}

/** Makes a directory, or a file for everything else: the mount gives it its kind. */
function makeTarget(target: string, isDirectory: boolean): true {
  mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
  if (isDirectory) mkdirSync(target, { recursive: true, mode: 0o750 });
  else writeFileSync(target, "", { mode: 0o640 });
  return true;
}

/** Null: the system refused, or the path is not safe. */
function attempt<T>(step: () => T): T | null {
  try {
    return step();
  } catch (error) {
    codeOf(error);
    return null;
  }
}
