import { onTestFinished } from "vitest";
import { RAM_DISK } from "../../kit/ram-disk.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { SimApi } from "../../sim/api.ts";
import { SimClock } from "../../sim/clock.ts";
import type { Call, FakeContainer, FakeImage, FakeSandbox } from "../../sim/fake-runtime.ts";
import { GcNode, type GcPod } from "../../sim/gc-node.ts";

export const START = Date.parse("2026-01-01T00:00:00Z");
export const MINUTE = 60_000;

/** A simulated node of 1000 bytes of disk without eviction thresholds, whose clock shows START. */
export function gcFixture(given: ConstructorParameters<typeof GcNode>[3] = {}) {
  const dir = scratchFolder(RAM_DISK);
  const clock = new SimClock(START);
  const api = new SimApi(clock);
  onTestFinished(() => api.store.close());
  const node = new GcNode(clock, dir, api.fetch, { joinsEviction: false, ...given });
  return { dir, clock, api, node };
}

export const fakeImage = (id: string, bytes = 100, pinned = false): FakeImage => ({
  id,
  tags: [`${id}:v1`],
  bytes,
  pinned,
});
export const fakeContainer = (
  id: string,
  sandbox: string,
  image: string,
  more: Partial<FakeContainer> = {},
): FakeContainer => ({
  id,
  sandbox,
  name: "app",
  attempt: 0,
  image,
  state: "CONTAINER_EXITED",
  createdAtMs: START - MINUTE,
  ...more,
});
export const fakeSandbox = (
  id: string,
  uid: string,
  state: FakeSandbox["state"] = "SANDBOX_NOTREADY",
): FakeSandbox => ({
  id,
  pod: { namespace: "ns", name: `pod-${uid}`, uid },
  attempt: 0,
  state,
  createdAtMs: START - MINUTE,
});
export const gcPod = (uid: string): GcPod => ({
  metadata: { namespace: "ns", name: `pod-${uid}`, uid },
  spec: { containers: [{ name: "app", image: "app" }] },
});

export function put(node: GcNode, ...things: readonly (FakeImage | FakeContainer | FakeSandbox)[]): void {
  for (const one of things) {
    if ("bytes" in one) node.runtime.images.set(one.id, one);
    else if ("sandbox" in one) node.runtime.containers.set(one.id, one);
    else node.runtime.sandboxes.set(one.id, one);
  }
}

/**
 * Nine images of 100 bytes, detected long enough ago to be collected. The disk is 90 % full, and 100 bytes must be
 * freed to reach 80 %.
 */
export async function fullOfImages({ node, clock }: ReturnType<typeof gcFixture>): Promise<void> {
  put(node, ...Array.from({ length: 9 }, (_, i) => fakeImage(`sha256:${i}`)));
  await node.turn(["image-gc"]);
  await clock.advanceTo(START + 5 * MINUTE);
}

/** Runs `act` at the first call of a method, before the call is answered. */
export function when(
  { runtime }: GcNode,
  call: string,
  act: (call: Call) => ReturnType<typeof runtime.on>,
  phase = "before",
): void {
  runtime.on = (one) => {
    if (one.call !== call || one.phase !== phase) return undefined;
    runtime.on = () => undefined;
    return act(one);
  };
}
