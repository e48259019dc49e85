import type { ReasonCode } from "../../model/decision.ts";
import type { RuntimeImage } from "../../model/runtime.ts";
import type { Reasons } from "../reasons.ts";

/** An image of the runtime's list; entries with one id are merged unless the runtime handler distinguishes them. */
export interface ListedImage {
  /** The key of the kubelet's record. */
  readonly key: string;
  readonly id: string;
  /** The runtime handler; empty unless images are distinguished by it. */
  readonly runtimeHandler: string;
  /** Its tags; without any, its digests. */
  readonly names: readonly string[];
  readonly digests: readonly string[];
  readonly sizeBytes: number;
  readonly pinned: boolean;
  readonly layers: RuntimeImage["layers"];
}
export interface Inventory {
  /** Key -> image, in the order of the list. */
  readonly images: ReadonlyMap<string, ListedImage>;
  /** Images by id; null: every id is unique and is the key. */
  readonly byId: ReadonlyMap<string, readonly ListedImage[]> | null;
}

/** kubelet 1.36: getImageTuple. */
export const imageKey = (id: string, runtimeHandler: string | undefined): string =>
  runtimeHandler === undefined || runtimeHandler === "" ? id : `${id},${runtimeHandler}`;

/**
 * The runtime's list as the kubelet keeps it: by id; with the gate RuntimeClassInImageCriApi by id and runtime
 * handler.
 */
export function listedImages(
  list: readonly RuntimeImage[],
  byHandler: boolean,
  reasons: Reasons<ReasonCode<"image-gc">>,
  needs: string[],
): Inventory {
  const images = new Map<string, ListedImage>();
  let sizeless = false;
  for (let i = 0; i < list.length; i++) {
    const entry = list[i] as RuntimeImage;
    if (entry.size === undefined) {
      reasons.add("image_size_not_told", entry.id, "sizeBytes");
      if (!sizeless) needs.push(`runtime.images[${i}].size`);
      sizeless = true;
    }
    const listed = listedImage(entry, byHandler);
    const known = images.get(listed.key);
    if (known !== undefined) reasons.add("image_listed_twice", entry.id, "image", { pinned: listed.pinned });
    images.set(listed.key, known === undefined ? listed : merged(known, listed));
  }
  return { images, byId: byHandler ? byIdOf(images) : null };
}

function byIdOf(images: ReadonlyMap<string, ListedImage>): ReadonlyMap<string, readonly ListedImage[]> {
  const byId = new Map<string, ListedImage[]>();
  for (const image of images.values()) {
    const same = byId.get(image.id);
    if (same === undefined) byId.set(image.id, [image]);
    else same.push(image);
  }
  return byId;
}

function listedImage(image: RuntimeImage, byHandler: boolean): ListedImage {
  const runtimeHandler = byHandler ? (image.spec?.runtimeHandler ?? "") : "";
  const tags = named(image.repoTags);
  const digests = named(image.repoDigests);
  return {
    key: imageKey(image.id, runtimeHandler),
    id: image.id,
    runtimeHandler,
    names: tags.length > 0 ? tags : digests,
    digests,
    sizeBytes: image.size ?? 0,
    pinned: image.pinned ?? false,
    layers: image.layers,
  };
}
/** The names without `<none>:<none>`, which some runtimes write for no name. */
const named = (names: readonly string[] | undefined): readonly string[] =>
  names === undefined
    ? []
    : names.some((n) => n.includes("<none>"))
      ? names.filter((n) => !n.includes("<none>"))
      : names;

/**
 * Merges two entries of one id: the last size counts, as in the kubelet, but an image pinned by either stays pinned,
 * though in the kubelet the last entry decides.
 */
const merged = (a: ListedImage, b: ListedImage): ListedImage => ({
  ...b,
  names: [...new Set([...a.names, ...b.names])],
  digests: [...new Set([...a.digests, ...b.digests])],
  pinned: a.pinned || b.pinned,
  layers: b.layers ?? a.layers,
});
