import type { Space } from "../../../actuator/gc/journal.ts";
import { must } from "../containerd/pods.ts";
import type { ImageSpec } from "../containerd/start.ts";
import type { GcNode } from "./node.ts";
import { goes, type KnownImage, type Thresholds } from "./rules.ts";

const MIB = 1024 * 1024;
/** imageMinimumGCAge of these nodes. */
const MINIMUM_AGE_MS = 1000;

export const tag = (name: string): string => `nodewise.test/${name}:1`;

/** The world that a pass will find, and what it has to do then. */
export interface Crossing {
  readonly before: Space;
  readonly images: readonly KnownImage[];
  /** First names, in order. */
  readonly expected: readonly string[];
  /** No pass that began before this saw it. */
  readonly sinceMs: number;
}
type Known = Partial<Pick<KnownImage, "firstSeen" | "lastUsed" | "isHeld">>;

/** Images as they come to a node and are used there, with a daemon that sees it: each at a moment of its own. */
export class ImageStory {
  readonly #node: GcNode;
  readonly #thresholds: Thresholds;
  readonly #known = new Map<string, Known>([["nodewise.test/pause:1", { isHeld: true }]]);
  /** Layers as they lie on the disk, by image. */
  readonly #layers = new Map<string, readonly { readonly digest: string; readonly sizeBytes: number }[]>();
  #moment = 0;
  #lastArrivalMs = 0;

  constructor(node: GcNode, thresholds: Thresholds) {
    this.#node = node;
    this.#thresholds = thresholds;
  }

  /** Comes to the node, and is seen there; its id. */
  async arrive(name: string, sizeMib: number, more: Partial<ImageSpec> = {}): Promise<string> {
    const id = await this.bring(name, sizeMib, more);
    await this.#node.daemon.nextTurn();
    this.#lastArrivalMs = Date.now();
    return id;
  }
  /** Comes to the node, and no pass has seen it yet. */
  async bring(name: string, sizeMib: number, more: Partial<ImageSpec> = {}): Promise<string> {
    const spec = { name: tag(name), sizeBytes: sizeMib * MIB, ...more };
    const { id, layers } = await this.#node.containerd.importImage(spec);
    this.#known.set(tag(name), { firstSeen: ++this.#moment });
    this.#layers.set(tag(name), layers);
    return id;
  }
  /** Is run, seen to run, and let go of. */
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
  /** The daemon saw it in use, and will not any more. */
  used(name: string): void {
    this.#known.set(tag(name), { ...this.#known.get(tag(name)), lastUsed: ++this.#moment });
  }
  /** From now on something keeps it. */
  hold(...names: readonly string[]): void {
    for (const name of names) this.#known.set(tag(name), { ...this.#known.get(tag(name)), isHeld: true });
  }
  letGo(name: string): void {
    this.#known.set(tag(name), { ...this.#known.get(tag(name)), isHeld: false });
  }

  /** When all that arrived are old enough, lets a pass find only so many bytes free (absent: as it is), and what else is done at that moment. */
  async cross(freeBytes: number | null, alsoDo: () => unknown = () => {}): Promise<Crossing> {
    await this.#node.daemon.nextTurn(this.#lastArrivalMs + MINIMUM_AGE_MS);
    return this.#node.betweenPasses(async () => {
      await alsoDo();
      const before = freeBytes === null ? this.#node.space() : this.#node.leaveFree(freeBytes);
      const images = await this.images();
      return { before, images, expected: goes(images, before, this.#thresholds), sinceMs: Date.now() };
    });
  }
  /** As containerd lists them, with what is known of them. */
  async images(): Promise<readonly KnownImage[]> {
    const listed = [...(await this.#node.images())];
    return listed.map(([name, { sizeBytes }]) => ({ name, sizeBytes, firstSeen: 0, ...this.#known.get(name) }));
  }

  /** The least that removed images give back where the others stay: each layer, and the file that was unpacked of it, once. */
  freedBytes(removed: readonly string[], left: readonly string[]): { readonly blobs: number; readonly disk: number } {
    const kept = new Set(left.flatMap((name) => this.#layers.get(name) ?? []).map(({ digest }) => digest));
    const gone = new Map(
      removed
        .flatMap((name) => this.#layers.get(name) ?? [])
        .filter(({ digest }) => !kept.has(digest))
        .map(({ digest, sizeBytes }) => [digest, sizeBytes]),
    );
    const blobs = [...gone.values()].reduce((sum, bytes) => sum + bytes, 0);
    // The unpacked file has nothing of tar's header, padding and end.
    return { blobs, disk: 2 * blobs - gone.size * 2560 };
  }
}
