import type { ReasonCode } from "../../model/decision.ts";
import type { ImageGcFacts } from "../../model/image-gc.ts";
import { type Pod, podRef } from "../../model/pod.ts";
import type { RuntimeContainer, RuntimeSandbox } from "../../model/runtime.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import type { Reasons } from "../reasons.ts";
import type { ImageNames } from "./image-names.ts";
import { type Inventory, imageKey, type ListedImage } from "./listed-images.ts";

/** The users of one image, the first few by name. */
export interface Use {
  readonly why: "in-use" | "image-volume";
  readonly by: readonly string[];
  /** The number of containers and volumes. */
  readonly count: number;
}
interface MutableUse {
  why: Use["why"];
  readonly by: string[];
  count: number;
}
const NAMED = 5;
const POD_UID = "io.kubernetes.pod.uid";

interface UseInput {
  readonly containers: readonly RuntimeContainer[];
  readonly sandboxes: readonly RuntimeSandbox[];
  readonly pods: readonly Pod[];
  readonly names: ImageNames;
  /** True: images are distinguished by runtime handler. */
  readonly byHandler: boolean;
}

/**
 * Finds the images, by key, that containers of any state were made from or mount. The kubelet compares ids: imageId,
 * or imageRef with older runtimes. Three additions only keep more images: names from an older runtime are resolved; an
 * image that is not listed for the container's runtime handler is in use for every handler; and a pod's image volumes
 * count if mounts are not listed. kubelet 1.36: detectImages, handleImageVolumes, toKubeContainer.
 */
export function imagesInUse(input: UseInput, reasons: Reasons<ReasonCode<"image-gc">>): ReadonlyMap<string, Use> {
  const { containers, names } = input;
  const uses = new Map<string, MutableUse>();
  const sandboxes = new Map(input.sandboxes.map((s) => [s.id, s]));
  const unlisted = new Map<string, number>();
  for (const c of containers) {
    const images = imagesOf(c, input, reasons);
    if (images.length === 0) unlisted.set(requestedImage(c), (unlisted.get(requestedImage(c)) ?? 0) + 1);
    for (const image of images) {
      const use = noted(uses, image, "in-use");
      if (use.by.length < NAMED) use.by.push(containerText(c, sandboxes));
    }
    for (const mount of c.mounts ?? []) {
      for (const image of names.find(mount.image?.image ?? "")) {
        const use = noted(uses, image, "image-volume");
        if (use.by.length < NAMED) use.by.push(containerText(c, sandboxes));
      }
    }
  }
  for (const [image, count] of unlisted)
    reasons.add("container_image_not_listed", image, "inUse", { containers: count });
  for (const pod of podsInDoubt(input, sandboxes)) {
    const { namespace, name } = podRef(pod);
    for (const volume of pod.spec.volumes ?? []) {
      for (const image of names.find(volume.image?.reference ?? "")) {
        const use = noted(uses, image, "image-volume");
        if (use.by.length < NAMED) use.by.push(`${namespace}/${name} volume ${volume.name}`);
      }
    }
  }
  return uses;
}

/** Whether the runtime names the container's image; otherwise no image may be removed. */
export const isImageReported = (c: RuntimeContainer): boolean => requestedImage(c) !== "";
const requestedImage = (c: RuntimeContainer): string => c.imageId || c.imageRef || c.image?.image || "";

function imagesOf(
  c: RuntimeContainer,
  { names, byHandler }: UseInput,
  reasons: Reasons<ReasonCode<"image-gc">>,
): readonly ListedImage[] {
  const handler = c.image?.runtimeHandler ?? "";
  const found = names.byId(c.imageId || c.imageRef || "");
  if (found.length > 0) return byHandler ? withHandler(found, handler, reasons) : found;
  // imageId is exact; without it, the reference may be a tag or a digest
  if (c.imageId !== undefined && c.imageId !== "") return [];
  const byRef = names.find(c.imageRef ?? "");
  return byRef.length > 0 ? byRef : names.find(c.image?.image ?? "");
}
/**
 * Selects the images of the container's runtime handler. If none is listed for it, selects all with the id, since a
 * removal does not name a handler.
 */
function withHandler(
  found: readonly ListedImage[],
  handler: string,
  reasons: Reasons<ReasonCode<"image-gc">>,
): readonly ListedImage[] {
  const exact = found.filter((image) => image.runtimeHandler === handler);
  if (exact.length > 0) return exact;
  for (const { key } of found) reasons.add("runtime_handler_differs", key, "inUse", { handler });
  return found;
}

/** Counts a user of the image. */
function noted(uses: Map<string, MutableUse>, image: ListedImage, why: Use["why"]): MutableUse {
  const known = uses.get(image.key);
  if (known === undefined) {
    const use: MutableUse = { why, by: [], count: 1 };
    uses.set(image.key, use);
    return use;
  }
  if (why === "in-use") known.why = why;
  known.count++;
  return known;
}

function containerText(c: RuntimeContainer, sandboxes: ReadonlyMap<string, RuntimeSandbox>): string {
  const sandbox = sandboxes.get(c.podSandboxId ?? "")?.metadata;
  const namespace = c.labels?.["io.kubernetes.pod.namespace"] ?? sandbox?.namespace;
  const pod = c.labels?.["io.kubernetes.pod.name"] ?? sandbox?.name;
  const what = `${c.metadata.name} (${c.state.slice("CONTAINER_".length).toLowerCase()})`;
  return pod === undefined ? what : `${namespace ?? "default"}/${pod} ${what}`;
}

/** Pods on this node whose mounts the runtime's list does not show. */
function podsInDoubt({ containers, pods }: UseInput, sandboxes: ReadonlyMap<string, RuntimeSandbox>): readonly Pod[] {
  const mounting = pods.filter((p) => (p.spec.volumes ?? []).some((v) => v.image !== undefined));
  if (mounting.length === 0) return [];
  const silent = new Set<string | undefined>();
  for (const c of containers) {
    if (c.mounts === undefined) silent.add(c.labels?.[POD_UID] ?? sandboxes.get(c.podSandboxId ?? "")?.metadata.uid);
  }
  return mounting.filter((p) => silent.has(undefined) || silent.has(podRef(p).uid));
}

/** An image with the kubelet's record of it. */
export interface DetectedImage extends ListedImage {
  readonly firstDetectedAtMs: EpochMs;
  /** When the image was last in use; null: never. */
  readonly lastUsedAtMs: EpochMs | null;
}

type ImageRecord = Readonly<ImageGcFacts["records"][number]>;

/**
 * The records of all listed images, in the order of the list: a new image was first seen now, and one in use was last
 * used now. An image that an earlier answer for this pass removed is still listed and keeps its times. kubelet 1.36:
 * detectImages.
 */
export function detectImages(
  { images }: Inventory,
  uses: ReadonlyMap<string, Use>,
  before: ImageGcFacts | undefined,
  now: EpochMs,
): readonly DetectedImage[] {
  const records = new Map<string, ImageRecord>();
  for (const { id, runtimeHandler, atMs, firstDetectedAtMs, lastUsedAtMs } of before?.removed ?? []) {
    if (atMs === now && firstDetectedAtMs !== undefined) {
      records.set(imageKey(id, runtimeHandler), [id, firstDetectedAtMs, lastUsedAtMs ?? null]);
    }
  }
  for (const record of before?.records ?? []) records.set(imageKey(record[0], record[3]), record);
  const detected: DetectedImage[] = [];
  for (const image of images.values()) {
    const known = records.get(image.key);
    const lastUsed = uses.has(image.key) ? now : (known?.[2] ?? null);
    detected.push({
      key: image.key,
      id: image.id,
      runtimeHandler: image.runtimeHandler,
      names: image.names,
      digests: image.digests,
      sizeBytes: image.sizeBytes,
      pinned: image.pinned,
      layers: image.layers,
      firstDetectedAtMs: epochMs(known?.[1] ?? now),
      lastUsedAtMs: lastUsed === null ? null : epochMs(lastUsed),
    });
  }
  return detected;
}
