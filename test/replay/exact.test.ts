import { expect, test } from "vitest";
import type { Kind } from "../../api/model/decision.ts";
import { epochMs } from "../../api/model/units.ts";
import { sha256 } from "../../api/server/digest.ts";
import { replayAnswer } from "../../api/service/replay/replay-answer.ts";
import { historyReplayer, replayer } from "../../api/service/replay/replay-one.ts";
import { appOver, decisionRequest } from "../api/serving.ts";
import { diskSnapshot, localImage, MI, START, timeAt } from "../contract/gc-snapshots.ts";
import { value } from "../contract/store-rows.ts";
import { pod } from "../kit/pods.ts";
import { realSnapshot } from "../kit/real-node.ts";

/** Random numbers from a seed, so that a failure can be reproduced. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A node whose memory and images vary, with soft thresholds that last over several passes. */
function randomSnapshot(node: string, seconds: number, pick: (below: number) => number) {
  const images = Array.from({ length: pick(5) }, () => localImage(`img-${pick(7)}`));
  const unique = [...new Map(images.map((one) => [one.id, one])).values()];
  const snapshot = diskSnapshot(node, seconds, unique, 20 + pick(400));
  const available = (50 + pick(400)) * MI;
  const memory = {
    time: timeAt(seconds),
    availableBytes: available,
    usageBytes: 0,
    workingSetBytes: 1024 * MI - available,
  };
  return {
    ...snapshot,
    node: { metadata: { name: node }, status: { capacity: { cpu: "2", memory: "1Gi" } } },
    kubeletConfiguration: {
      imageMinimumGCAge: "20s",
      evictionHard: { "memory.available": "60Mi" },
      evictionSoft: { "memory.available": "300Mi" },
      evictionSoftGracePeriod: { "memory.available": "30s" },
      enforceNodeAllocatable: [],
      ...(pick(3) === 0 ? { evictionMinimumReclaim: { "memory.available": "50Mi" } } : {}),
    },
    cgroup: { version: 2, driver: "systemd" },
    stats: { node: { memory, ...snapshot.stats.node }, pods: [] },
  };
}

async function posted(seed: number) {
  let now = START;
  const { app, store } = appOver({ now: () => epochMs(now) });
  const pick = random(seed);
  const post = async (kind: Kind, body: object): Promise<void> => {
    const response = await app.fetch(decisionRequest(body, kind));
    expect(response.status, `seed ${seed}: ${kind}: ${await response.clone().text()}`).toBe(200);
  };
  const clocks = [0, 0, 0];
  for (let turn = 0; turn < 60; turn++) {
    const n = pick(clocks.length);
    // sometimes a pass is repeated, or arrives late
    const step = [10, 10, 20, 0, -5][pick(5)] ?? 10;
    const seconds = Math.max(0, (clocks[n] ?? 0) + step);
    clocks[n] = Math.max(clocks[n] ?? 0, seconds);
    now = START + turn * 1000;
    const snapshot = randomSnapshot(`n${n}`, seconds, pick);
    const explain = (["reasons", "off", "full"] as const)[pick(3)];
    const kinds = (["eviction", "image-gc", "container-gc", "cgroups", "allocatable"] as const).filter(
      () => pick(2) === 0,
    );
    for (const kind of kinds) await post(kind, { snapshot, explain });
  }
  for (const kind of ["cgroups", "admission", "topology"] as const) {
    await post(kind, { snapshot: realSnapshot(), ...(kind === "cgroups" ? {} : { ask: { pod: pod("p") } }) });
  }
  return { store, nowMs: now + 1000 };
}

/** All pages of a replay: a page ends after a second, on a busy machine with few decisions. */
async function pagesOf(...[world, request]: Parameters<typeof replayAnswer>) {
  const pages = [value(await replayAnswer(world, request))];
  for (let token = pages[0]?.nextPageToken; token; token = pages.at(-1)?.nextPageToken)
    pages.push(value(await replayAnswer(world, { ...request, pageToken: token })));
  return pages;
}
const sum = (numbers: readonly (number | undefined)[]): number => numbers.reduce<number>((all, n = 0) => all + n, 0);

/** The verdicts that occurred for all seeds together. */
const met = new Set<string>();

test.each([1, 2, 3, 4])(
  "a history of random posts replays exactly as recorded, reasons included, seed %i",
  async (seed) => {
    const { store, nowMs } = await posted(seed);
    for await (const row of store.streamDecisions({})) {
      const { kind, verdict } = value(row);
      met.add(`${kind} ${verdict}`);
      // a replay of one decision returns the reasons too, and they equal the recorded ones
      const again = value(await replayer(store, {})(value(row)));
      expect(again.state, `${kind} ${verdict} ${JSON.stringify(again.differences)}`).toBe("same");
      expect(JSON.parse(JSON.stringify(again.answer?.reasons))).toEqual(JSON.parse(value(row).body).reasons);
      expect(again.verdict).toBe(verdict);
    }
    const request = { filter: {}, change: {}, limit: 1000 };
    const world = { store, replay: historyReplayer(store, {}), nowMs, sha256 };
    const same = await pagesOf(world, request);
    const replayed = sum(same.map(({ counts }) => counts.replayed));
    expect([same.flatMap(({ changed }) => changed), sum(same.map(({ counts }) => counts.same)), replayed > 60]).toEqual(
      [[], replayed, true],
    );
    const other = { kubeletConfigurationPatch: { evictionHard: { "memory.available": "900Mi" } } };
    const moved = { ...world, replay: historyReplayer(store, other) };
    const evictions = (await pagesOf(moved, { ...request, change: other })).map(({ byKind }) => byKind.eviction);
    expect(sum(evictions.map((counts) => counts?.differs))).toBe(sum(evictions.map((counts) => counts?.replayed)));
    expect(sum(evictions.map((counts) => counts?.replayed))).toBeGreaterThan(0);
  },
);

test("the random histories include passes of every sort", () => {
  const eviction = ["eviction calm", "eviction under-pressure", "eviction evicts"];
  for (const one of [...eviction, "image-gc keeps", "image-gc removes", "cgroups decided"])
    expect([...met]).toContain(one);
});
