import type {
  Exec,
  LocalImage,
  PodRuntime,
  RuntimeFault,
  RuntimePods,
  RuntimeResult,
} from "../../actuator/containerd/cri.ts";
import type { ContainerConfig, LinuxContainerResources, SandboxConfig } from "../../actuator/containerd/messages.ts";
import { err, ok } from "../../api/base/result.ts";
import { FakeCalls } from "./fake-pod-calls.ts";
import {
  containerName,
  type FakePodContainer,
  type FakePodImage,
  type FakePodSandbox,
  type Program,
  type Pullable,
  podsOf,
  SERVES,
  sandboxName,
} from "./fake-pod-parts.ts";

/**
 * A pod runtime in memory on a simulated clock. It carries out calls as containerd does. `wrongs` collects calls that a
 * daemon must not make: a second instance of a running container, a second sandbox of a pod, the removal of a running
 * one.
 */
export class FakePodRuntime extends FakeCalls implements PodRuntime {
  readonly sandboxes = new Map<string, FakePodSandbox>();
  readonly containers = new Map<string, FakePodContainer>();
  /** The images by the names by which callers request them. */
  readonly images = new Map<string, FakePodImage>();
  readonly registry = new Map<string, Pullable>();
  readonly updates: { readonly id: string; readonly resources: LinuxContainerResources }[] = [];
  readonly wrongs: string[] = [];
  /** The program of a container. */
  programOf: (container: ContainerConfig, pod: SandboxConfig) => Program = () => SERVES;
  #made = 0;

  /** Ends a container, either by itself or through the kernel. */
  exit(id: string, exitCode: number, reason = exitCode === 0 ? "Completed" : "Error"): void {
    const one = this.containers.get(id);
    if (one?.state !== "running") return;
    Object.assign(one, { state: "exited", exitCode, reason, finishedAtMs: this.time.nowMs() });
    for (const run of one.onExit.splice(0)) run();
  }
  /** The running containers of this name. */
  running(name: string): readonly FakePodContainer[] {
    return [...this.containers.values()].filter((c) => c.state === "running" && c.config.metadata.name === name);
  }

  pods(): RuntimeResult<RuntimePods> {
    return this.call("ListContainers", "", () => ok(podsOf(this.sandboxes.values(), this.containers.values())));
  }
  runSandbox(config: SandboxConfig): RuntimeResult<string> {
    const name = sandboxName(config);
    return this.call("RunPodSandbox", name, () => {
      const same = [...this.sandboxes.values()].find((one) => sandboxName(one.config) === name);
      if (same !== undefined) return err(reserved("RunPodSandbox", "sandbox", name, same.id));
      const { uid } = config.metadata;
      if ([...this.sandboxes.values()].some((one) => one.isReady && one.config.metadata.uid === uid))
        this.wrongs.push(`a second sandbox of ${uid}`);
      const id = this.#id("sandbox");
      const isHost = config.linux?.securityContext?.namespaceOptions.network === "NODE";
      const ip = isHost ? null : `10.0.0.${this.#made}`;
      this.sandboxes.set(id, { id, config, createdAtMs: this.time.nowMs(), ip, isReady: true });
      return ok(id);
    });
  }
  stopSandbox(id: string): RuntimeResult<null> {
    return this.call("StopPodSandbox", id, () => {
      for (const one of this.#inside(id)) this.exit(one.id, 137);
      const sandbox = this.sandboxes.get(id);
      if (sandbox !== undefined) sandbox.isReady = false;
      return ok(null);
    });
  }
  removeSandbox(id: string): RuntimeResult<null> {
    return this.call("RemovePodSandbox", id, () => {
      for (const one of this.#inside(id)) {
        if (one.state === "running") this.wrongs.push(`sandbox ${id} was removed under ${one.id}`);
        this.exit(one.id, 137);
        this.containers.delete(one.id);
      }
      this.sandboxes.delete(id);
      return ok(null);
    });
  }
  createContainer(sandboxId: string, config: ContainerConfig, sandbox: SandboxConfig): RuntimeResult<string> {
    const name = containerName(config, sandbox);
    return this.call("CreateContainer", name, () => {
      const fault = (code: string, message: string) => err({ call: "CreateContainer", code, message });
      const inside = this.sandboxes.get(sandboxId);
      if (inside === undefined) return fault("NOT_FOUND", `failed to find sandbox id "${sandboxId}": not found`);
      if (!inside.isReady) return fault("UNKNOWN", `sandbox container "${sandboxId}" is not running`);
      const same = [...this.containers.values()].find((one) => containerName(one.config, one.sandbox) === name);
      if (same !== undefined) return err(reserved("CreateContainer", "container", name, same.id));
      const { image } = config.image;
      if (!this.images.has(image) && ![...this.images.values()].some((one) => one.id === image))
        return fault("NOT_FOUND", `image "${image}": not found`);
      const id = this.#id("container");
      const made = { id, sandboxId, config, sandbox, createdAtMs: this.time.nowMs(), state: "created" as const };
      this.containers.set(id, { ...made, startedAtMs: null, finishedAtMs: null, exitCode: 0, reason: "", onExit: [] });
      return ok(id);
    });
  }
  startContainer(id: string): RuntimeResult<null> {
    return this.call("StartContainer", id, () => {
      const one = this.containers.get(id);
      const fault = (message: string) => err({ call: "StartContainer", code: "UNKNOWN", message });
      if (one === undefined) return fault(`container "${id}" not found`);
      if (one.state !== "created") return fault(`container "${id}" is in ${one.state} state`);
      const program = this.programOf(one.config, one.sandbox);
      const startedAtMs = this.time.nowMs();
      if (program.startFault !== undefined) {
        Object.assign(one, {
          state: "exited",
          exitCode: 128,
          reason: "StartError",
          startedAtMs,
          finishedAtMs: startedAtMs,
        });
        return fault(`failed to start container "${id}": ${program.startFault}`);
      }
      const { uid } = one.sandbox.metadata;
      if (this.running(one.config.metadata.name).some((other) => other.sandbox.metadata.uid === uid))
        this.wrongs.push(`a second ${one.config.metadata.name} of ${uid}`);
      Object.assign(one, { state: "running", startedAtMs });
      if (program.runsMs !== null)
        one.onExit.push(this.time.after(program.runsMs, () => this.exit(id, program.exitCode)));
      return ok(null);
    });
  }
  stopContainer(id: string, graceSeconds: number): RuntimeResult<null> {
    return this.call("StopContainer", id, async () => {
      const one = this.containers.get(id);
      if (one?.state !== "running") return ok(null);
      const { stopsMs, exitCode } = this.programOf(one.config, one.sandbox);
      const graceMs = graceSeconds * 1000;
      const listens = stopsMs !== null && stopsMs <= graceMs;
      const exited = new Promise<void>((resolve) => one.onExit.push(resolve));
      const cancel = this.time.after(listens ? stopsMs : graceMs, () => this.exit(id, listens ? exitCode : 137));
      await exited;
      cancel();
      return ok(null);
    });
  }
  removeContainer(id: string): RuntimeResult<null> {
    return this.call("RemoveContainer", id, () => {
      if (this.containers.get(id)?.state === "running") this.wrongs.push(`${id} was removed while it ran`);
      this.exit(id, 137);
      this.containers.delete(id);
      return ok(null);
    });
  }
  updateContainer(id: string, resources: LinuxContainerResources): RuntimeResult<null> {
    return this.call("UpdateContainerResources", id, () => {
      if (!this.containers.has(id))
        return err({ call: "UpdateContainerResources", code: "NOT_FOUND", message: `container "${id}": not found` });
      this.updates.push({ id, resources });
      return ok(null);
    });
  }
  reopenLog(id: string): RuntimeResult<null> {
    return this.call("ReopenContainerLog", id, () => ok(null));
  }
  exec(id: string, command: readonly string[], timeoutSeconds: number): RuntimeResult<Exec> {
    return this.call("ExecSync", id, async () => {
      const one = this.containers.get(id);
      if (one?.state !== "running")
        return err({ call: "ExecSync", code: "UNKNOWN", message: "container is not running" });
      const { takesMs = 0, ...ran } = this.programOf(one.config, one.sandbox).exec?.(command) ?? {};
      const isLate = timeoutSeconds > 0 && takesMs > timeoutSeconds * 1000;
      await this.time.sleep(isLate ? timeoutSeconds * 1000 : takesMs);
      if (isLate) return err({ call: "ExecSync", code: "DEADLINE_EXCEEDED", message: "timeout exceeded" });
      return ok({ exitCode: 0, stdout: "", stderr: "", ...ran });
    });
  }
  image(name: string): RuntimeResult<LocalImage | null> {
    return this.call("ImageStatus", name, () => {
      const found = this.images.get(name);
      return ok(found === undefined ? null : { user: null, ...found });
    });
  }
  pull(name: string): RuntimeResult<string> {
    return this.call("PullImage", name, async () => {
      const { takesMs = 0, fault, ...image } = this.registry.get(name) ?? { id: "", fault: notFound(name) };
      if (takesMs > 0) await this.time.sleep(takesMs);
      if (fault !== undefined) return err(fault);
      this.images.set(name, image);
      return ok(image.id);
    });
  }
  close(): void {}

  #inside(sandboxId: string): readonly FakePodContainer[] {
    return [...this.containers.values()].filter((one) => one.sandboxId === sandboxId);
  }
  #id(what: string): string {
    this.#made++;
    return `${what}-${this.#made}`;
  }
}

const reserved = (call: string, what: string, name: string, id: string): RuntimeFault => ({
  call,
  code: "UNKNOWN",
  message: `failed to reserve ${what} name "${name}": name "${name}" is reserved for "${id}"`,
});
const notFound = (name: string): RuntimeFault => ({
  call: "PullImage",
  code: "NOT_FOUND",
  message: `failed to pull and unpack image "${name}": failed to resolve reference "${name}": ${name}: not found`,
});
