import type { Space } from "../../../actuator/gc/journal.ts";
import { must } from "../containerd/pods.ts";
import type { ImageSpec } from "../containerd/start.ts";
import type { GcNode } from "./node.ts";
import { imagesToRemove, type KnownImage, type Thresholds } from "./rules.ts";

const MIB = 1024 * 1024;
/** The imageMinimumGCAge of these nodes. */
const MINIMUM_AGE_MS = 1000;

export const tag = (name: string): string => `nodewise.test/${name}:1`;

/** The state that a pass finds, and the removals that it then has to make. */
export interface Crossing {
  readonly before: Space;
  readonly images: readonly KnownImage[];
  /** The names of the images to remove, in order. */
  readonly expected: readonly string[];
  /** A pass that began before this moment did not see this state. */
  readonly sinceMs: number;
}
type Known = Partial<Pick<KnownImage, "firstSeen" | "lastUsed" | "isHeld">>;

/**
 * Images that are pulled to a node and used there, while a daemon observes the node. Each event has its own point in
 * time.
 */
export class ImageStory {
  readonly #node: GcNode;
  readonly #thresholds: Thresholds;
  readonly #known = new Map<string, Known>([["nodewise.test/pause:1", { isHeld: true }]]);
  /** Image name -> its layers as stored on the disk. */
  readonly #layers = new Map<string, readonly { readonly digest: string; readonly sizeBytes: number }[]>();
  #moment = 0;
  #lastArrivalMs = 0;

  constructor(node: GcNode, thresholds: Thresholds) {
    this.#node = node;
    this.#thresholds = thresholds;
  }

  /** Adds an image to the node and waits until a pass has seen it; returns its id. */
  async arrive(name: string, sizeMib: number, more: Partial<ImageSpec> = {}): Promise<string> {
    const id = await this.bring(name, sizeMib, more);
    await this.#node.daemon.nextTurn();
    this.#lastArrivalMs = Date.now();
    return id;
  }
  /** Adds an image to the node, without a pass that sees it. */
  async bring(name: string, sizeMib: number, more: Partial<ImageSpec> = {}): Promise<string> {
    const spec = { name: tag(name), sizeBytes: sizeMib * MIB, ...more };
    const { id, layers } = await this.#node.containerd.importImage(spec);
    this.#known.set(tag(name), { firstSeen: ++this.#moment });
    this.#layers.set(tag(name), layers);
    return id;
  }
  /** Runs a pod with the image, waits until a pass has seen it in use, and removes the pod. */
  async use(name: string): Promise<void> {
    const { runtime } = this.#node.containerd;
    const pod = await this.#node.containerd.runPod({ name, uid: `uid-of-${name}`, image: tag(name) });
    await this.#node.daemon.nextTurn();
    await this.#node.betweenPasses(async () => {
      await must(runtime.stopContainer(pod.containerId, 0));
      await must(runtime.removeContainer(pod.containerId));
      await must(runtime.stopSandbox(pod.sandboxId));
      await must(runtime.removeSandbox(pod.sandboxId));
    });
    this.used(name);
  }
  /** Notes that the daemon has seen the image in use, and that the use is over. */
  used(name: string): void {
    this.#known.set(tag(name), { ...this.#known.get(tag(name)), lastUsed: ++this.#moment });
  }
  /** Notes that from now on, the rules keep these images. */
  hold(...names: readonly string[]): void {
    for (const name of names) this.#known.set(tag(name), { ...this.#known.get(tag(name)), isHeld: true });
  }
  letGo(name: string): void {
    this.#known.set(tag(name), { ...this.#known.get(tag(name)), isHeld: false });
  }

  /**
   * Waits until all images are old enough. Then, between two passes, calls `alsoDo` and fills the disk until
   * `freeBytes` are left (null: leaves it as it is), and returns what the next pass has to do.
   */
  async cross(freeBytes: number | null, alsoDo: () => unknown = () => {}): Promise<Crossing> {
    await this.#node.daemon.nextTurn(this.#lastArrivalMs + MINIMUM_AGE_MS);
    return this.#node.betweenPasses(async () => {
      await alsoDo();
      const before = freeBytes === null ? this.#node.space() : this.#node.leaveFree(freeBytes);
      const images = await this.images();
      return { before, images, expected: imagesToRemove(images, before, this.#thresholds), sinceMs: Date.now() };
    });
  }
  /** The images as containerd lists them, with the known facts about them. */
  async images(): Promise<readonly KnownImage[]> {
    const listed = [...(await this.#node.images())];
    return listed.map(([name, { sizeBytes }]) => ({ name, sizeBytes, firstSeen: 0, ...this.#known.get(name) }));
  }

  /**
   * The least space that the removal of images frees while the others stay: each layer that no remaining image needs
   * counts once as a blob and once as an unpacked file.
   */
  freedBytes(removed: readonly string[], left: readonly string[]): { readonly blobs: number; readonly disk: number } {
    const kept = new Set(left.flatMap((name) => this.#layers.get(name) ?? []).map(({ digest }) => digest));
    const gone = new Map(
      removed
        .flatMap((name) => this.#layers.get(name) ?? [])
        .filter(({ digest }) => !kept.has(digest))
        .map(({ digest, sizeBytes }) => [digest, sizeBytes]),
    );
    const blobs = [...gone.values()].reduce((sum, bytes) => sum + bytes, 0);
    // The unpacked file lacks tar's header, padding and end marker.
    return { blobs, disk: 2 * blobs - gone.size * 2560 };
  }
}
