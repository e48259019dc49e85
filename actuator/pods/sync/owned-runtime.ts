import { err, ok } from "../../../api/base/result.ts";
import {
  type Exec,
  OWNER,
  POD_UID,
  type PodRuntime,
  type RuntimePod,
  type RuntimeResult,
} from "../../containerd/cri.ts";
import type { ContainerConfig, SandboxConfig } from "../../containerd/messages.ts";
import { FOREIGN_SANDBOX, foreignSandboxes, foreignSandboxReason } from "../../lifecycle/foreign-sandbox.ts";
import type { RunnablePod, TextMap } from "../../lifecycle/pod.ts";

/** The part of a runtime's pod that this daemon made; other sandboxes and containers belong to somebody else. */
export const ownPartOf = (runtimePod: RuntimePod, owner: string): RuntimePod => ({
  ...runtimePod,
  sandboxes: runtimePod.sandboxes.filter(({ labels }) => isOwn(labels, owner, runtimePod.uid)),
  containers: runtimePod.containers.filter(({ labels }) => isOwn(labels, owner, runtimePod.uid)),
});

const isOwn = (labels: TextMap, owner: string, uid: string): boolean =>
  labels[OWNER] === owner && labels[POD_UID] === uid;

/**
 * The runtime, restricted to one pod.
 * INVARIANT: only objects that carry this daemon's name and the pod's uid, or that were made through this object, are changed,
 * stopped or removed; anything else is refused without a call. New objects carry both labels. Nothing is started while the
 * pod runs in another program's sandbox, which is checked right before the call.
 */
export class OwnedRuntime {
  readonly #runtime: PodRuntime;
  readonly #owner: string;
  readonly #uid: string;
  readonly #pod: RunnablePod | null;
  readonly #sandboxes: Set<string>;
  readonly #containers: Set<string>;

  /** `pod`: the pod to start; null: the pod is only ended. */
  constructor(
    runtime: PodRuntime,
    owner: string,
    uid: string,
    runtimePod: RuntimePod | null,
    pod: RunnablePod | null = null,
  ) {
    this.#pod = pod;
    this.#runtime = runtime;
    this.#owner = owner;
    this.#uid = uid;
    const own = runtimePod === null || runtimePod.uid !== uid ? null : ownPartOf(runtimePod, owner);
    this.#sandboxes = new Set(own?.sandboxes.map(({ id }) => id));
    this.#containers = new Set(own?.containers.map(({ id }) => id));
  }

  async runSandbox(config: SandboxConfig): RuntimeResult<string> {
    if (!isOwn(config.labels ?? {}, this.#owner, this.#uid) || config.metadata.uid !== this.#uid)
      return refused("RunPodSandbox", "its labels do not name this daemon and the pod");
    const free = await this.#isFree("RunPodSandbox");
    return free.ok ? this.#made(this.#sandboxes, await this.#runtime.runSandbox(config)) : free;
  }
  async createContainer(sandboxId: string, config: ContainerConfig, sandbox: SandboxConfig): RuntimeResult<string> {
    if (!this.#sandboxes.has(sandboxId)) return refused("CreateContainer", notOwn("sandbox", sandboxId));
    if (!isOwn(config.labels ?? {}, this.#owner, this.#uid))
      return refused("CreateContainer", "its labels do not name this daemon and the pod");
    return this.#made(this.#containers, await this.#runtime.createContainer(sandboxId, config, sandbox));
  }
  async startContainer(id: string): RuntimeResult<null> {
    return this.#ofContainer("StartContainer", id, async () => {
      const free = await this.#isFree("StartContainer");
      return free.ok ? this.#runtime.startContainer(id) : free;
    });
  }
  async exec(id: string, command: readonly string[], timeoutSeconds: number): RuntimeResult<Exec> {
    return this.#ofContainer("ExecSync", id, () => this.#runtime.exec(id, command, timeoutSeconds));
  }
  async stopContainer(id: string, graceSeconds: number): RuntimeResult<null> {
    return this.#ofContainer("StopContainer", id, () => this.#runtime.stopContainer(id, graceSeconds));
  }
  async removeContainer(id: string): RuntimeResult<null> {
    return this.#ofContainer("RemoveContainer", id, () => this.#runtime.removeContainer(id));
  }
  async stopSandbox(id: string): RuntimeResult<null> {
    return this.#ofSandbox("StopPodSandbox", id, () => this.#runtime.stopSandbox(id));
  }
  async removeSandbox(id: string): RuntimeResult<null> {
    return this.#ofSandbox("RemovePodSandbox", id, () => this.#runtime.removeSandbox(id));
  }

  /** Checks that the pod runs nowhere else: another user of the runtime may have started it since the last look. */
  async #isFree(call: string): RuntimeResult<null> {
    if (this.#pod === null) return ok(null);
    const held = await this.#runtime.pods();
    if (!held.ok) return held;
    const why = foreignSandboxReason(this.#pod, foreignSandboxes(held.value, this.#owner));
    return why === null ? ok(null) : err({ call, code: FOREIGN_SANDBOX, message: why });
  }
  #made(ids: Set<string>, made: Awaited<RuntimeResult<string>>): Awaited<RuntimeResult<string>> {
    if (made.ok) ids.add(made.value);
    return made;
  }
  async #ofContainer<T>(call: string, id: string, work: () => RuntimeResult<T>): RuntimeResult<T> {
    return this.#containers.has(id) ? work() : refused(call, notOwn("container", id));
  }
  async #ofSandbox<T>(call: string, id: string, work: () => RuntimeResult<T>): RuntimeResult<T> {
    return this.#sandboxes.has(id) ? work() : refused(call, notOwn("sandbox", id));
  }
}

const notOwn = (what: string, id: string): string => `${what} \`${id}\` is not this daemon's own, of this pod`;
const refused = (call: string, message: string) => err({ call, code: "NOT_OWN", message });
