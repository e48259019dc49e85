import { err } from "../../api/model/result.ts";
import type { ContainerConfig, SandboxConfig } from "../containerd/messages.ts";
import type { Answered } from "../containerd/port.ts";
import type { TextMap } from "../lifecycle/pod.ts";
import { OWNER, POD_UID, type RuntimePod } from "../lifecycle/runtime-pod.ts";
import type { Exec, PodRuntime } from "./ports.ts";

/** The sandboxes and containers of a pod that this daemon made; the others are somebody else's. */
export const ownPartOf = (seen: RuntimePod, owner: string): RuntimePod => ({
  ...seen,
  sandboxes: seen.sandboxes.filter(({ labels }) => isOwn(labels, owner, seen.uid)),
  containers: seen.containers.filter(({ labels }) => isOwn(labels, owner, seen.uid)),
});

const isOwn = (labels: TextMap, owner: string, uid: string): boolean =>
  labels[OWNER] === owner && labels[POD_UID] === uid;

/**
 * The runtime as the work on one pod may use it.
 * INVARIANT: only what carries this daemon's name and the pod's uid, or was made through here, is changed, stopped or
 * removed; anything else is refused without a call. What is made carries both.
 */
export class OwnedRuntime {
  readonly #runtime: PodRuntime;
  readonly #owner: string;
  readonly #uid: string;
  readonly #sandboxes: Set<string>;
  readonly #containers: Set<string>;

  constructor(runtime: PodRuntime, owner: string, uid: string, seen: RuntimePod | null) {
    this.#runtime = runtime;
    this.#owner = owner;
    this.#uid = uid;
    const own = seen === null || seen.uid !== uid ? null : ownPartOf(seen, owner);
    this.#sandboxes = new Set(own?.sandboxes.map(({ id }) => id));
    this.#containers = new Set(own?.containers.map(({ id }) => id));
  }

  async runSandbox(config: SandboxConfig): Answered<string> {
    if (!isOwn(config.labels ?? {}, this.#owner, this.#uid) || config.metadata.uid !== this.#uid)
      return refused("RunPodSandbox", "its labels do not name this daemon and the pod");
    return this.#made(this.#sandboxes, await this.#runtime.runSandbox(config));
  }
  async createContainer(sandboxId: string, config: ContainerConfig, sandbox: SandboxConfig): Answered<string> {
    if (!this.#sandboxes.has(sandboxId)) return refused("CreateContainer", notOwn("sandbox", sandboxId));
    if (!isOwn(config.labels ?? {}, this.#owner, this.#uid))
      return refused("CreateContainer", "its labels do not name this daemon and the pod");
    return this.#made(this.#containers, await this.#runtime.createContainer(sandboxId, config, sandbox));
  }
  async startContainer(id: string): Answered<null> {
    return this.#ofContainer("StartContainer", id, () => this.#runtime.startContainer(id));
  }
  async exec(id: string, command: readonly string[], timeoutSeconds: number): Answered<Exec> {
    return this.#ofContainer("ExecSync", id, () => this.#runtime.exec(id, command, timeoutSeconds));
  }
  async stopContainer(id: string, graceSeconds: number): Answered<null> {
    return this.#ofContainer("StopContainer", id, () => this.#runtime.stopContainer(id, graceSeconds));
  }
  async removeContainer(id: string): Answered<null> {
    return this.#ofContainer("RemoveContainer", id, () => this.#runtime.removeContainer(id));
  }
  async stopSandbox(id: string): Answered<null> {
    return this.#ofSandbox("StopPodSandbox", id, () => this.#runtime.stopSandbox(id));
  }
  async removeSandbox(id: string): Answered<null> {
    return this.#ofSandbox("RemovePodSandbox", id, () => this.#runtime.removeSandbox(id));
  }

  #made(ids: Set<string>, made: Awaited<Answered<string>>): Awaited<Answered<string>> {
    if (made.ok) ids.add(made.value);
    return made;
  }
  async #ofContainer<T>(call: string, id: string, work: () => Answered<T>): Answered<T> {
    return this.#containers.has(id) ? work() : refused(call, notOwn("container", id));
  }
  async #ofSandbox<T>(call: string, id: string, work: () => Answered<T>): Answered<T> {
    return this.#sandboxes.has(id) ? work() : refused(call, notOwn("sandbox", id));
  }
}

const notOwn = (what: string, id: string): string => `${what} \`${id}\` is not this daemon's own, of this pod`;
const refused = (call: string, message: string) => err({ call, code: "NOT_OWN", message });
