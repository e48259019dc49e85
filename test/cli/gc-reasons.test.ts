import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { Kind } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import type { Reason } from "../../api/model/forms.ts";
import { reasonText } from "../../api/text/tables/index.ts";
import { pod } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";

const NOW = Date.parse("2026-11-21T10:00:00Z");
const at = (seconds: number): string => new Date(NOW + seconds * 1000).toISOString();
const nanos = (seconds: number): string => `${NOW + seconds * 1000}000000`;

function reasonsOf(kind: Kind, input: object, asked: object = {}, facts?: unknown): readonly Reason[] {
  const snapshot = decodeSnapshot({ observedAt: at(0), ...input });
  const ask = decodeAsk(kind, asked);
  if (!snapshot.ok || !ask.ok) throw new Error(JSON.stringify([snapshot, ask]));
  const known = facts === undefined ? {} : { [kind]: facts };
  const answer = decideKind(kind, { snapshot: snapshot.value, facts: known, ask: ask.value, explain: "full" });
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value.reasons.flatMap(({ because }) => because);
}
/** The codes of all reasons; fails unless each reason has a whole sentence. */
function codesOf(...all: readonly (readonly Reason[])[]): readonly string[] {
  for (const reason of all.flat()) {
    const text = reasonText(reason, false);
    expect(text).not.toMatch(new RegExp(`: ${reason.code}( |$)`));
    expect(text).not.toMatch(/undefined|NaN|null|\[object/);
  }
  return [...new Set(all.flat().map(({ code }) => code))].sort();
}

const shopPod = (name: string, status: Json = { phase: "Running" }, metadata: Json = {}) =>
  pod(name, { metadata: { namespace: "shop", uid: `u-${name}`, ...metadata }, status });
const labels = (of: string) => ({ "io.kubernetes.pod.uid": `u-${of}`, "io.kubernetes.container.name": "c" });
const dead = (of: string, n: number, over: object = {}) => ({
  id: `${of}-${n}`,
  podSandboxId: `s-${of}`,
  metadata: { name: "c", attempt: n },
  imageId: "i",
  state: "CONTAINER_EXITED",
  createdAt: nanos(n - 500),
  labels: labels(of),
  ...over,
});
const box = (of: string, over: object = {}) => ({
  id: `s-${of}`,
  metadata: { name: of, uid: `u-${of}`, attempt: 0 },
  state: "SANDBOX_NOTREADY",
  createdAt: nanos(-600),
  ...over,
});
const ended = { phase: "Failed" };
const disrupted = { type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" };

describe("the reasons of a container-gc decision", () => {
  const pods = [
    shopPod("web"),
    shopPod("job", ended),
    shopPod("evicted", { phase: "Failed", conditions: [disrupted] }),
    shopPod("going", ended, { deletionTimestamp: at(-10) }),
  ];
  const containers = [
    ...[0, 1, 2, 3].map((n) => dead("web", n)),
    dead("web", 4, { state: "CONTAINER_RUNNING" }),
    ...["job", "evicted", "going", "gone"].map((name) => dead(name, 0)),
    dead("torn", 0, { state: "CONTAINER_RUNNING" }),
    dead("odd", 0, { podSandboxId: "nowhere", metadata: { name: "c" }, createdAt: nanos(60) }),
  ];
  const sandboxes = [
    box("web", { id: "s-web-old", createdAt: nanos(-900) }),
    box("web"),
    box("job", { id: "s-job-new" }),
    box("torn", { state: "SANDBOX_READY" }),
  ];
  const logs = {
    podLogDirectories: ["shop_web_u-web", "shop_gone_u-gone", "shop_torn_u-torn"],
    danglingLogLinks: ["web_shop_c-abcdef123456.log", "gone_shop_c-nobody1.log"],
  };
  const rotated = dead("web", 40000, { id: "abcdef123456", state: "CONTAINER_UNKNOWN", createdAt: nanos(0) });
  const runtime = { containers: [...containers, rotated], sandboxes, ...logs };
  const kubelet = { minimumContainerTTLMs: 1000 };

  test("are sentences, for everything that is removed or kept", () => {
    const done = [
      { id: "web-0", end: "failed", message: "in use" },
      { id: "web-1", end: "stopped" },
      { id: "nobody", end: "removed" },
    ];
    const all = codesOf(
      reasonsOf("container-gc", { pods, runtime, kubelet }),
      reasonsOf("container-gc", { pods, runtime, kubelet }, { operation: "delete-unused", done }),
      reasonsOf("container-gc", { pods, runtime, kubelet: { ...kubelet, sourcesReady: false } }),
      reasonsOf("container-gc", {
        pods: [...pods, shopPod("gone"), shopPod("odd")],
        runtime,
        kubelet: { maximumDeadContainers: 2, maximumDeadContainersPerContainer: -1 },
      }),
    );
    expect(all).toEqual([
      "attempt_missing",
      "container_not_exited",
      "created_in_future",
      "done_without_plan",
      "link_leads_nowhere",
      "newest_sandbox",
      "not_reached",
      "older_sandbox",
      "over_container_limit",
      "over_total_limit",
      "over_total_share",
      "pass_stopped",
      "pod_ended",
      "pod_ended_and_deleted",
      "pod_evicted",
      "pod_exists",
      "pod_not_posted",
      "pod_not_posted_still_runs",
      "removal_failed",
      "running",
      "sandbox_has_containers",
      "sandbox_not_listed",
      "sandbox_ready",
      "sources_not_ready",
      "too_young",
      "within_limits",
    ]);
  });
});

describe("the reasons of an image-gc decision", () => {
  const MI = 2 ** 20;
  const listedImage = (name: string, over: object = {}) => ({
    id: name,
    repoTags: [`${name}:1`],
    size: 100 * MI,
    ...over,
  });
  const images = [
    listedImage("old"),
    listedImage("as-old"),
    listedImage("older"),
    listedImage("new"),
    listedImage("i"),
    listedImage("volume"),
    listedImage("pinned", { pinned: true }),
    listedImage("pause"),
    listedImage("sizeless", { size: undefined }),
    listedImage("twice"),
    listedImage("twice"),
  ];
  const mounts = [{ containerPath: "/v", image: { image: "volume:1" } }];
  const containers = [dead("web", 0, { mounts }), dead("web", 1, { imageId: "unknown" })];
  const runtime = { images, containers, sandboxes: [], sandboxImage: "pause:1" };
  const handled = {
    images: [listedImage("i", { spec: { runtimeHandler: "kata" } }), listedImage("", { spec: { runtimeHandler: "" } })],
    containers: [dead("web", 0)],
  };
  const disk = (availableBytes: number, capacityBytes = 1000 * MI) => ({
    stats: { node: { runtime: { imageFs: { capacityBytes, availableBytes } } } },
  });
  const ages = (config: object) => ({ kubeletConfiguration: { imageMinimumGCAge: "1m", ...config } });
  const seen = (id: string, first: number, last: number | null = null) => [
    id,
    NOW + first * 1000,
    last === null ? null : NOW + last * 1000,
  ];
  const facts = {
    atMs: NOW - 1000,
    beganAtMs: NOW - 1_000_000,
    failed: false,
    records: [
      seen("old", -900),
      seen("as-old", -900),
      seen("older", -900, -800),
      seen("twice", -900, 60),
      seen("sizeless", -900, -50),
    ],
    removed: [],
  };

  test("are sentences, for everything that is removed or kept", () => {
    const base = { runtime, pods: [] };
    const ends = [
      { id: "old", end: "failed", message: "in use" },
      { id: "sizeless", end: "stopped" },
    ];
    const all = codesOf(
      reasonsOf("image-gc", { ...base, ...ages({}), ...disk(0) }, {}, facts),
      reasonsOf("image-gc", { ...base, ...ages({}), ...disk(150 * MI) }, {}, facts),
      reasonsOf("image-gc", { ...base, ...ages({}), ...disk(900 * MI) }, {}, facts),
      reasonsOf("image-gc", { ...base, ...ages({}), ...disk(2000 * MI) }, {}, facts),
      reasonsOf("image-gc", { ...base, ...ages({}), ...disk(0, 0) }, {}, facts),
      reasonsOf("image-gc", { ...base, ...ages({ imageMaximumGCAge: "5m" }), ...disk(0) }, { done: ends }, facts),
      reasonsOf("image-gc", { ...base, ...ages({ imageMaximumGCAge: "5h" }), ...disk(0) }, {}, facts),
      reasonsOf("image-gc", { ...base, ...ages({ imageMinimumGCAge: "0s" }) }, { operation: "delete-unused" }, facts),
      reasonsOf("image-gc", { ...base, ...ages({}) }, { operation: "delete-unused" }, facts),
      reasonsOf("image-gc", { ...base, ...ages({ imageGCHighThresholdPercent: 100 }) }, {}, facts),
      reasonsOf("image-gc", {
        runtime: handled,
        ...ages({ featureGates: { RuntimeClassInImageCriApi: true } }),
        ...disk(0),
      }),
    );
    expect(all).toEqual([
      "available_above_capacity",
      "below_high_threshold",
      "capacity_zero",
      "container_image_not_listed",
      "image_frees_space",
      "image_id_invalid",
      "image_in_use",
      "image_listed_twice",
      "image_mounted",
      "image_not_needed",
      "image_not_reached",
      "image_not_wanted",
      "image_of_sandboxes",
      "image_pinned",
      "image_remembered",
      "image_removal_failed",
      "image_removal_stopped",
      "image_size_not_told",
      "image_too_old",
      "image_too_young",
      "image_unused",
      "image_used_now",
      "maximum_age_waits",
      "minimum_age_zero",
      "not_enough_to_free",
      "order_is_chance",
      "over_high_threshold",
      "runtime_handler_differs",
      "timer_off",
    ]);
  });
});

test("every reason code of the collections has a sentence", () => {
  const FORMS = [/\badd\(\s*"([a-z_]+)"/g, /\b(?:code|because): "([a-z_]+)"[ ,}]/g, /\breturn \["([a-z_]+)"/g];
  const root = new URL("../../api/decide/", import.meta.url);
  const codes = globSync(["{image,container}-gc/*.ts", "kinds/{image,container}-gc.ts"], { cwd: root }).flatMap(
    (name) => {
      const text = readFileSync(new URL(name, root), "utf8");
      return FORMS.flatMap((form) => [...text.matchAll(form)].map(([, code = ""]) => code));
    },
  );
  const REFUSALS = ["needs_input", "invalid_configuration", "invalid_state"];
  const seen = [...new Set(codes)].filter((code) => !REFUSALS.includes(code));
  expect(seen.length).toBeGreaterThan(45);
  const numbers: Reason["numbers"] = new Proxy({}, { get: () => 1 });
  expect(seen.filter((code) => reasonText({ code, field: "f", numbers }, false) === `f: ${code}`)).toEqual([]);
});
