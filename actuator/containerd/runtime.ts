import { byText } from "../../api/base/order.ts";
import { map, ok, type Result } from "../../api/base/result.ts";
import { type Connection, type ConnectionOptions, openConnection } from "./connection.ts";
import type {
  ListedContainer,
  ListedImage,
  ListedSandbox,
  Runtime,
  RuntimeFault,
  RuntimeLists,
  RuntimeResult,
} from "./cri.ts";
import { askEach, nullIfGone } from "./fault.ts";
import type {
  Blob,
  Container,
  CriMethod,
  CriRequest,
  FileSystemUsage,
  Image,
  ImageSpec,
  Mount,
  Sandbox,
  TextMap,
} from "./messages.ts";

/** A layer of an image: its digest, and the size of its compressed blob, if the blob still exists. */
interface ImageLayer {
  readonly digest: string;
  readonly sizeBytes?: number;
}

/** `containerd.io/gc.ref.content.config`, `...content.l.0`; `...content.0` of an image that was imported. */
const REFERENCE = /^containerd\.io\/gc\.ref\.content(?:\.(.*))?$/;

/**
 * The layers of each image, lowest first, from the labels of containerd's blobs: a manifest refers to its config,
 * whose digest is the image's id, and to its layers. If an image has several manifests (the same layers, packed
 * differently), the one with the lowest digest counts. Images without a manifest are absent.
 */
function layersOf(imageIds: ReadonlySet<string>, blobs: readonly Blob[]): ReadonlyMap<string, readonly ImageLayer[]> {
  const sizes = new Map(blobs.map(({ digest, size }) => [digest, Number(size)]));
  const layers = new Map<string, readonly ImageLayer[]>();
  for (const manifest of blobs.toSorted((a, b) => byText(a.digest, b.digest))) {
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

interface ImageMounts {
  /** Container id -> its image volumes, of those that have any. */
  of(containers: readonly Container[]): RuntimeResult<ReadonlyMap<string, readonly Mount[]>>;
}

/**
 * The image volumes of containers, which only ContainerStatus contains. A container's mounts never change, so each is
 * read once per client, and none if the runtime cannot mount images.
 */
function imageMounts(connection: Connection): ImageMounts {
  let known = new Map<string, readonly Mount[]>();
  return {
    async of(containers) {
      if (containers.length === 0) return ok(known);
      const version = await connection.call("Version", {});
      if (!version.ok) return version;
      if (!mountsImages(version.value)) return ok(new Map());
      const next = new Map<string, readonly Mount[]>();
      const asked: string[] = [];
      for (const { id } of containers) {
        const mounts = known.get(id);
        if (mounts === undefined) asked.push(id);
        else next.set(id, mounts);
      }
      const fault = await askAll(connection, asked, next);
      if (fault !== undefined) return { ok: false, error: fault };
      known = next;
      return ok(new Map([...known].filter(([, mounts]) => mounts.length > 0)));
    },
  };
}

/** Reads statuses into `found`; containers that have disappeared are left out. */
const askAll = (
  connection: Connection,
  ids: readonly string[],
  found: Map<string, readonly Mount[]>,
): Promise<RuntimeFault | undefined> =>
  askEach(ids, async (containerId) => {
    const answer = await nullIfGone(connection.call("ContainerStatus", { containerId }));
    if (!answer.ok) return answer.error;
    if (answer.value !== null)
      found.set(
        containerId,
        (answer.value.status?.mounts ?? []).filter(({ image }) => image !== null),
      );
    return undefined;
  });

/** containerd mounts images since 2.1; any other runtime may. */
function mountsImages({ runtimeName, runtimeVersion }: { runtimeName: string; runtimeVersion: string }): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(runtimeVersion) ?? [];
  if (runtimeName !== "containerd" || major === undefined) return true;
  return Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 1);
}

/** A container runtime over CRI v1. Connects at the first call. Error: what is wrong with the endpoint. */
export const openRuntime = (options: ConnectionOptions): Result<Runtime, string> =>
  map(openConnection(options), runtimeOver);

/** A Runtime over a connection that is shared; `close` closes it. */
export function runtimeOver(connection: Connection): Runtime {
  const mounts = imageMounts(connection);
  const run = async <M extends CriMethod>(method: M, request: CriRequest<M>, extraMs?: number): RuntimeResult<null> => {
    const done = await connection.call(method, request, extraMs);
    return done.ok ? ok(null) : done;
  };
  return {
    list: () => list(connection, mounts),
    imageNow: (id, runtimeHandler) => imageNow(connection, id, runtimeHandler),
    containerNow: (id) => containerNow(connection, id),
    sandboxNow: (id) => sandboxNow(connection, id),
    imagesInUse: () => imagesInUse(connection, mounts),
    removeImage: (image, runtimeHandler) => run("RemoveImage", { image: { image, runtimeHandler } }),
    stopContainer: (containerId, timeout) => run("StopContainer", { containerId, timeout }, timeout * 1000),
    removeContainer: (containerId) => run("RemoveContainer", { containerId }),
    stopSandbox: (podSandboxId) => run("StopPodSandbox", { podSandboxId }),
    removeSandbox: (podSandboxId) => run("RemovePodSandbox", { podSandboxId }),
    close: connection.close,
  };
}

async function list(connection: Connection, mounts: ImageMounts): RuntimeResult<RuntimeLists> {
  const [images, containers, sandboxes, fileSystems, status, blobs] = await Promise.all([
    connection.call("ListImages", {}),
    connection.call("ListContainers", {}),
    connection.call("ListPodSandbox", {}),
    connection.call("ImageFsInfo", {}),
    connection.call("Status", { verbose: true }),
    connection.blobs(),
  ]);
  if (!images.ok) return images;
  if (!containers.ok) return containers;
  if (!sandboxes.ok) return sandboxes;
  if (!fileSystems.ok) return fileSystems;
  if (!status.ok) return status;
  const imageMounts = await mounts.of(containers.value.containers);
  if (!imageMounts.ok) return imageMounts;
  const ids = new Set(images.value.images.map(({ id }) => id));
  return ok(
    runtimeListsOf({
      images: images.value.images,
      containers: containers.value.containers,
      sandboxes: sandboxes.value.items,
      fileSystems: fileSystems.value,
      info: status.value.info,
      imageMounts: imageMounts.value,
      // layers only refine an estimate, so runtimes without containerd's content service have none
      layers: blobs.ok ? layersOf(ids, blobs.value) : new Map(),
    }),
  );
}

const orNull = (text: string): string | null => (text === "" ? null : text);

async function imageNow(connection: Connection, id: string, runtimeHandler: string): RuntimeResult<ListedImage | null> {
  const answer = await nullIfGone(connection.call("ImageStatus", { image: { image: id, runtimeHandler } }));
  if (!answer.ok) return answer;
  const image = answer.value?.image ?? null;
  if (image === null) return ok(null);
  const { pinned, size, repoTags, repoDigests } = image;
  const names = [...repoTags, ...repoDigests];
  return ok({ id: image.id, names, pinned, sizeBytes: size === "0" ? null : Number(size) });
}

/** A container: the list has its sandbox, and its status its log. */
async function containerNow(connection: Connection, containerId: string): RuntimeResult<ListedContainer | null> {
  const answer = await nullIfGone(connection.call("ContainerStatus", { containerId }));
  if (!answer.ok) return answer;
  const status = answer.value?.status ?? null;
  if (status === null) return ok(null);
  const listed = await connection.call("ListContainers", { filter: { id: containerId } });
  if (!listed.ok) return listed;
  const sandboxId = listed.value.containers.find(({ id }) => id === status.id)?.podSandboxId;
  if (sandboxId === undefined) return ok(null);
  return ok({
    id: status.id,
    state: status.state,
    createdAt: status.createdAt,
    imageId: orNull(status.imageId),
    imageRef: orNull(status.imageRef),
    sandboxId,
    logPath: orNull(status.logPath),
  });
}

async function sandboxNow(connection: Connection, podSandboxId: string): RuntimeResult<ListedSandbox | null> {
  const answer = await nullIfGone(connection.call("PodSandboxStatus", { podSandboxId }));
  if (!answer.ok) return answer;
  const status = answer.value?.status ?? null;
  return ok(status && { id: status.id, state: status.state, createdAt: status.createdAt });
}

async function imagesInUse(
  connection: Connection,
  mounts: ImageMounts,
): RuntimeResult<ReadonlyMap<string, readonly string[]>> {
  const listed = await connection.call("ListContainers", {});
  if (!listed.ok) return listed;
  const mounted = await mounts.of(listed.value.containers);
  if (!mounted.ok) return mounted;
  return ok(
    new Map(listed.value.containers.map((container) => [container.id, imagesOf(container, mounted.value)] as const)),
  );
}

/** A container's images by every name that the runtime has for them: id, reference, and the requested name. */
function imagesOf(container: Container, mounted: ReadonlyMap<string, readonly Mount[]>): readonly string[] {
  const { imageId, imageRef, image } = container;
  const volumes = (mounted.get(container.id) ?? []).map((mount) => mount.image?.image ?? "");
  return [...new Set([imageId, imageRef, image?.image ?? "", ...volumes])].filter((name) => name !== "");
}

/** All lists of a runtime at one moment. */
interface Listed {
  readonly images: readonly Image[];
  readonly containers: readonly Container[];
  readonly sandboxes: readonly Sandbox[];
  readonly fileSystems: {
    readonly imageFilesystems: readonly FileSystemUsage[];
    readonly containerFilesystems: readonly FileSystemUsage[];
  };
  /** `info` of a verbose Status. */
  readonly info: TextMap;
  /** Container id -> its image volumes. */
  readonly imageMounts: ReadonlyMap<string, readonly Mount[]>;
  /** Image id -> its layers. */
  readonly layers: ReadonlyMap<string, readonly ImageLayer[]>;
}

/** `runtime` of a NodeSnapshot: crictl's JSON without what no decision reads and what the runtime did not report. */
function runtimeListsOf(listed: Listed): RuntimeLists {
  const sandboxImage = sandboxImageOf(listed.info);
  return {
    images: listed.images.map((image) => imageOf(image, listed.layers.get(image.id))),
    containers: listed.containers.map((container) => containerOf(container, listed.imageMounts.get(container.id))),
    sandboxes: listed.sandboxes.map(({ id, metadata, state, createdAt }) => ({
      id,
      metadata: metadata ?? { name: "", uid: "" },
      state,
      createdAt,
    })),
    imageFilesystems: {
      imageFilesystems: listed.fileSystems.imageFilesystems.map(usageOf),
      containerFilesystems: listed.fileSystems.containerFilesystems.map(usageOf),
    },
    ...(sandboxImage === undefined ? {} : { sandboxImage }),
  };
}

const withText = <K extends string>(key: K, value: string) => (value === "" ? {} : { [key]: value });
const specOf = (spec: ImageSpec | null) =>
  spec === null ? {} : { ...withText("image", spec.image), ...withText("runtimeHandler", spec.runtimeHandler) };

function imageOf(image: Image, layers: readonly ImageLayer[] | undefined) {
  return {
    id: image.id,
    repoTags: image.repoTags,
    repoDigests: image.repoDigests,
    size: image.size,
    pinned: image.pinned,
    spec: specOf(image.spec),
    ...(layers === undefined ? {} : { layers }),
  };
}

function containerOf(container: Container, mounts: readonly Mount[] | undefined) {
  const labels = Object.entries(container.labels).filter(([key]) => key.startsWith("io.kubernetes."));
  return {
    id: container.id,
    ...withText("podSandboxId", container.podSandboxId),
    metadata: container.metadata ?? { name: "" },
    image: specOf(container.image),
    ...withText("imageRef", container.imageRef),
    ...withText("imageId", container.imageId),
    state: container.state,
    createdAt: container.createdAt,
    labels: Object.fromEntries(labels),
    ...(mounts === undefined || mounts.length === 0
      ? {}
      : { mounts: mounts.map(({ containerPath, image }) => ({ containerPath, image: specOf(image) })) }),
  };
}

const usageOf = ({ fsId, usedBytes, inodesUsed }: FileSystemUsage) => ({
  ...(fsId === null ? {} : { fsId }),
  ...(usedBytes === null ? {} : { usedBytes }),
  ...(inodesUsed === null ? {} : { inodesUsed }),
});

/**
 * The sandbox image. containerd 1.x returns its configuration as JSON text under `config`; no other form is known. A missing
 * one is no error.
 */
function sandboxImageOf(info: TextMap): string | undefined {
  try {
    const config: unknown = JSON.parse(info["config"] ?? "null");
    const image = (config as { readonly sandboxImage?: unknown } | null)?.sandboxImage;
    return typeof image === "string" && image !== "" ? image : undefined;
  } catch {
    return undefined;
  }
}
