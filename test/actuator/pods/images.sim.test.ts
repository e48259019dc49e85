import { describe, expect, test } from "vitest";
import type { PodEvent } from "../../../actuator/lifecycle/record.ts";
import { PodEvents } from "../../../actuator/pods/records/records.ts";
import { type ImageOptions, Images, withDefaultTag } from "../../../actuator/pods/sync/images.ts";
import { SimClock } from "../../sim/clock.ts";
import { FakePodRuntime } from "../../sim/fake-pod-runtime.ts";
import { PodTime } from "../../sim/pod-time.ts";

type Policy = "Always" | "IfNotPresent" | "Never";
function world(options: Partial<ImageOptions> = {}) {
  const time = new PodTime(new SimClock(1_000_000));
  const runtime = new FakePodRuntime(time);
  const images = new Images(runtime, time, { serializeImagePulls: true, maxParallelImagePulls: null, ...options });
  const events: PodEvent[] = [];
  const of = new PodEvents({ namespace: "ns", name: "web", uid: "u" }, time, (event) => events.push(event));
  const takeMessages = () => events.splice(0).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
  const ensure = (image: string, imagePullPolicy: Policy = "IfNotPresent", uid = "u") =>
    images.ensure(uid, { name: "app", image, imagePullPolicy }, of);
  const settled = (image: string, policy: Policy = "IfNotPresent", uid = "u") => time.drive(ensure(image, policy, uid));
  return { time, runtime, takeMessages, ensure, settled };
}
const PRESENT = 'Normal Pulled: Container image "busybox" already present on machine and can be accessed by the pod';
const NOT_FOUND =
  'rpc error: code = NotFound desc = failed to pull and unpack image "gone:1": failed to resolve reference "gone:1": gone:1: not found';

describe("ensuring an image", () => {
  test("does not pull an image that is present, unless the policy is Always", async () => {
    const { runtime, takeMessages, settled } = world();
    runtime.images.set("busybox:latest", { id: "sha256:1", user: "1000" });
    runtime.registry.set("busybox:latest", { id: "sha256:2", takesMs: 1500, sizeBytes: 42 });
    const there = { ok: true, value: { id: "sha256:1", user: "1000" } };
    expect(await settled("busybox")).toEqual(there);
    expect(await settled("busybox", "Never")).toEqual(there);
    expect(takeMessages()).toEqual([PRESENT, PRESENT]);
    expect(await settled("busybox", "Always")).toMatchObject({ ok: true, value: { id: "sha256:2", user: null } });
    expect(takeMessages()).toEqual([
      'Normal Pulling: Pulling image "busybox"',
      'Normal Pulled: Successfully pulled image "busybox" in 1.5s (1.5s including waiting). Image size: 42 bytes.',
    ]);
  });
  test("reports ErrImageNeverPull when the image is missing and the policy is Never", async () => {
    const { takeMessages, settled } = world();
    const message = 'Container image "busybox" is not present with pull policy of Never';
    expect(await settled("busybox", "Never")).toEqual({ ok: false, error: { reason: "ErrImageNeverPull", message } });
    expect(takeMessages()).toEqual([`Warning ErrImageNeverPull: ${message}`]);
  });
  test("backs off after a failed pull, doubling the delay, for that pod alone", async () => {
    const { time, runtime, takeMessages, settled } = world();
    const failed = { ok: false, error: { reason: "ErrImagePull", message: NOT_FOUND } };
    const heldBack = {
      ok: false,
      error: {
        reason: "ImagePullBackOff",
        message: `Back-off pulling image "gone:1": ErrImagePull: ${NOT_FOUND}`,
      },
    };
    expect(await settled("gone:1")).toEqual(failed);
    expect(takeMessages()).toEqual([
      'Normal Pulling: Pulling image "gone:1"',
      `Warning Failed: Failed to pull image "gone:1": ${NOT_FOUND}`,
    ]);
    for (const waitMs of [10, 20, 40, 80, 160, 300, 300].map((s) => s * 1000)) {
      await time.pass(waitMs - 1);
      expect(await settled("gone:1")).toEqual(heldBack);
      expect(takeMessages()).toEqual(['Normal BackOff: Back-off pulling image "gone:1"']);
      await time.pass(1);
      expect(await settled("gone:1")).toEqual(failed);
      takeMessages();
    }
    expect(await settled("gone:1", "IfNotPresent", "other")).toEqual(failed);
    await time.pass(600_001);
    await settled("gone:1");
    await time.pass(10_000);
    expect(await settled("gone:1")).toEqual(failed);
    expect(runtime.counts.get("PullImage")).toBe(11);
  });
  test("keeps its back-off when the wall clock is set", async () => {
    const { time, settled } = world();
    await settled("gone:1");
    time.wallOffsetMs = 3_600_000;
    expect(await settled("gone:1")).toMatchObject({ error: { reason: "ImagePullBackOff" } });
  });
  test("reports ImageInspectError when the runtime cannot tell the image's status", async () => {
    const { runtime, takeMessages, settled } = world();
    runtime.on = () => ({ effect: false, answer: { call: "ImageStatus", code: "UNKNOWN", message: "disk" } });
    const message = 'Failed to inspect image "": rpc error: code = Unknown desc = disk';
    expect(await settled("busybox")).toEqual({ ok: false, error: { reason: "ImageInspectError", message } });
    expect(takeMessages()).toEqual([`Warning InspectFailed: ${message}`]);
  });
  test.each([
    ["UNKNOWN", "no room", "ErrImagePull", "no room"],
    [
      "UNKNOWN",
      "RegistryUnavailable: it is closed",
      "RegistryUnavailable",
      "image pull failed for x:1 because the registry is unavailable: it is closed",
    ],
    [
      "UNKNOWN",
      "SignatureValidationFailed",
      "SignatureValidationFailed",
      "image pull failed for x:1 because the signature validation failed",
    ],
  ])("fails in the kubelet's words for the runtime's answer %s %s", async (code, message, reason, said) => {
    const { runtime, settled } = world();
    runtime.registry.set("x:1", { id: "", fault: { call: "PullImage", code, message } });
    expect(await settled("x:1")).toEqual({ ok: false, error: { reason, message: said } });
  });
});

describe("pulls", () => {
  const timed = async (options: Partial<ImageOptions>) => {
    const { time, runtime, ensure } = world(options);
    for (const name of ["a:1", "b:1", "c:1"]) runtime.registry.set(name, { id: name, takesMs: 10_000 });
    const from = time.monotonicMs();
    const ends = ["a:1", "b:1", "c:1"].map(async (name) => {
      await ensure(name);
      return (time.monotonicMs() - from) / 1000;
    });
    return time.drive(Promise.all(ends));
  };
  test("run one at a time, up to maxParallelImagePulls, or all at once, as configured", async () => {
    expect(await timed({})).toEqual([10, 20, 30]);
    expect(await timed({ serializeImagePulls: false, maxParallelImagePulls: 2 })).toEqual([10, 10, 20]);
    expect(await timed({ serializeImagePulls: false })).toEqual([10, 10, 10]);
  });
});

test("a finished pull lets exactly one waiting pull go on", async () => {
  const { time, runtime, ensure } = world();
  const ends: string[] = [];
  const pull = async (name: string) => {
    runtime.registry.set(name, { id: name, takesMs: 10_000 });
    await ensure(name);
    ends.push(`${name} ${time.monotonicMs() - 1_000_000}`);
  };
  const first = [pull("a:1"), pull("b:1")];
  await time.pass(15_000);
  await time.drive(Promise.all([...first, pull("c:1")]));
  expect(ends).toEqual(["a:1 10000", "b:1 20000", "c:1 30000"]);
});

const DIGEST = `sha256:${"a".repeat(64)}`;
test.each([
  ["busybox", "busybox:latest"],
  ["localhost:5000/a/b", "localhost:5000/a/b:latest"],
  ["localhost:5000/a/b:1.2", "localhost:5000/a/b:1.2"],
  [`busybox@${DIGEST}`, `busybox@${DIGEST}`],
  ["Registry.example/x", "Registry.example/x:latest"],
])("the image %s is requested from the runtime as %s", (image, asked) => {
  expect(withDefaultTag(image)).toEqual({ ok: true, value: asked });
});
test.each(["", "UPPER", "a b", "a:b:c", "x@sha256:12", "../a", "-a"])("%j is not a valid image name", (image) => {
  expect(withDefaultTag(image)).toMatchObject({
    ok: false,
    error: expect.stringContaining("couldn't parse image name"),
  });
});
