import type {
  ListedContainer,
  ListedImage,
  ListedSandbox,
  Runtime,
  RuntimeFault,
  RuntimeLists,
  RuntimeResult,
} from "../../actuator/containerd/cri.ts";

export interface FakeImage {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests?: readonly string[];
  readonly bytes: number;
  pinned: boolean;
}
export interface FakeContainer {
  readonly id: string;
  readonly sandbox: string;
  readonly name: string;
  readonly attempt: number;
  readonly image: string;
  state: "CONTAINER_CREATED" | "CONTAINER_RUNNING" | "CONTAINER_EXITED" | "CONTAINER_UNKNOWN";
  readonly createdAtMs: number;
  readonly logPath?: string;
}
export interface FakeSandbox {
  readonly id: string;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly attempt: number;
  state: "SANDBOX_READY" | "SANDBOX_NOTREADY";
  readonly createdAtMs: number;
}
/** A call before (`before`) or after (`after`) the runtime carries it out. */
export interface Call {
  readonly call: string;
  readonly id: string;
  readonly phase: "before" | "after";
}
export interface Performed {
  readonly what: "image" | "container" | "sandbox";
  readonly id: string;
  /** The response to the caller said otherwise. */
  unreported: boolean;
}

const nanos = (ms: number): string => `${BigInt(ms) * 1_000_000n}`;

/**
 * A runtime in memory that is as permissive as containerd: it removes images that are pinned or in use, and running
 * containers. `wrongs` collects the calls that a daemon must not make.
 */
export class FakeRuntime implements Runtime {
  readonly images = new Map<string, FakeImage>();
  readonly containers = new Map<string, FakeContainer>();
  readonly sandboxes = new Map<string, FakeSandbox>();
  readonly performed: Performed[] = [];
  readonly wrongs: string[] = [];
  capacityBytes = 1000;
  /** Bytes that belong to no image or container. */
  otherBytes = 0;
  sandboxImage: string | undefined;
  lists = 0;
  /** Called at each call. A returned fault becomes the response; an exception stands for the death of the daemon. */
  on: (call: Call) => RuntimeFault | undefined = () => undefined;

  get availableBytes(): number {
    const images = [...this.images.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    return Math.max(0, this.capacityBytes - images - this.otherBytes);
  }

  list(): RuntimeResult<RuntimeLists> {
    this.lists++;
    return this.#call("List", "", () => ({
      images: [...this.images.values()].map(({ id, tags, digests = [], bytes, pinned }) => ({
        id,
        repoTags: tags,
        repoDigests: digests,
        size: String(bytes),
        pinned,
      })),
      containers: [...this.containers.values()].map((one) => this.#listed(one)),
      sandboxes: [...this.sandboxes.values()].map(({ id, pod, attempt, state, createdAtMs }) => ({
        id,
        metadata: { ...pod, attempt },
        state,
        createdAt: nanos(createdAtMs),
      })),
      imageFilesystems: { imageFilesystems: [{ fsId: { mountpoint: "/images" } }], containerFilesystems: [] },
      ...(this.sandboxImage === undefined ? {} : { sandboxImage: this.sandboxImage }),
    }));
  }
  imageNow(id: string): RuntimeResult<ListedImage | null> {
    return this.#call("ImageStatus", id, () => {
      const image = this.images.get(id);
      if (image === undefined) return null;
      const names = [...image.tags, ...(image.digests ?? [])];
      return { id: image.id, names, pinned: image.pinned, sizeBytes: image.bytes };
    });
  }
  containerNow(id: string): RuntimeResult<ListedContainer | null> {
    return this.#call("ContainerStatus", id, () => {
      const one = this.containers.get(id);
      if (one === undefined) return null;
      const { state, image, sandbox, createdAtMs, logPath = null } = one;
      const imageId = image;
      return { id, state, createdAt: nanos(createdAtMs), imageId, imageRef: image, sandboxId: sandbox, logPath };
    });
  }
  sandboxNow(id: string): RuntimeResult<ListedSandbox | null> {
    return this.#call("PodSandboxStatus", id, () => {
      const one = this.sandboxes.get(id);
      return one === undefined ? null : { id, state: one.state, createdAt: nanos(one.createdAtMs) };
    });
  }
  imagesInUse(): RuntimeResult<ReadonlyMap<string, readonly string[]>> {
    return this.#call(
      "ListContainers",
      "",
      () => new Map([...this.containers].map(([id, { image }]) => [id, [image]])),
    );
  }
  removeImage(id: string): RuntimeResult<null> {
    return this.#change("RemoveImage", "image", id, () => {
      const image = this.images.get(id);
      if (image?.pinned === true) this.wrongs.push(`image ${id} is pinned`);
      const user = [...this.containers.values()].find((one) => one.image === id);
      if (user !== undefined) this.wrongs.push(`image ${id} is used by ${user.id}`);
      return this.images.delete(id);
    });
  }
  stopContainer(id: string): RuntimeResult<null> {
    return this.#change("StopContainer", null, id, () => {
      const one = this.containers.get(id);
      if (one?.state === "CONTAINER_RUNNING") this.wrongs.push(`container ${id} ran and was stopped`);
      if (one !== undefined) one.state = "CONTAINER_EXITED";
      return false;
    });
  }
  removeContainer(id: string): RuntimeResult<null> {
    return this.#change("RemoveContainer", "container", id, () => {
      const state = this.containers.get(id)?.state;
      if (state === "CONTAINER_RUNNING" || state === "CONTAINER_UNKNOWN") this.wrongs.push(`container ${id}: ${state}`);
      return this.containers.delete(id);
    });
  }
  stopSandbox(id: string): RuntimeResult<null> {
    return this.#change("StopPodSandbox", null, id, () => false);
  }
  removeSandbox(id: string): RuntimeResult<null> {
    return this.#change("RemovePodSandbox", "sandbox", id, () => {
      if (this.sandboxes.get(id)?.state === "SANDBOX_READY") this.wrongs.push(`sandbox ${id} is ready`);
      const inside = [...this.containers.values()].find((one) => one.sandbox === id);
      if (inside !== undefined) this.wrongs.push(`sandbox ${id} holds ${inside.id}`);
      return this.sandboxes.delete(id);
    });
  }
  close(): void {}

  #listed({ id, sandbox, name, attempt, image, state, createdAtMs }: FakeContainer) {
    const pod = this.sandboxes.get(sandbox)?.pod;
    const labels =
      pod === undefined
        ? {}
        : {
            "io.kubernetes.pod.namespace": pod.namespace,
            "io.kubernetes.pod.name": pod.name,
            "io.kubernetes.pod.uid": pod.uid,
            "io.kubernetes.container.name": name,
          };
    const metadata = { name, attempt };
    const createdAt = nanos(createdAtMs);
    return {
      id,
      podSandboxId: sandbox,
      metadata,
      image: { image },
      imageRef: image,
      imageId: image,
      state,
      createdAt,
      labels,
    };
  }

  async #call<T>(call: string, id: string, answer: () => T): RuntimeResult<T> {
    const before = this.on({ call, id, phase: "before" });
    if (before !== undefined) return { ok: false, error: before };
    return { ok: true, value: answer() };
  }

  async #change(call: string, what: Performed["what"] | null, id: string, change: () => boolean): RuntimeResult<null> {
    const before = this.on({ call, id, phase: "before" });
    if (before !== undefined) return { ok: false, error: before };
    const performed = change() && what !== null ? { what, id, unreported: false } : null;
    if (performed !== null) this.performed.push(performed);
    const after = this.on({ call, id, phase: "after" });
    if (after === undefined) return { ok: true, value: null };
    if (performed !== null) performed.unreported = true;
    return { ok: false, error: after };
  }
}

export const faultOf = (call: string, code = "UNKNOWN", message = "the disk says no"): RuntimeFault => ({
  call,
  code,
  message,
});
