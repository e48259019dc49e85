import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Done } from "../../../api/model/container-gc.ts";
import type { ImageRemoval } from "../../../api/model/image-gc.ts";
import { runtimeContainer } from "../../kit/runtime.ts";
import type { Json } from "../../kit/snapshots.ts";
import { type Answer, answer, iso, START } from "./image-gc-kit.ts";

/**
 * Random nodes over several passes, with the answers of the image manager of v1.36.3 itself, run as a library on a
 * simulated clock: failing removals, a maximum age, runtime handlers, image volumes, unknown capacities, sizes up to
 * 2^53. No two images are equal in the kubelet's sort order, and no image is kept here that the kubelet would remove.
 */
interface Listed {
  readonly id: string;
  readonly runtimeHandler?: string;
}
interface Pass {
  readonly afterMs: number;
  /** Images pulled before the pass, unless they exist already. */
  readonly arrive: readonly (Listed & { readonly size: number; readonly pinned?: boolean })[];
  readonly inUse: readonly Listed[];
  readonly mounted: readonly string[];
  /** Maps `ID` or `ID,HANDLER` to the runtime's error message. */
  readonly fails: Readonly<Record<string, string>>;
  readonly capacityBytes: number | null;
  readonly availableBytes: number | null;
  readonly operation: string;
  readonly tried: readonly string[];
  readonly removed: readonly string[];
  readonly error: string | null;
  readonly events: readonly string[];
}
interface Run {
  readonly highThresholdPercent: number;
  readonly lowThresholdPercent: number;
  readonly minAgeNanos: number;
  readonly maxAgeNanos: number;
  readonly beganMs: number;
  readonly byHandler: boolean;
  readonly steps: readonly Pass[];
}
const file = new URL("../../data/image-gc/kubelet-passes.jsonl.gz", import.meta.url);
const runs = gunzipSync(readFileSync(file))
  .toString("utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Run);

const keyOf = ({ id, runtimeHandler = "" }: Listed): string => (runtimeHandler === "" ? id : `${id},${runtimeHandler}`);
const user = (id: string, imageId: string, runtimeHandler: string, mounts: Json[]): Json =>
  runtimeContainer(id, { imageId, image: { image: imageId, runtimeHandler }, mounts });
function inputOf(
  run: Run,
  { inUse, mounted, capacityBytes, availableBytes }: Pass,
  now: number,
  on: Pass["arrive"],
): Json {
  // the recorded manager ran without the kubelet's timer, which may be off
  const hasTimer = run.highThresholdPercent < 100 || run.maxAgeNanos > 0;
  return {
    observedAt: iso(now),
    pods: [],
    kubelet: { startedAt: iso(START + run.beganMs) },
    kubeletConfiguration: {
      imageGCHighThresholdPercent: run.highThresholdPercent,
      imageGCLowThresholdPercent: run.lowThresholdPercent,
      imageMinimumGCAge: `${run.minAgeNanos}ns`,
      imageMaximumGCAge: hasTimer ? `${run.maxAgeNanos}ns` : "2000000h",
      featureGates: { RuntimeClassInImageCriApi: run.byHandler },
    },
    stats: { node: { runtime: { imageFs: { capacityBytes, availableBytes } } } },
    runtime: {
      images: on.map(({ id, size, pinned, runtimeHandler }) => ({
        id,
        size,
        pinned,
        spec: { image: id, runtimeHandler },
      })),
      containers: [
        ...inUse.map((u, i) => user(`c${i}`, u.id, u.runtimeHandler ?? "", [])),
        ...mounted.map((image, i) => user(`v${i}`, "none", "", [{ image: { image } }])),
      ],
    },
  };
}

/** Carries out one removal after another as an actuator does, and reports each before the next one begins. */
function carriedOut(input: Json, { operation, fails }: Pass, before: unknown): Answer {
  const done: Done[] = [];
  let a = answer(input, before, { operation, done });
  const planned = (): ImageRemoval | undefined => a.decision.remove.find((r) => r.end === "planned");
  for (let r = planned(); r !== undefined; r = planned()) {
    const { id, runtimeHandler } = r;
    const message = fails[keyOf(r)];
    done.push({ id, runtimeHandler, ...(message === undefined ? { end: "removed" } : { end: "failed", message }) });
    a = answer(input, a.next, { operation, done });
  }
  return a;
}

describe("recorded passes of the kubelet's image manager", () => {
  test.each(runs.map((run, i) => [i, run] as const))("run %i: every pass removes and reports the same", (_i, run) => {
    let now = START;
    let on: Pass["arrive"] = [];
    let before: unknown;
    for (const pass of run.steps) {
      now += pass.afterMs;
      const here = new Set(on.map(keyOf));
      on = [...on, ...pass.arrive.filter((i) => !here.has(keyOf(i)))];
      const { decision, next } = carriedOut(inputOf(run, pass, now, on), pass, before);
      const events = decision.events.filter((e) => e.reason !== "ImageGCFailed");
      expect({
        tried: decision.remove.map(keyOf),
        error: decision.error,
        events: events.map((e) => `${e.type} ${e.reason} ${e.message}`),
      }).toEqual({ tried: pass.tried, error: pass.error, events: pass.events });
      on = on.filter((i) => !pass.removed.includes(keyOf(i)));
      before = next;
    }
  });
  test("cover errors and runtime handlers that no other vector has", () => {
    const texts = runs.flatMap((r) => r.steps.flatMap((s) => s.error ?? []));
    for (const said of [/older than .*deletion: /, /deletion: \[/, /wanted to free 9223372036854775807 /]) {
      expect(texts.filter((t) => said.test(t)).length).toBeGreaterThan(4);
    }
    expect(
      runs.flatMap((r) => r.steps.flatMap((s) => s.removed)).filter((k) => k.includes(",")).length,
    ).toBeGreaterThan(4);
  });
});
