import type { ListedImage } from "./listed-images.ts";

interface Removed {
  readonly image: ListedImage;
  /** False: it stays all the same. */
  readonly gone: boolean;
}
interface Layer {
  readonly sizeBytes: number;
  /** How often images that are not gone hold it: an empty one is often listed several times in one. */
  holders: number;
}
type Listed = NonNullable<ListedImage["layers"]>[number];

/**
 * What removals really bring back, one after the other: a layer's bytes come with the last image that holds it. Null where
 * any image, of these and of those that `stay`, does not tell its layers with their sizes: it may hold those of the others.
 */
export function exclusiveBytes(stay: Iterable<ListedImage>, removals: readonly Removed[]): readonly number[] | null {
  // only layers of what goes are counted: an image that stays has but to be asked for them
  const layers = new Map<string, Layer>();
  const going: Layer[][] = [];
  for (const { image, gone } of removals) {
    const held: Layer[] = [];
    if (gone && !hold(image, layers, held)) return null;
    going.push(held);
  }
  for (const { image, gone } of removals) if (!gone && !need(image, layers)) return null;
  for (const image of stay) if (!need(image, layers)) return null;
  return going.map((held) => {
    let bytes = 0;
    for (const layer of held) if (--layer.holders === 0) bytes += layer.sizeBytes;
    return bytes;
  });
}

/** Counts the layers of an image that goes, into `held` too; false: it does not tell them. */
function hold({ layers: listed }: ListedImage, layers: Map<string, Layer>, held: Layer[]): boolean {
  if (listed === undefined) return false;
  for (let i = 0; i < listed.length; i++) {
    const { digest, sizeBytes } = listed[i] as Listed;
    if (sizeBytes === undefined) return false;
    let layer = layers.get(digest);
    if (layer === undefined) {
      layer = { sizeBytes, holders: 0 };
      layers.set(digest, layer);
    }
    layer.holders++;
    held.push(layer);
  }
  return true;
}

/** Counts what an image that stays holds of them; false: it does not tell its layers. */
function need({ layers: listed }: ListedImage, layers: Map<string, Layer>): boolean {
  if (listed === undefined) return false;
  for (let i = 0; i < listed.length; i++) {
    const { digest, sizeBytes } = listed[i] as Listed;
    if (sizeBytes === undefined) return false;
    const layer = layers.get(digest);
    if (layer !== undefined) layer.holders++;
  }
  return true;
}
