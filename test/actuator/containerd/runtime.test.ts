import { describe, expect, test } from "vitest";
import type { Blob, Mount } from "../../../actuator/containerd/messages.ts";
import { runtimeOver } from "../../../actuator/containerd/runtime.ts";
import { err } from "../../../api/base/result.ts";
import { runtime as runtimeModel } from "../../../api/model/runtime.ts";
import { criContainer, criImage, EMPTY, fakeConnection } from "./fake-runtime.ts";

const mount = (path: string, of: string | null): Mount => ({
  containerPath: path,
  hostPath: of === null ? path : "",
  image: of === null ? null : { image: of, runtimeHandler: "" },
});
const value = async <T>(asked: Promise<{ ok: true; value: T } | { ok: false; error: unknown }>): Promise<T> => {
  const answer = await asked;
  if (!answer.ok) throw new Error(JSON.stringify(answer.error));
  return answer.value;
};

describe("listing the runtime", () => {
  test("returns the fields that a snapshot needs, without those that no decision reads", async () => {
    const labels = { "io.kubernetes.pod.name": "web", "app.example/secret": "x" };
    const connection = fakeConnection({
      ...EMPTY,
      Version: { runtimeName: "containerd", runtimeVersion: "1.7.0" },
      Status: { info: { config: '{"sandboxImage":"registry/pause:3"}', cniconfig: "{" } },
      ListImages: { images: [criImage("sha256:a", { size: "18446744073", pinned: true, repoTags: ["a:1"] })] },
      ListContainers: {
        containers: [
          criContainer("c1", { labels, image: { image: "a:1", runtimeHandler: "kata" }, imageId: "sha256:a" }),
        ],
      },
      ListPodSandbox: {
        items: [
          {
            id: "s",
            metadata: { name: "web", uid: "u", namespace: "n", attempt: 2 },
            state: "SANDBOX_READY",
            createdAt: "7",
          },
        ],
      },
      ImageFsInfo: {
        imageFilesystems: [{ timestamp: "1", fsId: { mountpoint: "/i" }, usedBytes: { value: "9" }, inodesUsed: null }],
        containerFilesystems: [],
      },
    });
    const listed = await value(runtimeOver(connection).list());
    expect(JSON.stringify(listed)).not.toContain("secret");
    expect(runtimeModel.parse(listed)).toEqual({
      images: [{ id: "sha256:a", repoTags: ["a:1"], repoDigests: [], size: 18446744073, pinned: true, spec: {} }],
      containers: [
        {
          id: "c1",
          podSandboxId: "sandbox",
          metadata: { name: "app", attempt: 0 },
          image: { image: "a:1", runtimeHandler: "kata" },
          imageRef: "sha256:app",
          imageId: "sha256:a",
          state: "CONTAINER_EXITED",
          createdAt: "1700000000000000000",
          labels: { "io.kubernetes.pod.name": "web" },
        },
      ],
      sandboxes: [
        {
          id: "s",
          metadata: { name: "web", uid: "u", namespace: "n", attempt: 2 },
          state: "SANDBOX_READY",
          createdAt: "7",
        },
      ],
      imageFilesystems: {
        imageFilesystems: [{ fsId: { mountpoint: "/i" }, usedBytes: { value: 9 } }],
        containerFilesystems: [],
      },
      sandboxImage: "registry/pause:3",
    });
    expect(connection.asked).not.toContain("ContainerStatus");
  });

  test.each([{}, { config: "no json" }, { config: "null" }, { config: '{"sandboxImage":7}' }])(
    "finds no sandbox image in %j",
    async (info) => {
      const listed = await value(runtimeOver(fakeConnection({ ...EMPTY, Status: { info } })).list());
      expect(listed).not.toHaveProperty("sandboxImage");
    },
  );
});

describe("image layers", () => {
  const REF = "containerd.io/gc.ref.content";
  const blob = (digest: string, size: number, labels: Record<string, string> = {}): Blob => ({
    digest,
    size: String(size),
    labels,
  });
  const layersWith = async (blobs: readonly Blob[] | undefined) => {
    const answers = { ...EMPTY, ListImages: { images: [criImage("config-a"), criImage("config-b")] } };
    const { images } = await value(runtimeOver(fakeConnection(answers, blobs)).list());
    return (images as { layers?: unknown }[]).map(({ layers }) => layers);
  };

  test("come from the manifest with the image's configuration, in order, with the sizes of their blobs", async () => {
    const layers = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`${REF}.l.${i}`, `layer-${i}`]));
    const labels = { [`${REF}.config`]: "config-a", ...layers, "containerd.io/distribution.source.r": "config-b" };
    const sizes = Array.from({ length: 10 }, (_, i) => blob(`layer-${i}`, i + 1));
    const [a, b] = await layersWith([blob("manifest-a", 400, labels), blob("config-a", 70), ...sizes]);
    expect(a).toEqual([
      ...Array.from({ length: 10 }, (_, i) => ({ digest: `layer-${i}`, sizeBytes: i + 1 })),
      // The blob of this layer was discarded after unpacking.
      { digest: "layer-10" },
    ]);
    expect(b).toBeUndefined();
  });

  test("come from the manifest with the lower digest when two have the same configuration", async () => {
    const of = (layer: string) => ({ [`${REF}.config`]: "config-a", [`${REF}.l.0`]: layer });
    const blobs = [blob("m2", 1, of("packed")), blob("m1", 1, of("plain")), blob("plain", 9), blob("packed", 4)];
    expect((await layersWith(blobs))[0]).toEqual([{ digest: "plain", sizeBytes: 9 }]);
    expect((await layersWith(blobs.toReversed()))[0]).toEqual([{ digest: "plain", sizeBytes: 9 }]);
  });

  test("are read from numbered labels without a kind, as old archives have them", async () => {
    const labels = { [`${REF}.2`]: "top", [`${REF}.0`]: "config-b", [`${REF}.1`]: "low" };
    expect((await layersWith([blob("m", 1, labels), blob("low", 5)]))[1]).toEqual([
      { digest: "low", sizeBytes: 5 },
      { digest: "top" },
    ]);
  });

  test("are unknown for an index, and without a content service", async () => {
    const index = blob("index", 1, { [`${REF}.m.0`]: "manifest-a" });
    expect(await layersWith([index])).toEqual([undefined, undefined]);
    expect(await layersWith(undefined)).toEqual([undefined, undefined]);
  });
});

describe("image volumes", () => {
  const asking = (runtimeVersion: string, ids: string[]) => {
    const answers = {
      ...EMPTY,
      Version: { runtimeName: "containerd", runtimeVersion },
      ListContainers: { containers: ids.map((id) => criContainer(id)) },
      ContainerStatus: ({ containerId }: { containerId: string }) => ({
        status: {
          ...criContainer(containerId),
          mounts: [mount("/etc/hosts", null), mount("/model", `sha256:of-${containerId}`)],
        },
      }),
    };
    const connection = fakeConnection(answers);
    return { answers, connection, runtime: runtimeOver(connection) };
  };
  const statuses = (asked: readonly string[]) => asked.filter((method) => method === "ContainerStatus").length;

  test("are requested once in a container's life", async () => {
    const { answers, connection, runtime } = asking("v2.1.0", ["a", "b"]);
    const listed = await value(runtime.list());
    expect(runtimeModel.parse(listed).containers?.map(({ mounts }) => mounts)).toEqual([
      [{ containerPath: "/model", image: { image: "sha256:of-a" } }],
      [{ containerPath: "/model", image: { image: "sha256:of-b" } }],
    ]);
    expect(statuses(connection.asked)).toBe(2);
    answers.ListContainers.containers.push(criContainer("c"));
    const inUse = await value(runtime.imagesInUse());
    expect(inUse.get("c")).toEqual(["sha256:app", "registry/app:1", "sha256:of-c"]);
    expect(inUse.get("a")).toEqual(["sha256:app", "registry/app:1", "sha256:of-a"]);
    expect(statuses(connection.asked)).toBe(3);
  });

  test.each([
    ["1.6.20~ds1", 0],
    ["v2.0.5", 0],
    ["v2.1.0-rc.1", 1],
    ["v2.10.0", 1],
    ["v3.0.0", 1],
    ["unknown", 1],
  ])("containerd %s is asked %i times for them", async (version, questions) => {
    const { connection, runtime } = asking(version, ["a"]);
    await value(runtime.list());
    expect(statuses(connection.asked)).toBe(questions);
  });

  test("are empty for a container that was removed meanwhile; any other error fails the list", async () => {
    const faulty = (code: string) => {
      const { connection } = asking("v2.1.0", ["a", "b"]);
      const call: typeof connection.call = async (method, request) => {
        const { containerId } = request as { containerId?: string };
        return method === "ContainerStatus" && containerId === "a"
          ? err({ call: method, code, message: "words" })
          : connection.call(method, request);
      };
      return runtimeOver({ ...connection, call }).imagesInUse();
    };
    expect((await value(faulty("NOT_FOUND"))).get("a")).toEqual(["sha256:app", "registry/app:1"]);
    expect(await faulty("INTERNAL")).toMatchObject({ ok: false, error: { call: "ContainerStatus", code: "INTERNAL" } });
  });
});

describe("a single call", () => {
  test("reports an image without a size as unknown, not as zero bytes", async () => {
    const runtime = runtimeOver(fakeConnection({ ImageStatus: { image: criImage("sha256:a", { size: "0" }) } }));
    expect(await value(runtime.imageNow("sha256:a", ""))).toEqual({
      id: "sha256:a",
      names: [],
      pinned: false,
      sizeBytes: null,
    });
  });

  test("returns NOT_FOUND for the removal of a missing target", async () => {
    const connection = fakeConnection({});
    const call: typeof connection.call = async (method) => err({ call: method, code: "NOT_FOUND", message: "gone" });
    const runtime = runtimeOver({ ...connection, call });
    expect(await runtime.removeContainer("c")).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
    expect(await runtime.containerNow("c")).toEqual({ ok: true, value: null });
    expect(await runtime.sandboxNow("s")).toEqual({ ok: true, value: null });
    expect(await runtime.imageNow("i", "")).toEqual({ ok: true, value: null });
  });

  test("passes the runtime handler with the image", async () => {
    const asked: unknown[] = [];
    const answer = (request: unknown) => {
      asked.push(request);
      return { image: null };
    };
    const runtime = runtimeOver(fakeConnection({ ImageStatus: answer, RemoveImage: answer }));
    await runtime.imageNow("sha256:a", "kata");
    await runtime.removeImage("sha256:a", "kata");
    const image = { image: "sha256:a", runtimeHandler: "kata" };
    expect(asked).toEqual([{ image }, { image }]);
  });
});
