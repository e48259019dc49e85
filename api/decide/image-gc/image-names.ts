import type { Inventory, ListedImage } from "./listed-images.ts";

const HEX_ID = /^[0-9a-f]{64}$/;
const NONE: readonly ListedImage[] = [];

/** The maximum number of lookups by scanning, which is cheaper than an index of all names. */
const FEW = 3;

/** Finds images by the names that people, pods and older runtimes use. */
export class ImageNames {
  readonly #inventory: Inventory;
  #asked = 0;
  #index: Map<string, ListedImage[]> | undefined;
  constructor(inventory: Inventory) {
    this.#inventory = inventory;
  }

  /** The images with an id, with or without its `sha256:`. */
  byId(id: string): readonly ListedImage[] {
    const exact = this.#ofId(id);
    if (exact !== undefined) return exact;
    const other = HEX_ID.test(id) ? `sha256:${id}` : id.startsWith("sha256:") ? id.slice(7) : undefined;
    return (other === undefined ? undefined : this.#ofId(other)) ?? NONE;
  }
  #ofId(id: string): readonly ListedImage[] | undefined {
    const { images, byId } = this.#inventory;
    if (byId !== null) return byId.get(id);
    const image = images.get(id);
    return image === undefined ? undefined : [image];
  }

  /** The images that an id, a tag or a digest can mean; a digest means the same in every repository. */
  find(reference: string): readonly ListedImage[] {
    if (reference === "") return NONE;
    const found = this.byId(reference);
    if (found.length > 0) return found;
    const name = indexed(reference);
    if (this.#asked++ < FEW) return searchImages(this.#inventory, name);
    this.#index ??= indexOf(this.#inventory);
    return this.#index.get(name) ?? NONE;
  }
}

const searchImages = ({ images }: Inventory, wanted: string): readonly ListedImage[] => {
  const last = wanted.slice(wanted.lastIndexOf("/") + 1).replace(/:latest$/, "");
  const tagged = `${last}:latest`;
  const isIt = (name: string): boolean => (name.endsWith(last) || name.endsWith(tagged)) && indexed(name) === wanted;
  const found: ListedImage[] = [];
  for (const image of images.values()) if (image.names.some(isIt) || image.digests.some(isIt)) found.push(image);
  return found;
};
function indexOf({ images }: Inventory): Map<string, ListedImage[]> {
  const index = new Map<string, ListedImage[]>();
  const put = (image: ListedImage, reference: string): void => {
    const name = indexed(reference);
    const same = index.get(name);
    if (same === undefined) index.set(name, [image]);
    else if (same.at(-1) !== image) same.push(image);
  };
  for (const image of images.values()) {
    for (const name of image.names) put(image, name);
    if (image.digests !== image.names) for (const digest of image.digests) put(image, digest);
  }
  return index;
}

/** A key that is equal for all references to the same image: the digest if there is one, else the full name and tag. */
export function indexed(reference: string): string {
  const at = reference.lastIndexOf("@");
  if (at >= 0) return reference.slice(at + 1);
  return reference.startsWith("sha256:") ? reference : fullName(reference);
}

/** `busybox` is `docker.io/library/busybox:latest`. distribution: reference.ParseNormalizedNamed, TagNameOnly. */
export function fullName(reference: string): string {
  const slash = reference.indexOf("/");
  const host = slash < 0 ? "" : reference.slice(0, slash);
  const isHost = host === "localhost" || host.includes(".") || host.includes(":") || /[A-Z]/.test(host);
  const path = isHost ? reference.slice(slash + 1) : reference;
  const tagged = path.includes(":") ? path : `${path}:latest`;
  // most names are already complete
  if (isHost && host !== "docker.io" && host !== "index.docker.io")
    return tagged === path ? reference : `${host}/${tagged}`;
  return path.includes("/") ? `docker.io/${tagged}` : `docker.io/library/${tagged}`;
}
