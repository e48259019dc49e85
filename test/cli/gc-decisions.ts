import type { ContainerGcDecision, ContainerKept, ContainerRemoval } from "../../api/model/container-gc.ts";
import type { ImageGcDecision, ImageKept, ImageRemoval } from "../../api/model/image-gc.ts";
import type { EpochMs } from "../../api/model/units.ts";

/** Decisions in the core's format, for cases that the captured node does not show. */
export const NOW = Date.parse("2026-11-21T06:49:20Z");
const MI = 2 ** 20;
const before = (seconds: number): EpochMs => (NOW - seconds * 1000) as EpochMs;
const idOf = (name: string): string => `sha256:${Buffer.from(name.padEnd(32, "-")).toString("hex")}`;

const decidedImage = (name: string, mi: number, firstSeen: number, lastUsed: number | null) => ({
  id: idOf(name),
  runtimeHandler: "",
  names: [`localhost/${name}:1`],
  sizeBytes: mi * MI,
  firstDetectedAtMs: before(firstSeen),
  lastUsedAtMs: lastUsed === null ? null : before(lastUsed),
});
export const removedImage = (place: number, name: string, over: Partial<ImageRemoval> = {}): ImageRemoval => ({
  place,
  ...decidedImage(name, 10 * place, 300, null),
  why: "space",
  tie: false,
  exclusiveBytes: null,
  end: "planned",
  ...over,
});
export const keptImage = (name: string, why: ImageKept["why"], over: Partial<ImageKept> = {}): ImageKept => ({
  ...decidedImage(name, 5, 200, null),
  why,
  place: null,
  usedBy: [],
  oldEnoughAtMs: null,
  ...over,
});

const CAPACITY = 1000 * MI;
/** 90 % full, 80 % wanted: two images are removed, one of them in a tie, and four stay. */
export const IMAGES: ImageGcDecision = {
  operation: "garbage-collect",
  policy: { highThresholdPercent: 85, lowThresholdPercent: 80, minAgeMs: 120_000, maxAgeMs: 0, timer: true },
  fileSystem: { capacityBytes: CAPACITY, availableBytes: 100 * MI, usagePercent: 90, wantedBytes: 100 * MI },
  remove: [
    removedImage(1, "a", { tie: true }),
    removedImage(2, "b", { lastUsedAtMs: before(250), exclusiveBytes: 5 * MI }),
  ],
  keep: [
    keptImage("web", "in-use", {
      usedBy: ["default/web c (running)", "default/web init (exited)"],
      lastUsedAtMs: before(0),
    }),
    keptImage("pause", "pinned"),
    keptImage("young", "too-young", { place: 3, firstDetectedAtMs: before(40), oldEnoughAtMs: before(-80) }),
    keptImage("next", "not-needed", { place: 4, names: [], runtimeHandler: "kata" }),
  ],
  freedBytes: 30 * MI,
  freedOnceBytes: 15 * MI,
  error: null,
  events: [],
  pulledAgain: [
    {
      id: idOf("next"),
      runtimeHandler: "",
      names: ["localhost/next:1", "localhost/next:2"],
      sizeBytes: 5 * MI,
      removedAtMs: before(3600),
      againAtMs: before(200),
      times: 3,
      again: 2,
    },
  ],
};

const podRef = (name: string) => ({ namespace: "default", name, uid: `u-${name}` });
const decidedContainer = (name: string, attempt: number, age: number) => ({
  target: "container" as const,
  id: Buffer.from(`${name}-${attempt}`.padEnd(32, "-")).toString("hex"),
  pod: podRef("web"),
  name,
  attempt,
  state: "CONTAINER_EXITED" as const,
  createdAtMs: before(age),
});
const removal = { stopFirst: false, tie: false, end: "planned" } as const;
const REMOVED: readonly ContainerRemoval[] = [
  { place: 1, ...decidedContainer("app", 1, 600), why: "per-container-limit", ...removal },
  {
    place: 2,
    ...decidedContainer("old", 0, 500),
    why: "pod-removed",
    ...removal,
    state: "CONTAINER_UNKNOWN",
    stopFirst: true,
  },
  {
    place: 3,
    ...decidedContainer("", 0, 700),
    target: "sandbox",
    name: null,
    state: "SANDBOX_NOTREADY",
    why: "older-sandbox",
    ...removal,
    stopFirst: true,
  },
  {
    place: 4,
    target: "pod-logs",
    id: "default_gone_u-gone",
    pod: null,
    name: null,
    attempt: null,
    state: null,
    createdAtMs: null,
    why: "pod-removed",
    ...removal,
  },
];
const KEPT: readonly ContainerKept[] = [
  { ...decidedContainer("app", 3, 60), state: "CONTAINER_RUNNING", why: "running", oldEnoughAtMs: null },
  { ...decidedContainer("app", 2, 120), why: "within-limits", oldEnoughAtMs: null },
  { ...decidedContainer("side", 4, 20), why: "too-young", oldEnoughAtMs: before(-40) },
  { ...decidedContainer("side", 3, 50), why: "too-young", oldEnoughAtMs: before(-10) },
];
export const CONTAINERS: ContainerGcDecision = {
  operation: "garbage-collect",
  policy: { minAgeMs: 60_000, maxPerPodContainer: 1, maxContainers: -1 },
  allSourcesReady: true,
  remove: REMOVED,
  keep: KEPT,
  error: null,
  events: [],
};
