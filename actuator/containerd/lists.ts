import type { Layer } from "./layers.ts";
import type { Container, FileSystemUsage, Image, ImageSpec, Mount, Sandbox, TextMap } from "./messages.ts";
import type { RuntimeLists } from "./port.ts";

/** All lists of a runtime, of one moment. */
export interface Listed {
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
  readonly layers: ReadonlyMap<string, readonly Layer[]>;
}

/** `runtime` of a NodeSnapshot: crictl's JSON, less what no decision reads and what the runtime did not tell. */
export function runtimeListsOf(listed: Listed): RuntimeLists {
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

const told = <K extends string>(key: K, value: string) => (value === "" ? {} : { [key]: value });
const specOf = (spec: ImageSpec | null) =>
  spec === null ? {} : { ...told("image", spec.image), ...told("runtimeHandler", spec.runtimeHandler) };

function imageOf(image: Image, layers: readonly Layer[] | undefined) {
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
    ...told("podSandboxId", container.podSandboxId),
    metadata: container.metadata ?? { name: "" },
    image: specOf(container.image),
    ...told("imageRef", container.imageRef),
    ...told("imageId", container.imageId),
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

/** containerd 1.x tells its configuration as a JSON text under `config`; no other form is known, none is an error. */
function sandboxImageOf(info: TextMap): string | undefined {
  try {
    const config: unknown = JSON.parse(info["config"] ?? "null");
    const image = (config as { readonly sandboxImage?: unknown } | null)?.sandboxImage;
    return typeof image === "string" && image !== "" ? image : undefined;
  } catch {
    return undefined;
  }
}
