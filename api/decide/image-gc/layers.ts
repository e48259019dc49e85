import type { ListedImage } from "./listed-images.ts";

/**
 * What removals really bring back, one after the other: a layer's bytes come with the last image that holds it. Null where
 * any image does not tell its layers with their sizes: it may hold those of the others.
 */
export function exclusiveBytes(
  images: Iterable<ListedImage>,
  removals: readonly { readonly image: ListedImage; readonly gone: boolean }[],
): readonly number[] | null {
  // only layers of what goes are counted: an image that stays has but to be asked for them
  const layers = new Map<string, Layer>();
  const going = new Map<ListedImage, readonly Layer[]>();
  for (const { image, gone } of removals) if (gone) going.set(image, held(image, layers));
  for (const image of images) {
    if (image.layers === undefined) return null;
    const stays = !going.has(image);
    for (const { digest, sizeBytes } of image.layers) {
      if (sizeBytes === undefined) return null;
      const layer = stays ? layers.get(digest) : undefined;
      if (layer !== undefined) layer.holders++;
    }
  }
  return removals.map(({ image }) => {
    let bytes = 0;
    for (const layer of going.get(image) ?? []) if (--layer.holders === 0) bytes += layer.sizeBytes;
    return bytes;
  });
}
interface Layer {
  readonly sizeBytes: number;
  /** How often images that are not gone hold it: an empty one is often listed several times in one. */
  holders: number;
}

/** Counts the image's layers. */
function held(image: ListedImage, layers: Map<string, Layer>): readonly Layer[] {
  return (image.layers ?? []).map(({ digest, sizeBytes }) => {
    const known = layers.get(digest);
    if (known !== undefined) {
      known.holders++;
      return known;
    }
    const layer = { sizeBytes: sizeBytes ?? 0, holders: 1 };
    layers.set(digest, layer);
    return layer;
  });
}
