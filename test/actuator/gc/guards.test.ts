import { describe, expect, test } from "vitest";
import type { ListedContainer, ListedImage, ListedSandbox, Runtime } from "../../../actuator/containerd/cri.ts";
import type { NodeObservation } from "../../../actuator/gc/observe-node.ts";
import { guardContainer, guardImage, guardSandbox } from "../../../actuator/gc/remove.ts";
import type { ContainerRemoval } from "../../../api/model/container-gc.ts";
import type { ImageRemoval } from "../../../api/model/image-gc.ts";
import { faultOf } from "../../sim/fake-runtime.ts";
import { lookWith, planned, surprise } from "./guarded.ts";

const answer = async <T>(value: T) => ({ ok: true as const, value });
const silent = async () => ({ ok: false as const, error: faultOf("Status", "UNAVAILABLE", "gone") });
const FAULT = { state: "fault", message: "Status: UNAVAILABLE: gone" };
const GONE = surprise("it is not there any more");
const ANOTHER = surprise("another one has its id now");

describe("guardImage", () => {
  const removal = { id: "sha256:a", runtimeHandler: "kata", names: ["old:1"] } as unknown as ImageRemoval;
  const now: ListedImage = { id: "sha256:a", names: ["new:1"], pinned: false, sizeBytes: 1 };
  const guarded = (image: Runtime["imageNow"], used: Runtime["imagesInUse"] = () => answer(new Map())) =>
    guardImage(removal, { imageNow: image, imagesInUse: used } as Runtime);
  const usedAs = (...references: readonly string[]) => {
    const used = new Map([
      ["c1", ["sha256:b", "other:1"]],
      ["c2", references],
    ]);
    return guarded(
      () => answer(now),
      () => answer(used),
    );
  };

  test("inspects the image with its runtime handler", async () => {
    const asked: string[] = [];
    const look = (...args: readonly string[]) => {
      asked.push(...args);
      return answer(now);
    };
    expect(await guarded(look)).toEqual(planned());
    expect(asked).toEqual(["sha256:a", "kata"]);
  });

  test.each([
    ["nobody says what it is", silent, FAULT],
    ["is gone", () => answer(null), GONE],
    ["has another id", () => answer({ ...now, id: "sha256:b" }), surprise("its id is sha256:b now")],
    ["is pinned", () => answer({ ...now, pinned: true }), surprise("it is pinned now")],
  ])("keeps the image: %s", async (_, image, found) => expect(await guarded(image)).toEqual(found));

  test("keeps the image when the images in use cannot be listed", async () => {
    expect(await guarded(() => answer(now), silent)).toEqual(FAULT);
  });

  test.each([
    ["its id", ["sha256:a"]],
    ["its id alone", ["a"]],
    ["the name that it had", ["docker.io/library/old:1"]],
    ["the name that it has", ["docker.io/library/new:1"]],
    ["one of several references, the first", ["new:1", "sha256:b"]],
    ["one of several references, the last", ["sha256:b", "new:1"]],
  ])("keeps an image that a container refers to by %s", async (_, references) => {
    expect(await usedAs(...references)).toEqual(surprise("container c2 uses it now"));
  });

  test("lets an image be removed that no container refers to", async () => {
    expect(await usedAs("sha256:aa", "docker.io/library/new:2")).toEqual(planned());
    expect(await usedAs()).toEqual(planned());
  });
});

describe("guardContainer", () => {
  const now: ListedContainer = {
    id: "x",
    state: "CONTAINER_EXITED",
    createdAt: "7",
    imageId: null,
    imageRef: null,
    sandboxId: "s",
    logPath: "/log",
  };
  const guarded = (containerNow: Runtime["containerNow"], stopFirst = false, look = lookWith()) =>
    guardContainer({ id: "x", stopFirst } as ContainerRemoval, look, { containerNow } as Runtime);

  test.each([
    ["nobody says what it is", silent, FAULT],
    ["is gone", () => answer(null), GONE],
    ["has another id", () => answer({ ...now, id: "y" }), ANOTHER],
    ["was made at another time", () => answer({ ...now, createdAt: "8" }), ANOTHER],
    ["runs", () => answer({ ...now, state: "CONTAINER_RUNNING" }), surprise("it is running now")],
  ])("keeps the container: %s", async (_, container, found) => expect(await guarded(container)).toEqual(found));

  test("keeps a container that was not listed when the pass began", async () => {
    expect(await guarded(() => answer(now), false, lookWith({ createdAt: new Map() }))).toEqual(ANOTHER);
  });

  test.each([
    ["CONTAINER_EXITED", false, false],
    ["CONTAINER_CREATED", false, false],
    ["CONTAINER_UNKNOWN", false, true],
    ["CONTAINER_EXITED", true, true],
  ])(
    "lets a container in state %s, to be stopped first: %s, be removed with its log",
    async (state, asked, stopFirst) => {
      expect(await guarded(() => answer({ ...now, state }), asked)).toEqual(planned({ stopFirst, logPath: "/log" }));
    },
  );
});

describe("guardSandbox", () => {
  const now: ListedSandbox = { id: "x", state: "SANDBOX_NOTREADY", createdAt: "7" };
  const inSandbox = (sandboxId: string) => () => answer({ sandboxId } as ListedContainer);
  const guarded = (
    over: Partial<Runtime> = {},
    containers: readonly string[] = [],
    listed: NodeObservation["sandboxOf"] = new Map(),
  ) => {
    const imagesInUse = () => answer(new Map(containers.map((id) => [id, []])));
    const runtime = { sandboxNow: () => answer(now), imagesInUse, containerNow: silent, ...over } as Partial<Runtime>;
    return guardSandbox({ id: "x" } as ContainerRemoval, lookWith({ sandboxOf: listed }), runtime as Runtime);
  };

  test.each([
    ["nobody says what it is", silent, FAULT],
    ["is gone", () => answer(null), GONE],
    ["has another id", () => answer({ ...now, id: "y" }), ANOTHER],
    ["was made at another time", () => answer({ ...now, createdAt: "8" }), ANOTHER],
    ["is ready", () => answer({ ...now, state: "SANDBOX_READY" }), surprise("it is ready now")],
    ["is in a state that there is not yet", () => answer({ ...now, state: "2" }), surprise("it is ready now")],
  ])("keeps the sandbox: %s", async (_, sandboxNow, found) => expect(await guarded({ sandboxNow })).toEqual(found));

  test("keeps the sandbox when the containers cannot be listed", async () => {
    expect(await guarded({ imagesInUse: silent })).toEqual(FAULT);
  });

  test("lets an empty sandbox be removed, without inspecting containers listed in other sandboxes", async () => {
    expect(await guarded()).toEqual(planned());
    expect(
      await guarded(
        {},
        ["c1", "c2"],
        new Map([
          ["c1", "y"],
          ["c2", ""],
        ]),
      ),
    ).toEqual(planned());
  });

  test.each([
    [
      "was listed in it",
      { containerNow: silent },
      new Map([
        ["c1", "y"],
        ["c2", "x"],
      ]),
      "c2",
    ],
    ["came since", { containerNow: inSandbox("x") }, new Map([["c1", "y"]]), "c2"],
  ])("keeps a sandbox with a container that %s", async (_, over, listed, container) => {
    expect(await guarded(over, ["c1", "c2"], listed)).toEqual(surprise(`container ${container} is in it now`));
  });

  test("keeps a sandbox when a new container's sandbox is unknown, but not when that was removed or is another one", async () => {
    expect(await guarded({ containerNow: silent }, ["c1"])).toEqual(FAULT);
    expect(await guarded({ containerNow: () => answer(null) }, ["c1"])).toEqual(planned());
    expect(await guarded({ containerNow: inSandbox("y") }, ["c1"])).toEqual(planned());
  });
});
