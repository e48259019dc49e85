import { posix } from "node:path";
import type { RuntimeFault, RuntimeResult } from "../../actuator/containerd/cri.ts";
import { OWNER } from "../../actuator/containerd/cri.ts";
import type { LinuxContainerResources } from "../../actuator/containerd/messages.ts";
import { err, type Result } from "../../api/base/result.ts";
import type { SimKernel } from "../actuator/cgroups/sim-kernel.ts";
import type { FakePodContainer, FakePodSandbox } from "./fake-pod-parts.ts";
import { FakePodRuntime } from "./fake-pod-runtime.ts";
import type { PodTime } from "./pod-time.ts";
import { currentLife, never } from "./pods-life.ts";

const READS = new Set(["ListContainers", "ImageStatus"]);
const FOREIGN_MAY = new Set(["RunPodSandbox", "CreateContainer", "PullImage", ...READS]);
const STOPS = new Set(["StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox"]);

/**
 * The fake runtime over a simulated kernel: each running container has a cgroup with the requested values, and a
 * process in it.
 */
export class PodsRuntime extends FakePodRuntime {
  readonly owner: string;
  readonly kernel: SimKernel;
  /** Container id -> the CPUs in the last call to the runtime. */
  readonly reported = new Map<string, string | undefined>();
  /** Containers for which the last call about their CPUs has not succeeded. */
  readonly unreported = new Set<string>();
  /** The number of calls that change something. */
  writes = 0;
  onSandbox: (sandbox: FakePodSandbox) => void = () => {};
  onStart: (container: FakePodContainer) => void = () => {};
  /** Called when a daemon is about to stop one of its running containers. */
  onStop: (container: FakePodContainer) => void = () => {};
  #process = 1000;

  constructor(time: PodTime, kernel: SimKernel, owner: string) {
    super(time);
    this.kernel = kernel;
    this.owner = owner;
  }

  isOwn(uid: string, labels: Readonly<Record<string, string>> | undefined): boolean {
    return labels?.[OWNER] === this.owner && !uid.startsWith("foreign");
  }
  get ownContainers(): readonly FakePodContainer[] {
    return [...this.containers.values()].filter((c) => this.isOwn(c.sandbox.metadata.uid, c.config.labels));
  }

  protected override async call<T>(
    call: string,
    id: string,
    effect: () => Result<T, RuntimeFault> | Promise<Result<T, RuntimeFault>>,
  ): RuntimeResult<T> {
    const life = currentLife();
    const next = life?.next("runtime") ?? { does: true, lives: true };
    if (!next.does) return never();
    if (!READS.has(call)) this.writes++;
    if (life !== undefined && !FOREIGN_MAY.has(call)) this.#checkOwn(call, id);
    if (life !== undefined && STOPS.has(call)) this.#reportStops(id);
    const done = super.call(call, id, () => this.#inKernel(call, id, effect));
    if (call === "UpdateContainerResources") this.#recordReported(id, done);
    return next.lives ? done : never();
  }

  override exit(id: string, exitCode: number, reason?: string): void {
    const one = this.containers.get(id);
    const ran = one?.state === "running";
    super.exit(id, exitCode, reason);
    if (ran) this.#removeCgroup(cgroupOf(one));
  }

  /** Removes the cgroup of a dead sandbox, as a runtime does. */
  dropSandboxCgroup(sandbox: FakePodSandbox): void {
    this.#removeCgroup(posix.join(parentOf(sandbox), sandbox.id));
  }

  /** Boots the machine: nothing runs. `keeps`: the runtime still has its lists, as after a power cut. */
  boot(keeps: boolean): void {
    for (const one of [...this.containers.values()]) this.exit(one.id, 255, "Unknown");
    for (const one of this.sandboxes.values()) one.isReady = false;
    if (!keeps) {
      this.containers.clear();
      this.sandboxes.clear();
    }
    this.isDown = false;
  }

  async #inKernel<T>(
    call: string,
    id: string,
    effect: () => Result<T, RuntimeFault> | Promise<Result<T, RuntimeFault>>,
  ): Promise<Result<T, RuntimeFault>> {
    const one = this.containers.get(id);
    if (call === "StartContainer" && one?.state === "created") {
      const fault = this.#makeCgroup(cgroupOf(one), one.config.linux?.resources ?? {});
      if (fault !== null) return err({ call, code: "UNKNOWN", message: fault });
      this.reported.set(id, one.config.linux?.resources?.cpusetCpus);
    }
    const done = await effect();
    if (call === "StartContainer" && one !== undefined) {
      if (one.state === "running") this.onStart(one);
      else this.#removeCgroup(cgroupOf(one));
    }
    const sandbox = this.sandboxes.get(call === "RunPodSandbox" && done.ok ? String(done.value) : id);
    if (call === "RunPodSandbox" && done.ok && sandbox !== undefined) {
      this.#makeCgroup(posix.join(parentOf(sandbox), sandbox.id), {});
      this.onSandbox(sandbox);
    }
    if (call === "StopPodSandbox" && sandbox !== undefined)
      this.#removeCgroup(posix.join(parentOf(sandbox), sandbox.id));
    const update = this.updates.findLast((one) => one.id === id);
    if (call === "UpdateContainerResources" && done.ok && one !== undefined && update !== undefined) {
      this.reported.set(id, update.resources.cpusetCpus);
      if (one.state === "running") this.#fill(cgroupOf(one), update.resources);
    }
    return done;
  }

  #reportStops(id: string): void {
    for (const one of this.ownContainers)
      if (one.state === "running" && (one.id === id || one.sandboxId === id)) this.onStop(one);
  }

  #recordReported(id: string, done: RuntimeResult<unknown>): void {
    this.unreported.add(id);
    void done.then(({ ok }) => ok && this.unreported.delete(id));
  }

  #checkOwn(call: string, id: string): void {
    const of = this.containers.get(id)?.sandbox ?? this.sandboxes.get(id)?.config;
    const labels = this.containers.get(id)?.config.labels ?? this.sandboxes.get(id)?.config.labels;
    if (of !== undefined && !this.isOwn(of.metadata.uid, labels))
      this.wrongs.push(`${call} of ${id}, which is not ours`);
  }

  /** Creates a cgroup as runc does; a string: why the kernel refuses. */
  #makeCgroup(path: string, resources: LinuxContainerResources): string | null {
    this.#process++;
    for (const mount of this.kernel.tops.keys()) {
      if (this.kernel.find(mount, posix.dirname(path)) === undefined) return `no cgroup ${posix.dirname(path)}`;
      this.kernel.mkdir(mount, path);
      this.kernel.find(mount, path)?.processes.add(this.#process);
    }
    this.#enableControllers(path);
    const fault = this.#fill(path, resources);
    if (fault !== null) this.#removeCgroup(path);
    return fault;
  }

  /** Enables the controllers in all parent cgroups, as runc does on v2. */
  #enableControllers(path: string): void {
    if (this.kernel.rules.version === 1) return;
    const parts = path.split("/").slice(1, -1);
    for (const depth of parts.keys()) {
      const above = `/${parts.slice(0, depth + 1).join("/")}`;
      const has = this.kernel.find("", above)?.files.get("cgroup.controllers")?.split(" ") ?? [];
      this.kernel.write("", above, "cgroup.subtree_control", has.map((name) => `+${name}`).join(" "));
    }
  }

  #fill(path: string, resources: LinuxContainerResources): string | null {
    for (const [mount, file, value] of filesOf(this.kernel, path, resources)) {
      const errno = this.kernel.write(mount, path, file, value);
      if (errno !== null) return `write ${path}/${file} \`${value}\`: ${errno}`;
    }
    return null;
  }

  #removeCgroup(path: string): void {
    for (const mount of this.kernel.tops.keys()) {
      this.kernel.find(mount, path)?.processes.clear();
      this.kernel.rmdir(mount, path);
    }
  }
}

const parentOf = (sandbox: Pick<FakePodSandbox, "config">): string => sandbox.config.linux?.cgroupParent ?? "/";
export const cgroupOf = (one: FakePodContainer): string => posix.join(parentOf({ config: one.sandbox }), one.id);

function filesOf(
  kernel: SimKernel,
  path: string,
  r: LinuxContainerResources,
): readonly (readonly [mount: string, file: string, value: string])[] {
  const files: [string, string, string][] = [];
  const put = (mount: string, file: string, value: number | string | undefined): void => {
    if (value !== undefined && value !== "") files.push([mount, file, String(value)]);
  };
  if (kernel.rules.version === 1) {
    const above = kernel.find("cpuset", posix.dirname(path))?.files;
    put("cpuset", "cpuset.cpus", r.cpusetCpus ?? above?.get("cpuset.cpus"));
    put("cpuset", "cpuset.mems", r.cpusetMems ?? above?.get("cpuset.mems"));
    put("cpu", "cpu.shares", r.cpuShares);
    put("cpu", "cpu.cfs_period_us", r.cpuPeriod);
    put("cpu", "cpu.cfs_quota_us", r.cpuQuota);
    put("memory", "memory.limit_in_bytes", r.memoryLimitInBytes);
    put("memory", "memory.memsw.limit_in_bytes", r.memorySwapLimitInBytes);
    return files;
  }
  put("", "cpuset.cpus", r.cpusetCpus);
  put("", "cpuset.mems", r.cpusetMems);
  put("", "cpu.weight", r.cpuShares === undefined ? undefined : weightOf(r.cpuShares));
  if (r.cpuQuota !== undefined) put("", "cpu.max", `${r.cpuQuota < 0 ? "max" : r.cpuQuota} ${r.cpuPeriod ?? 100_000}`);
  put("", "memory.max", r.memoryLimitInBytes);
  for (const [file, value] of Object.entries(r.unified ?? {})) put("", file, value);
  return files;
}

/** The formula of runc 1.3.2 and later. */
function weightOf(shares: number): number {
  const l = Math.log2(shares);
  return Math.ceil(10 ** ((l * l + 125 * l) / 612 - 7 / 34));
}
