import { map, ok, type Result } from "../../api/model/result.ts";
import { nullIfGone } from "./at-once.ts";
import { type Connection, type ConnectionOptions, openConnection } from "./connection.ts";
import { type ImageMounts, imageMounts } from "./image-mounts.ts";
import { layersOf } from "./layers.ts";
import { runtimeListsOf } from "./lists.ts";
import type { Container, CriMethod, CriRequest, Mount } from "./messages.ts";
import type { Answered, ContainerNow, ImageNow, Runtime, RuntimeLists, SandboxNow } from "./port.ts";

/** A container runtime over CRI v1. Connects at the first call. The error says what is wrong with the endpoint. */
export const openRuntime = (options: ConnectionOptions): Result<Runtime, string> =>
  map(openConnection(options), runtimeOver);

/** The port over a connection that others use too; `close` closes it. */
export function runtimeOver(connection: Connection): Runtime {
  const mounts = imageMounts(connection);
  const run = async <M extends CriMethod>(method: M, request: CriRequest<M>, extraMs?: number): Answered<null> => {
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

async function list(connection: Connection, mounts: ImageMounts): Answered<RuntimeLists> {
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
      // Layers only refine an estimate: a runtime without containerd's content service goes without.
      layers: blobs.ok ? layersOf(ids, blobs.value) : new Map(),
    }),
  );
}

const orNull = (text: string): string | null => (text === "" ? null : text);

async function imageNow(connection: Connection, id: string, runtimeHandler: string): Answered<ImageNow | null> {
  const answer = await nullIfGone(connection.call("ImageStatus", { image: { image: id, runtimeHandler } }));
  if (!answer.ok) return answer;
  const image = answer.value?.image ?? null;
  if (image === null) return ok(null);
  const { pinned, size, repoTags, repoDigests } = image;
  const names = [...repoTags, ...repoDigests];
  return ok({ id: image.id, names, pinned, sizeBytes: size === "0" ? null : Number(size) });
}

/** The list tells the sandbox of a container, its status the log: only both together are the container. */
async function containerNow(connection: Connection, containerId: string): Answered<ContainerNow | null> {
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

async function sandboxNow(connection: Connection, podSandboxId: string): Answered<SandboxNow | null> {
  const answer = await nullIfGone(connection.call("PodSandboxStatus", { podSandboxId }));
  if (!answer.ok) return answer;
  const status = answer.value?.status ?? null;
  return ok(status && { id: status.id, state: status.state, createdAt: status.createdAt });
}

async function imagesInUse(
  connection: Connection,
  mounts: ImageMounts,
): Answered<ReadonlyMap<string, readonly string[]>> {
  const listed = await connection.call("ListContainers", {});
  if (!listed.ok) return listed;
  const mounted = await mounts.of(listed.value.containers);
  if (!mounted.ok) return mounted;
  return ok(
    new Map(listed.value.containers.map((container) => [container.id, imagesOf(container, mounted.value)] as const)),
  );
}

/** By every name that the runtime has for it: id, reference, and what was asked for. */
function imagesOf(container: Container, mounted: ReadonlyMap<string, readonly Mount[]>): readonly string[] {
  const { imageId, imageRef, image } = container;
  const volumes = (mounted.get(container.id) ?? []).map((mount) => mount.image?.image ?? "");
  return [...new Set([imageId, imageRef, image?.image ?? "", ...volumes])].filter((name) => name !== "");
}
