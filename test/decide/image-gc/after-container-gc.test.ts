import { describe, expect, test } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { answer, container, image, kept, node, refusal, removedIds } from "./asking.ts";

const dead = (id: string, uid: string, imageId: string, attempt: number): Json =>
  container(imageId, {
    id,
    podSandboxId: `s-${uid}`,
    metadata: { name: "c", attempt },
    state: "CONTAINER_EXITED",
    createdAt: String(1_000_000_000n * BigInt(attempt + 1)),
    labels: { "io.kubernetes.pod.uid": uid, "io.kubernetes.pod.name": "p", "io.kubernetes.pod.namespace": "ns" },
  });
const sandbox = (uid: string): Json => ({
  id: `s-${uid}`,
  metadata: { name: "p", uid, namespace: "ns" },
  state: uid === "u" ? "SANDBOX_READY" : "SANDBOX_NOTREADY",
  createdAt: "1",
});
const pods = [{ metadata: { name: "p", namespace: "ns", uid: "u" }, spec: { containers: [{ name: "c" }] } }];
/** A pod that restarted twice with two images, and one that is gone. */
const input = node(
  ["first", "last", "of-gone"].map((id) => image(id)),
  { pods },
  {
    containers: [dead("c1", "u", "first", 0), dead("c2", "u", "last", 1), dead("c3", "gone", "of-gone", 0)],
    sandboxes: [sandbox("u"), sandbox("gone")],
  },
);

describe("after the containers were collected", () => {
  test("images of those that go first are not in use", () => {
    const before = answer(input, undefined, { operation: "delete-unused" });
    expect([removedIds(before), Object.values(kept(before))]).toEqual([[], ["in-use", "in-use", "in-use"]]);
    const after = answer(input, undefined, { operation: "delete-unused", afterContainerGc: true });
    expect(removedIds(after)).toEqual(["first", "of-gone"]);
    expect(kept(after)).toEqual({ last: "in-use" });
  });
  test("nothing is told, where those cannot be told", () => {
    const bare = node([image("a")], { pods: undefined });
    expect(answer(bare, undefined, { operation: "delete-unused" }).verdict).toBe("removes");
    const refused = refusal(bare, undefined, { operation: "delete-unused", afterContainerGc: true });
    expect([refused.code, refused.needs.includes("pods")]).toEqual(["needs_input", true]);
  });
});
