import { statSync } from "node:fs";
import type { PodIdentity } from "../../../api/documents/problem.ts";
import {
  OWNER,
  type PodRuntime,
  type RuntimeContainer,
  type RuntimePod,
  type RuntimePods,
  type RuntimeResult,
} from "../../containerd/cri.ts";
import { socketPathOf } from "../../core/addresses.ts";

/**
 * A stop by another process. `sandbox`: the sandbox was stopped or removed, with its containers; `removed`: a running
 * container disappeared; `signal`: a container ended by SIGTERM or SIGKILL, which may also come from the kernel, or be
 * its own exit code.
 */
export interface ForeignStop {
  readonly pod: PodIdentity;
  readonly how: "sandbox" | "removed" | "signal";
  readonly containers: readonly { readonly name: string; readonly exitCode: number | null }[];
}
interface ForeignSandboxRef {
  readonly pod: PodIdentity;
  readonly sandboxId: string;
  readonly name: string;
}
interface EndedSandbox extends ForeignSandboxRef {
  readonly seenAtMs: number;
}

/** Exit codes of signals: 128 plus the number, as shells and runtimes use them. */
const SIGNALS: ReadonlyMap<number, string> = new Map([
  [137, "SIGKILL"],
  [143, "SIGTERM"],
]);
export const signalOf = (exitCode: number | null): string | undefined =>
  exitCode === null ? undefined : SIGNALS.get(exitCode);
/**
 * The maximum time between the stop of a pod's containers and that of its sandbox: containers are stopped first,
 * within their grace period. kubelet 1.36: killPodWithSyncResult.
 */
const BEFORE_SANDBOX_MS = 60_000;

/**
 * A runtime that calls `onStop` for objects of this daemon that another process stopped: they ran, or were created,
 * before a list was requested, and do not run in it, although this daemon did not stop them. The first list is not
 * compared, nor one after the runtime did not answer or restarted (`identity`), since the end of a runtime stops
 * objects too.
 */
export function watchedRuntime(
  runtime: PodRuntime,
  owner: string,
  onStop: (stop: ForeignStop) => void,
  identity: () => string = () => "",
): PodRuntime {
  const detector = new ForeignStopDetector(owner, onStop);
  let before = identity();
  return {
    ...runtime,
    pods: async () => {
      const compare = detector.begin();
      const listed = await runtime.pods();
      const now = identity();
      compare(listed.ok ? listed.value : null, now === before);
      before = now;
      return listed;
    },
    runSandbox: async (config) => {
      const made = await runtime.runSandbox(config);
      if (made.ok) detector.sandboxes.set(made.value, identityOf(config.metadata));
      return made;
    },
    createContainer: async (sandboxId, config, sandbox) => {
      const made = await runtime.createContainer(sandboxId, config, sandbox);
      if (made.ok)
        detector.created.set(made.value, { pod: identityOf(sandbox.metadata), sandboxId, name: config.metadata.name });
      return made;
    },
    startContainer: async (id) => {
      const started = await runtime.startContainer(id);
      const created = detector.created.get(id);
      if (started.ok && created !== undefined) detector.running.set(id, created);
      detector.created.delete(id);
      return started;
    },
    stopSandbox: (id) => detector.asked(id, () => runtime.stopSandbox(id)),
    removeSandbox: (id) => detector.asked(id, () => runtime.removeSandbox(id)),
    stopContainer: (id, graceSeconds) => detector.asked(id, () => runtime.stopContainer(id, graceSeconds)),
    removeContainer: (id) => detector.asked(id, () => runtime.removeContainer(id)),
  };
}

/** Identifies the process that owns a unix socket: a restarted runtime makes a new socket. Empty: there is none. */
export function socketIdentity(endpoint: string): string {
  const path = socketPathOf(endpoint);
  try {
    const { ino, ctimeMs } = statSync(path.ok ? path.value : "");
    return `${ino} ${ctimeMs}`;
  } catch {
    return "";
  }
}

class ForeignStopDetector {
  /** Ready sandboxes by id. */
  sandboxes = new Map<string, PodIdentity>();
  readonly created = new Map<string, ForeignSandboxRef>();
  running = new Map<string, ForeignSandboxRef>();
  /** Containers known to have ended by themselves. */
  #ended = new Map<string, EndedSandbox>();
  readonly #asked = new Set<string>();
  readonly #owner: string;
  readonly #onStop: (stop: ForeignStop) => void;
  #hasBaseline = false;

  constructor(owner: string, onStop: (stop: ForeignStop) => void) {
    this.#owner = owner;
    this.#onStop = onStop;
  }

  async asked<T>(id: string, work: () => RuntimeResult<T>): RuntimeResult<T> {
    this.#asked.add(id);
    return work();
  }

  /** Called before the runtime is asked, since objects created while it answers may be missing in its answer. */
  begin(): (listed: RuntimePods | null, isSame: boolean) => void {
    const sandboxes = new Map(this.sandboxes);
    const running = new Map(this.running);
    return (listed, isSame) => {
      const own = listed === null ? [] : [...listed.values()].map((pod) => this.#ownOf(pod));
      if (listed !== null && isSame && this.#hasBaseline) this.#compare(own, sandboxes, running);
      this.#hasBaseline = listed !== null;
      if (listed === null) return;
      this.#remember(own, sandboxes, running);
    };
  }

  #compare(
    own: readonly RuntimePod[],
    sandboxes: ReadonlyMap<string, PodIdentity>,
    running: ReadonlyMap<string, ForeignSandboxRef>,
  ): void {
    const ready = new Set(own.flatMap((pod) => pod.sandboxes.filter(({ isReady }) => isReady).map(({ id }) => id)));
    const containers = new Map(own.flatMap((pod) => pod.containers.map((one) => [one.id, one] as const)));
    const isForeign = (id: string, sandboxId: string): boolean => !this.#asked.has(id) && !this.#asked.has(sandboxId);
    for (const [id, pod] of sandboxes) {
      if (ready.has(id) || this.#asked.has(id)) continue;
      const inIt = [...running, ...this.#ended].filter(
        ([one, { sandboxId }]) => sandboxId === id && isForeign(one, id),
      );
      for (const [one] of inIt) this.#ended.delete(one);
      // the runtime itself lost these containers
      if (inIt.some(([one]) => containers.get(one)?.reason === "Unknown")) continue;
      const ends = inIt.map(([one, { name }]) => ({ name, exitCode: containers.get(one)?.exitCode ?? null }));
      this.#onStop({ pod, how: "sandbox", containers: ends });
    }
    for (const [id, known] of running) {
      if (!ready.has(known.sandboxId) || !isForeign(id, known.sandboxId)) continue;
      this.#compareContainer(id, known, containers.get(id));
    }
  }

  #compareContainer(id: string, known: ForeignSandboxRef, now: RuntimeContainer | undefined): void {
    const { pod, name } = known;
    if (now === undefined) this.#onStop({ pod, how: "removed", containers: [{ name, exitCode: null }] });
    if (now?.state !== "exited") return;
    const { exitCode, reason } = now;
    if (signalOf(exitCode) !== undefined && reason !== "OOMKilled")
      this.#onStop({ pod, how: "signal", containers: [{ name, exitCode }] });
    else this.#ended.set(id, { ...known, seenAtMs: performance.now() });
  }

  #remember(
    own: readonly RuntimePod[],
    sandboxes: ReadonlyMap<string, unknown>,
    running: ReadonlyMap<string, unknown>,
  ): void {
    const made = [...this.sandboxes].filter(([id]) => !sandboxes.has(id));
    const started = [...this.running].filter(([id]) => !running.has(id));
    const ids = new Set<string>();
    this.sandboxes = new Map(made);
    this.running = new Map(started);
    for (const pod of own) {
      for (const { id, isReady } of pod.sandboxes) {
        ids.add(id);
        if (isReady) this.sandboxes.set(id, identityOf(pod));
      }
      for (const { id, state, sandboxId, name } of pod.containers) {
        ids.add(id);
        if (state === "running") this.running.set(id, { pod: identityOf(pod), sandboxId, name });
      }
    }
    const oldest = performance.now() - BEFORE_SANDBOX_MS;
    for (const [id, { seenAtMs }] of this.#ended) if (seenAtMs < oldest) this.#ended.delete(id);
    for (const id of this.#asked)
      if (![ids, this.sandboxes, this.running].some((known) => known.has(id))) this.#asked.delete(id);
  }

  #ownOf(pod: RuntimePod): RuntimePod {
    const isOwn = ({ labels }: { readonly labels: Readonly<Record<string, string>> }) => labels[OWNER] === this.#owner;
    return { ...pod, sandboxes: pod.sandboxes.filter(isOwn), containers: pod.containers.filter(isOwn) };
  }
}

const identityOf = ({ namespace, name, uid }: PodIdentity): PodIdentity => ({ namespace, name, uid });
