import { expect, onTestFinished, test } from "vitest";
import { draws } from "../actuator/cgroups/draws.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { SimApi } from "./api.ts";
import { SimClock } from "./clock.ts";
import { WatchedDisk } from "./pods-disk.ts";
import type { MadePod } from "./pods-made.ts";
import { PodsNode } from "./pods-node.ts";
import { unsettled } from "./pods-rest.ts";
import { ask, newStory, type Story } from "./pods-story.ts";

const HOURS = 7_200_000;

function newWorld(): Story {
  const dir = scratchFolder(RAM_DISK);
  const clock = new SimClock(Date.parse("2026-01-01T00:00:00Z"));
  const api = new SimApi(clock);
  const { disk, end } = WatchedDisk.watch();
  const node = new PodsNode(2, clock, dir, api, disk);
  onTestFinished(async () => {
    node.daemon?.life.kill();
    end();
    await api.store.close();
  });
  return newStory(node, api, draws(1));
}
const made = (uid: string, resources: object): MadePod => ({
  uid,
  isCritical: false,
  isJob: false,
  object: {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: uid, namespace: "default", uid, annotations: { "kubernetes.io/config.source": "api" } },
    spec: { containers: [{ name: "c0", image: "app:1", command: ["serve"], ...resources }] },
  },
});
const BURSTABLE = { resources: { requests: { cpu: "100m", memory: "64Mi" } } };

/** Other events that happen while the clock is set. */
const MEANWHILE: Readonly<Record<string, (story: Story) => Promise<void> | void>> = {
  nothing: () => {},
  "the daemon is stopped": ({ node }) => node.stop(),
  "the API is away": ({ api }) => {
    api.reachable = false;
  },
  "the API is away for a while": async ({ node, api }) => {
    api.reachable = false;
    await node.run(12_000);
    api.reachable = true;
  },
};

test.each(Object.keys(MEANWHILE).flatMap((what) => [-HOURS, HOURS].map((ms) => [what, ms] as const)))(
  "memory pressure lasts exactly its time when %s happens while the clock is set by %i ms",
  async (what, ms) => {
    const story = newWorld();
    const { node, wanted } = story;
    const stateOf = (uid: string) => node.daemon?.manager.set.get(uid)?.record;
    ask(story, made("eats", BURSTABLE));
    await node.run(20_000);
    node.memory.eaters.add(node.runtime.ownContainers[0]?.id ?? "");
    await node.run(11_000);
    expect(stateOf("eats")?.end?.cause).toBe("evicted");
    node.memory.eaters.clear();
    node.time.wallOffsetMs += ms;
    await MEANWHILE[what]?.(story);
    await node.run(1000);
    ask(story, made("best", {}));
    await node.run(4_000);
    expect(stateOf("best")?.refusal?.message).toContain("MemoryPressure");
    await node.run(75_000);
    story.api.reachable = true;
    await node.run(10_000);
    expect(stateOf("best")?.state).toBe("active");
    expect(unsettled(node, wanted)).toEqual([]);
  },
);
