import { describe, expect, test } from "vitest";
import { pod } from "../../kit/pods.ts";
import { podLabels, runtimeSandbox } from "../../kit/runtime.ts";
import type { Json } from "../../kit/snapshots.ts";
import { answer, containerFrom, gcNode, image, kept, refusal, removedIds } from "./image-gc-kit.ts";

const dead = (id: string, uid: string, imageId: string, attempt: number): Json =>
  containerFrom(imageId, {
    id,
    podSandboxId: `s-${uid}`,
    metadata: { name: "c", attempt },
    state: "CONTAINER_EXITED",
    createdAt: String(1_000_000_000n * BigInt(attempt + 1)),
    labels: podLabels("p", "ns", uid),
  });
const sandbox = (uid: string, state: string): Json =>
  runtimeSandbox(`s-${uid}`, "p", { metadata: { name: "p", uid, namespace: "ns" }, state });
const pods = [pod("p", { metadata: { namespace: "ns", uid: "u" } })];
/** A pod that restarted twice, with two images, and a removed pod. */
const input = gcNode(
  ["first", "last", "of-gone"].map((id) => image(id)),
  { pods },
  {
    containers: [dead("c1", "u", "first", 0), dead("c2", "u", "last", 1), dead("c3", "gone", "of-gone", 0)],
    sandboxes: [sandbox("u", "SANDBOX_READY"), sandbox("gone", "SANDBOX_NOTREADY")],
  },
);

describe("image GC with afterContainerGc", () => {
  test("does not count images of containers that container GC removes first as in use", () => {
    const before = answer(input, undefined, { operation: "delete-unused" });
    expect([removedIds(before), Object.values(kept(before))]).toEqual([[], ["in-use", "in-use", "in-use"]]);
    const after = answer(input, undefined, { operation: "delete-unused", afterContainerGc: true });
    expect(removedIds(after)).toEqual(["first", "of-gone"]);
    expect(kept(after)).toEqual({ last: "in-use" });
  });
  test("is refused when what container GC removes cannot be decided", () => {
    const bare = gcNode([image("a")], { pods: undefined });
    expect(answer(bare, undefined, { operation: "delete-unused" }).verdict).toBe("removes");
    const refused = refusal(bare, undefined, { operation: "delete-unused", afterContainerGc: true });
    expect([refused.code, refused.needs.includes("pods")]).toEqual(["needs_input", true]);
  });
});
