import { describe, expect, test } from "vitest";
import type { ContainerGcDecision, ContainerRemoval } from "../../api/model/container-gc.ts";
import type { Kind } from "../../api/model/decision.ts";
import type { ImageGcDecision, ImageRemoval, PulledAgain } from "../../api/model/image-gc.ts";
import { epochMs } from "../../api/model/units.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { type Decision, removalsIn } from "../../api/service/evaluation.ts";
import { T0, value } from "../contract/store-rows.ts";
import { appOver, decisionRequest } from "./serving.ts";

const AT = epochMs(T0);
const plannedImage = (id: string, over: Partial<ImageRemoval> = {}): ImageRemoval => ({
  id,
  runtimeHandler: "",
  names: [`${id}:1`],
  sizeBytes: 10,
  firstDetectedAtMs: AT,
  lastUsedAtMs: null,
  place: 0,
  why: "space",
  tie: false,
  exclusiveBytes: null,
  end: "planned",
  ...over,
});
const again = (id: string): PulledAgain => ({
  id,
  runtimeHandler: "",
  names: [],
  sizeBytes: 10,
  removedAtMs: epochMs(T0 - 60_000),
  againAtMs: AT,
  times: 1,
  again: 1,
});
const imageGc = (over: Partial<ImageGcDecision>): ImageGcDecision => ({
  operation: "garbage-collect",
  policy: { highThresholdPercent: 85, lowThresholdPercent: 80, minAgeMs: 120_000, maxAgeMs: 0, timer: true },
  fileSystem: null,
  remove: [],
  keep: [],
  freedBytes: 0,
  freedOnceBytes: null,
  error: null,
  events: [],
  pulledAgain: [],
  ...over,
});
const plannedContainer = (id: string, over: Partial<ContainerRemoval>): ContainerRemoval => ({
  target: "container",
  id,
  pod: { namespace: "shop", name: "web", uid: "u" },
  name: "server",
  attempt: 2,
  state: "CONTAINER_EXITED",
  createdAtMs: AT,
  place: 0,
  why: "per-container-limit",
  stopFirst: false,
  tie: false,
  end: "planned",
  ...over,
});
const containerGc = (over: Partial<ContainerGcDecision>): ContainerGcDecision => ({
  operation: "delete-unused",
  policy: { minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 },
  allSourcesReady: true,
  remove: [],
  keep: [],
  error: null,
  events: [],
  ...over,
});

describe("removals in a decision", () => {
  test("of image GC are all reported ends without planned ones, and images that were pulled again", () => {
    const remove = [
      plannedImage("a", { end: "removed", runtimeHandler: "kata" }),
      plannedImage("b", { end: "failed", message: "busy", why: "too-old" }),
      plannedImage("c", { end: "stopped", names: Array.from({ length: 40 }, (_, i) => `c:${i}`) }),
      plannedImage("d"),
    ];
    const removals = removalsIn("image-gc", imageGc({ remove, pulledAgain: [again("z")] }));
    const none = { pod: null, container: null, target: "image", sizeBytes: 10 };
    expect(removals).toMatchObject({
      kind: "image-gc",
      operation: "garbage-collect",
      removals: [
        { ...none, id: "a", runtimeHandler: "kata", names: ["a:1"], why: "space", end: "removed", message: null },
        { ...none, id: "b", runtimeHandler: "", names: ["b:1"], why: "too-old", end: "failed", message: "busy" },
        { ...none, id: "c", end: "stopped" },
      ],
      returns: [{ id: "z", runtimeHandler: "", againAtMs: T0 }],
    });
    expect(removals?.removals[2]?.names).toHaveLength(32);
  });

  test("of container GC are the reported ends with their pods; plans and other kinds have none", () => {
    const remove = [
      plannedContainer("c", { end: "removed" }),
      plannedContainer("l", { target: "log-link", pod: null, name: null, why: "dangling", end: "failed" }),
    ];
    expect(removalsIn("container-gc", containerGc({ remove }))).toEqual({
      kind: "container-gc",
      operation: "delete-unused",
      removals: [
        {
          target: "container",
          id: "c",
          runtimeHandler: "",
          names: [],
          sizeBytes: null,
          why: "per-container-limit",
          end: "removed",
          message: null,
          pod: { namespace: "shop", name: "web", uid: "u" },
          container: "server",
        },
        {
          target: "log-link",
          id: "l",
          runtimeHandler: "",
          names: [],
          sizeBytes: null,
          why: "dangling",
          end: "failed",
          message: null,
          pod: null,
          container: null,
        },
      ],
      returns: [],
    });
    expect(removalsIn("container-gc", containerGc({ remove: [plannedContainer("c", {})] }))).toBeNull();
    expect(removalsIn("image-gc", imageGc({ remove: [plannedImage("a")] }))).toBeNull();
    expect(removalsIn("image-gc", imageGc({ pulledAgain: [again("z")] }))?.removals).toEqual([]);
    expect(removalsIn("cgroups", { version: 2, driver: "systemd", cgroups: [] })).toBeNull();
  });
});

/** An app whose core returns the given decisions. */
function answering(decisions: readonly ImageGcDecision[], observedAtMs: number | null, recordDecisions = true) {
  const kind: Kind = "image-gc";
  let round = 0;
  const now = () => epochMs(T0 + 999);
  const evaluate = (): Decision => {
    const decision = decisions[round++] as ImageGcDecision;
    const time = observedAtMs === null ? null : { atMs: observedAtMs, steppedMs: 0, sinceMs: null };
    const parts = { decision, reasons: [], needs: [], next: null };
    const pass = { kind, node: "n1", time, bootId: null, readsImages: false };
    return {
      state: "decided",
      kind,
      node: "n1",
      id: String(round).repeat(32),
      snapshotId: "s".repeat(32),
      snapshot: null,
      explain: "off",
      ask: null,
      pod: null,
      policyVersion: NEWEST.policyVersion,
      profile: { version: NEWEST.version, exact: true, why: null },
      kubeletVersion: null,
      record: true,
      verdict: "removes",
      reason: null,
      summary: null,
      assumed: [],
      leftOut: [],
      pass,
      remember: null,
      removals: removalsIn(kind, decision),
      parts,
      body: JSON.stringify(parts),
      seconds: 0,
    };
  };
  const { app, store } = appOver({ evaluate, now, recordDecisions });
  const ask = async () => (await app.fetch(decisionRequest({}, kind))).json();
  const rows = async () => value(await store.listRemovals({ node: "n1", limit: 10 })).items;
  return { ask, rows };
}

test("the rounds of a garbage collection pass are recorded as rows of that pass", async () => {
  const plan = imageGc({ remove: [plannedImage("a"), plannedImage("b")] });
  const first = imageGc({ remove: [plannedImage("a", { end: "removed" }), plannedImage("b")] });
  const last = imageGc({
    remove: [plannedImage("a", { end: "removed" }), plannedImage("b", { end: "failed", message: "busy" })],
  });
  const { ask, rows } = answering([plan, first, last], T0);
  expect(await ask()).toMatchObject({ recorded: true });
  expect(await rows()).toEqual([]);
  await ask();
  expect(await rows()).toMatchObject([{ id: "a", atMs: T0, decisionId: "2".repeat(32) }]);
  await ask();
  expect(await rows()).toMatchObject([
    { id: "b", end: "failed", message: "busy", decisionId: "3".repeat(32) },
    { id: "a", end: "removed", decisionId: "2".repeat(32) },
  ]);
});

test("a removal is recorded at the decision's time without observedAt, and not at all when not recorded", async () => {
  const done = imageGc({ remove: [plannedImage("a", { end: "removed" })] });
  const timeless = answering([done], null);
  await timeless.ask();
  expect(await timeless.rows()).toMatchObject([{ atMs: T0 + 999 }]);
  const off = answering([done], T0, false);
  expect(await off.ask()).toMatchObject({ recorded: false, notRecorded: "off" });
  expect(await off.rows()).toEqual([]);
});
