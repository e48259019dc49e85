import type { Blob } from "./messages.ts";

/** A layer of an image: its digest, and the bytes of the blob as it was pulled, where that is still there. */
export interface Layer {
  readonly digest: string;
  readonly sizeBytes?: number;
}

/** `containerd.io/gc.ref.content.config`, `...content.l.0`; `...content.0` of an image that was imported. */
const REFERENCE = /^containerd\.io\/gc\.ref\.content(?:\.(.*))?$/;

/**
 * The layers of each image, lowest first, from the labels of containerd's blobs: a manifest refers to its config, whose
 * digest is the image's id, and to its layers. An image with several manifests (the same layers, packed differently) has
 * those of the one with the lowest digest. Absent: an image that no manifest tells of.
 */
export function layersOf(imageIds: ReadonlySet<string>, blobs: readonly Blob[]): ReadonlyMap<string, readonly Layer[]> {
  const sizes = new Map(blobs.map(({ digest, size }) => [digest, Number(size)]));
  const layers = new Map<string, readonly Layer[]>();
  for (const manifest of blobs.toSorted((a, b) => (a.digest < b.digest ? -1 : 1))) {
    const references = referencesOf(manifest);
    const config = references.find((digest) => imageIds.has(digest));
    if (config === undefined || layers.has(config)) continue;
    const digests = [...new Set(references)].filter((digest) => digest !== config);
    layers.set(
      config,
      digests.map((digest) => {
        const sizeBytes = sizes.get(digest);
        return sizeBytes === undefined ? { digest } : { digest, sizeBytes };
      }),
    );
  }
  return layers;
}

function referencesOf({ labels }: Blob): readonly string[] {
  return Object.entries(labels)
    .flatMap(([label, digest]) => {
      const place = REFERENCE.exec(label);
      return place === null ? [] : [{ digest, at: Number(/\d+$/.exec(place[1] ?? "")?.[0] ?? -1) }];
    })
    .sort((a, b) => a.at - b.at)
    .map(({ digest }) => digest);
}
