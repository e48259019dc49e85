import { posix } from "node:path";
import type { SimKernel } from "../actuator/cgroups/sim-kernel.ts";
import { parseList } from "../actuator/cgroups/sim-numbers.ts";
import type { FakePodContainer } from "./fake-pod-parts.ts";
import type { PodsNode } from "./pods-node.ts";
import { cgroupOf } from "./pods-runtime.ts";
import { sizesOf } from "./pods-sizes.ts";

interface Wanted {
  readonly cpuMilli: number;
  /** Null: no limit. */
  readonly limitMilli: number | null;
  readonly memory: number | null;
}

/** The first value that the pod's form requests and its cgroup lacks; null: the cgroup has all values. */
export function unfilledPod({ kernel }: PodsNode, form: object, path: string): string | null {
  const { cpuMilli, exclusive, memoryLimit } = sizesOf(form);
  // a pod with a container with exclusive CPUs has no quota
  const hasQuota = memoryLimit !== null && exclusive.size === 0;
  return unfilled(kernel, path, { cpuMilli, limitMilli: hasQuota ? cpuMilli : null, memory: memoryLimit });
}

/** The same check for a running container: its cpuset must also equal the one that the runtime received. */
export function unfilledContainer({ kernel, runtime }: PodsNode, form: object, one: FakePodContainer): string | null {
  const { containers, exclusive } = sizesOf(form);
  const size = containers.find(({ name }) => name === one.config.metadata.name);
  const path = cgroupOf(one);
  const message = runtime.reported.get(one.id) ?? "";
  const cpus = filesOf(kernel, path, "cpuset")?.get("cpuset.cpus") ?? "";
  if (message !== "" && !sameCpus(message, cpus)) return `${path} has CPUs ${cpus}, the runtime was told ${message}`;
  if (size === undefined) return null;
  const { cpuMilli, isLimited, memory } = size;
  const limitMilli = isLimited && exclusive.size === 0 ? cpuMilli : null;
  return unfilled(kernel, path, { cpuMilli, limitMilli, memory: isLimited ? memory : null });
}

function unfilled(kernel: SimKernel, path: string, { cpuMilli, limitMilli, memory }: Wanted): string | null {
  const isV1 = kernel.rules.version === 1;
  const [cpuFiles, memoryFiles] = [filesOf(kernel, path, "cpu"), filesOf(kernel, path, "memory")];
  if (cpuFiles === undefined || memoryFiles === undefined) return `${path} is not there`;
  const bytes = memoryFiles.get(isV1 ? "memory.limit_in_bytes" : "memory.max");
  if (memory !== null && bytes !== String(memory)) return `${path} has ${bytes} bytes, not ${memory}`;
  const shares = cpuFiles.get("cpu.shares");
  const wantedShares = String(Math.max(2, Math.trunc((cpuMilli * 1024) / 1000)));
  if (isV1 && shares !== wantedShares) return `${path} has ${shares} shares, not ${wantedShares}`;
  const [quota, period] = isV1
    ? [cpuFiles.get("cpu.cfs_quota_us"), cpuFiles.get("cpu.cfs_period_us")]
    : (cpuFiles.get("cpu.max")?.split(" ") ?? []);
  if (limitMilli === null || Number(quota) === (Number(period) * limitMilli) / 1000) return null;
  return `${path} has ${quota} of ${period}, not ${limitMilli}m`;
}

const filesOf = (kernel: SimKernel, path: string, mount: string): ReadonlyMap<string, string> | undefined =>
  kernel.find(kernel.rules.version === 1 ? mount : "", posix.join("/", path))?.files;
const sameCpus = (one: string, other: string): boolean =>
  [...(parseList(one) ?? [])].join() === [...(parseList(other) ?? [])].join();
