import { describe, expect, test } from "vitest";
import { fullName } from "../../../api/decide/image-gc/image-names.ts";
import { CONTAINER_STATES } from "../../../api/model/runtime.ts";
import { pod } from "../../kit/pods.ts";
import { runtimeSandbox } from "../../kit/runtime.ts";
import type { Json } from "../../kit/snapshots.ts";
import {
  answer,
  containerFrom,
  facts,
  gcNode,
  HOUR,
  image,
  kept,
  next,
  reasons,
  removedIds,
  START,
} from "./image-gc-kit.ts";

const UNUSED = { operation: "delete-unused" };
const hex = (digit: string): string => digit.repeat(64);
const sha = (digit: string): string => `sha256:${hex(digit)}`;
/** A pass over these images that removes all unused ones. */
const stays = (images: Json[], runtime: Json, more: Json = {}) =>
  answer(gcNode(images, more, runtime), undefined, UNUSED);

describe("an image that a container uses", () => {
  test.each(CONTAINER_STATES)("is in use whatever the container's state: %s", (state) => {
    const labels = { "io.kubernetes.pod.namespace": "ns", "io.kubernetes.pod.name": "p" };
    const a = stays([image("a"), image("b")], { containers: [containerFrom("a", { state, labels })] });
    expect(kept(a)).toEqual({ a: "in-use" });
    expect(a.decision.keep[0]?.usedBy).toEqual([`ns/p app (${state.slice(10).toLowerCase()})`]);
    expect(next(a).records).toEqual([
      ["a", START, START],
      ["b", START, null],
    ]);
  });
  test("lists its first five users, named by the sandbox when labels are missing", () => {
    const metadata = { name: "p", uid: "u", namespace: "ns" };
    const sandboxes = [runtimeSandbox("s", "p", { metadata, state: "SANDBOX_READY" })];
    const containers = Array.from({ length: 9 }, (_, i) => containerFrom("a", { id: `c${i}`, podSandboxId: "s" }));
    const [a] = stays([image("a")], { containers, sandboxes }).decision.keep;
    expect(a?.usedBy).toEqual(Array(5).fill("ns/p app (running)"));
  });
  const listed = image(sha("1"), {
    repoTags: ["docker.io/library/busybox:1.36", "quay.io/x/y:v2"],
    repoDigests: [`quay.io/x/y@${sha("9")}`],
  });
  test.each<[string, Json, boolean]>([
    ["imageId", { imageId: sha("1") }, true],
    ["imageId before imageRef", { imageId: sha("1"), imageRef: sha("2") }, true],
    ["imageRef where imageId is lacking", { imageId: undefined, imageRef: sha("1") }, true],
    ["imageRef where imageId is empty", { imageId: "", imageRef: sha("1") }, true],
    ["an imageRef without sha256:", { imageId: undefined, imageRef: hex("1") }, true],
    ["an older runtime's digest", { imageId: undefined, imageRef: `quay.io/x/y@${sha("9")}` }, true],
    ["an older runtime's tag", { imageId: undefined, imageRef: "", image: { image: "busybox:1.36" } }, true],
    [
      "a tag beside an unknown imageRef",
      { imageId: undefined, imageRef: "x", image: { image: "quay.io/x/y:v2" } },
      true,
    ],
    ["another tag", { imageId: undefined, image: { image: "busybox" } }, false],
    ["another imageId, though a tag fits", { imageId: sha("2"), image: { image: "busybox:1.36" } }, false],
  ])("is found by %s", (_name, how, inUse) => {
    const a = stays([listed], { containers: [containerFrom("", how)] });
    expect(kept(a)).toEqual(inUse ? { [sha("1")]: "in-use" } : {});
    if (!inUse) expect(reasons(a).join()).toContain("container_image_not_listed");
  });
  test("cannot be determined when a container has no image id: the pass is refused", () => {
    const runtime = { containers: [containerFrom("a"), containerFrom("", { image: {} })] };
    const asked = () => stays([image("a")], runtime);
    expect(asked).toThrow("an image collection needs runtime.containers[1].imageId");
  });
});

describe("an image volume", () => {
  const images = [image("a"), image("b", { repoTags: ["quay.io/data:1"] })];
  test("keeps the mounted image, by id and by name", () => {
    for (const reference of ["b", "quay.io/data:1"]) {
      const mounts = [{ containerPath: "/data", image: { image: reference } }, { containerPath: "/etc/hosts" }];
      const a = stays(images, { containers: [containerFrom("a", { mounts })] });
      expect(kept(a)).toEqual({ a: "in-use", b: "image-volume" });
      expect(a.decision.keep.find((k) => k.id === "b")?.usedBy).toEqual(["app (running)"]);
    }
  });
  test("is kept as in-use when a container was also created from it", () => {
    const containers = [containerFrom("a", { mounts: [{ image: { image: "b" } }] }), containerFrom("b", { id: "c2" })];
    expect(kept(stays(images, { containers }))).toEqual({ a: "in-use", b: "in-use" });
  });
  const volumes = [{ name: "d", image: { reference: "quay.io/data:1" } }];
  const pods = [pod("p", { metadata: { namespace: "ns", uid: "u" }, spec: { volumes } })];
  const labels = { "io.kubernetes.pod.uid": "u" };
  test.each<[string, Json, string | undefined]>([
    ["counts while the mounts of its pod's containers are not told", { labels, mounts: undefined }, "image-volume"],
    ["counts where it is not told whose container it is", { mounts: undefined }, "image-volume"],
    ["does not count once the mounts are told", { labels, mounts: [] }, undefined],
    [
      "does not count for another pod's container",
      { labels: { "io.kubernetes.pod.uid": "v" }, mounts: undefined },
      undefined,
    ],
  ])("of a pod %s", (_name, more, why) => {
    const a = stays(images, { containers: [containerFrom("a", more)] }, { pods });
    expect(kept(a)["b"]).toBe(why);
  });
  test("is reported in needs when neither pods nor mounts show whether it is mounted", () => {
    const unsure = stays(images, { containers: [containerFrom("a", { mounts: undefined })] }, { pods: undefined });
    expect(unsure.needs).toEqual(["runtime.containers[0].mounts"]);
  });
});

describe("an image that the runtime needs", () => {
  test("is pinned, or is the one that sandboxes start from", () => {
    const pause = image(sha("a"), {
      repoTags: ["docker.io/library/pause:3"],
      repoDigests: [`docker.io/library/pause@${sha("d")}`],
    });
    for (const sandboxImage of [
      "pause:3",
      sha("a"),
      `docker.io/library/pause@${sha("d")}`,
      `other/pause:3@${sha("d")}`,
    ]) {
      const a = stays([pause, image("p", { pinned: true }), image("x")], { sandboxImage });
      expect(kept(a)).toEqual({ p: "pinned", [sha("a")]: "sandbox-image" });
      const reported = a.reasons.find((r) => r.at === sha("a"))?.because;
      expect(reported).toContainEqual({
        code: "image_of_sandboxes",
        field: "keep",
        numbers: { pinned: false, kubeletKeeps: "pinned" },
      });
    }
    expect(kept(stays([pause], { sandboxImage: "pause:4" }))).toEqual({});
  });
  test.each([
    ["busybox", "docker.io/library/busybox:latest"],
    ["busybox:1", "docker.io/library/busybox:1"],
    ["team/app", "docker.io/team/app:latest"],
    ["docker.io/busybox:1", "docker.io/library/busybox:1"],
    ["index.docker.io/team/app:1", "docker.io/team/app:1"],
    ["localhost/pause:1", "localhost/pause:1"],
    ["localhost:5000/pause", "localhost:5000/pause:latest"],
    ["registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"],
  ])("image name %s is normalised to %s", (short, full) => {
    expect(fullName(short)).toBe(full);
  });
});

describe("runtime handlers of images", () => {
  const handled = (runtimeHandler: string) => image("a", { spec: { runtimeHandler } });
  const gate = { kubeletConfiguration: { imageMinimumGCAge: "0s", featureGates: { RuntimeClassInImageCriApi: true } } };
  const user = (runtimeHandler: string) => containerFrom("a", { image: { image: "a", runtimeHandler } });
  const keys = (a: ReturnType<typeof stays>) => a.decision.remove.map((r) => `${r.id},${r.runtimeHandler}`);

  test("are ignored without the gate RuntimeClassInImageCriApi", () => {
    const a = stays([handled("kata")], { containers: [] });
    expect(keys(a)).toEqual(["a,"]);
    expect(removedIds(stays([handled("kata")], { containers: [user("runc")] }))).toEqual([]);
  });
  test("distinguish images of one id with the gate, in records too", () => {
    const images = [handled("kata"), handled("runc"), handled("")];
    const a = stays(images, { containers: [user("runc")] }, gate);
    expect(keys(a)).toEqual(["a,", "a,kata"]);
    expect(next(a).records).toEqual([
      ["a", START, null, "kata"],
      ["a", START, START, "runc"],
      ["a", START, null],
    ]);
    const known = facts([["a", -HOUR, -HOUR, "kata"]]);
    const later = answer(gcNode(images, gate, { containers: [] }), known, UNUSED);
    expect(keys(later)).toEqual(["a,", "a,runc", "a,kata"]);
    const done = [{ id: "a", runtimeHandler: "kata", end: "removed" }];
    const pass = answer(gcNode(images, gate, { containers: [] }), known, { ...UNUSED, done });
    expect(pass.decision.remove.map((r) => [r.runtimeHandler, r.end])).toEqual([
      ["", "planned"],
      ["runc", "planned"],
      ["kata", "removed"],
    ]);
    expect(next(pass).records.map((r) => r[3])).toEqual(["runc", undefined]);
    expect(next(pass).removed[0]).toMatchObject({ id: "a", runtimeHandler: "kata", times: 1 });
  });
  test("keep all images of an id when a container's handler matches none of them", () => {
    const a = stays([handled("kata")], { containers: [user("runc")] }, gate);
    expect(kept(a)).toEqual({ a: "in-use" });
    expect(reasons(a)).toContain("runtime_handler_differs a,kata");
  });
  test("without an image id give an InvalidImageID event with the gate, and are ignored without it", () => {
    const images = [image("", { spec: { runtimeHandler: "kata" } }), image("b")];
    const a = stays(images, { containers: [] }, gate);
    const message = "ImageID is not valid, skipping, image: ,kata";
    expect(a.decision.events).toEqual([{ type: "Warning", reason: "InvalidImageID", message }]);
    expect(removedIds(a)).toEqual(["b"]);
    expect(kept(a)).toEqual({ "": "invalid-id" });
    const without = stays(images, { containers: [] });
    expect([without.decision.events, removedIds(without)]).toEqual([[], ["b"]]);
  });
});
