import { describe, expect, test } from "vitest";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import type { Kind } from "../../api/model/decision.ts";
import { answer, fresh, type Of, post, problemOf } from "./api-subject.ts";
import { diskSnapshot, localImage, webContainer, webSandbox } from "./gc-snapshots.ts";

/** The name, the change to the snapshot's runtime or to the ask, and the path in the answer. */
type Case = [name: string, kind: Kind, body: { readonly runtime?: object; readonly ask?: unknown }, path: string];
const BAD: readonly Case[] = [
  [
    "an unknown container state",
    "container-gc",
    { runtime: { containers: [webContainer("x", "CONTAINER_PAUSED")] } },
    "snapshot.runtime.containers[0].state",
  ],
  [
    "an unknown sandbox state",
    "container-gc",
    { runtime: { sandboxes: { items: [{ ...webSandbox, state: "READY" }] } } },
    "snapshot.runtime.sandboxes[0].state",
  ],
  [
    "a negative size",
    "image-gc",
    { runtime: { images: [localImage("x", { size: -1 })] } },
    "snapshot.runtime.images[0].size",
  ],
  [
    "half a byte",
    "image-gc",
    { runtime: { images: [localImage("x", { size: 0.5 })] } },
    "snapshot.runtime.images[0].size",
  ],
  [
    "a size in words",
    "image-gc",
    { runtime: { images: [localImage("x", { size: "1 GB" })] } },
    "snapshot.runtime.images[0].size",
  ],
  [
    "a size beyond exact arithmetic",
    "image-gc",
    { runtime: { images: { images: [localImage("x", { size: "9007199254740993" })] } } },
    "snapshot.runtime.images[0].size",
  ],
  ["an image without an id", "image-gc", { runtime: { images: [{ size: "1" }] } }, "snapshot.runtime.images[0].id"],
  ["images that are a text", "image-gc", { runtime: { images: "all" } }, "snapshot.runtime.images"],
  [
    "a container with an invalid creation time",
    "container-gc",
    { runtime: { containers: [webContainer("x", "CONTAINER_EXITED", { createdAt: "yesterday" })] } },
    "snapshot.runtime.containers[0].createdAt",
  ],
  [
    "a container created before 1970",
    "container-gc",
    { runtime: { containers: [webContainer("x", "CONTAINER_EXITED", { createdAt: -1 })] } },
    "snapshot.runtime.containers[0].createdAt",
  ],
  [
    "20,001 images",
    "image-gc",
    { runtime: { images: Array.from({ length: 20_001 }, (_, i) => ({ id: `${i}` })) } },
    "snapshot.runtime.images",
  ],
  ["an operation that there is not", "image-gc", { ask: { operation: "delete-all" } }, "ask.operation"],
  ["an operation that is none", "container-gc", { ask: { operation: 1 } }, "ask.operation"],
  ["a misspelt ask", "container-gc", { ask: { operations: "delete-unused" } }, "ask.operations"],
  ["an end that there is not", "image-gc", { ask: { done: [{ id: "a", end: "gone" }] } }, "ask.done[0].end"],
  ["a done without an id", "container-gc", { ask: { done: [{ end: "removed" }] } }, "ask.done[0].id"],
  ["half a file system", "image-gc", { ask: { fileSystem: { capacityBytes: 1 } } }, "ask.fileSystem.availableBytes"],
  ["what container-gc has no use for", "container-gc", { ask: { afterContainerGc: true } }, "ask.afterContainerGc"],
  ["facts without a time", "image-gc", { ask: { facts: { records: [] } } }, "ask.facts.atMs"],
  [
    "facts with an invalid time of an image",
    "image-gc",
    { ask: { facts: { atMs: 1, beganAtMs: 1, failed: false, records: [["a", "x", null]], removed: [] } } },
    "ask.facts.records[0][1]",
  ],
  ["facts where nothing is remembered", "container-gc", { ask: { facts: {} } }, "ask.facts"],
];

export function collectionsAskedBadly(of: Of): void {
  describe.each(BAD)("%s", (_, kind, { runtime, ask }, path) => {
    test(`is a 400 with the path ${path}`, async () => {
      const base = diskSnapshot(fresh("node"), 0, []);
      const snapshot = { ...base, runtime: { ...base.runtime, ...runtime } };
      const response = await post(of(), `/v1/decisions/${kind}`, { snapshot, ...(ask === undefined ? {} : { ask }) });
      expect((await problemOf(response, "invalid_input")).issues?.map((issue) => issue.path)).toContain(path);
    });
  });

  test("with one of the runtime's lists missing, nothing is decided and needs names it", async () => {
    const { runtime, ...base } = diskSnapshot(fresh("node"), 0, []);
    const missing = async (kind: Kind, list: keyof typeof runtime) => {
      const { [list]: _, ...rest } = runtime;
      const response = await post(of(), `/v1/decisions/${kind}`, { snapshot: { ...base, runtime: rest } });
      return (await problemOf(response, "needs_input")).needs;
    };
    expect(await missing("image-gc", "images")).toEqual(["runtime.images"]);
    expect(await missing("image-gc", "containers")).toEqual(["runtime.containers"]);
    expect(await missing("container-gc", "containers")).toEqual(["runtime.containers"]);
    expect(await missing("container-gc", "sandboxes")).toEqual(["runtime.sandboxes"]);
  });

  test.each(["image-gc", "container-gc"] as const)(
    "%s ignores a reported removal of an unknown object",
    async (kind) => {
      const done = [{ id: "sha256:nobody", end: "removed" }];
      const snapshot = diskSnapshot(fresh("node"), 0, []);
      const { decision } = await answer(
        await post(of(), `/v1/decisions/${kind}`, { snapshot, ask: { done } }),
        decisionAnswer,
      );
      expect(decision).toMatchObject({ remove: [] });
    },
  );

  test("an image file system of size 0 gives the kubelet's event, and removes nothing", async () => {
    const base = diskSnapshot(fresh("node"), 0, [localImage("a")]);
    const stats = { node: { runtime: { imageFs: { capacityBytes: 0, availableBytes: 0 } } } };
    const body = { snapshot: { ...base, stats } };
    const { decision, verdict } = await answer(await post(of(), "/v1/decisions/image-gc", body), decisionAnswer);
    expect(verdict).toBe("fails");
    expect(decision).toMatchObject({
      remove: [],
      error: "invalid capacity 0 on image filesystem",
      events: [{ type: "Warning", reason: "InvalidDiskCapacity", message: "invalid capacity 0 on image filesystem" }],
    });
  });
}
