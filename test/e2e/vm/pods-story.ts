import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { Check } from "./checks.ts";
import type { GuestNode } from "./guest-node.ts";
import { ALONE, BUSY, IDLE } from "./pods-manifests.ts";
import { Story } from "./pods-shared.ts";
import { resizing } from "./resize-story.ts";

const MIB = 2 ** 20;
const CONFIGURATION = {
  cpuManagerPolicy: "static",
  reservedSystemCPUs: "0",
  featureGates: { MemoryQoS: true },
  memoryReservationPolicy: "TieredReservation",
  memoryThrottlingFactor: 0.9,
  podPidsLimit: 100,
  evictionHard: { "memory.available": "1Mi" },
};
type Pod = Parameters<GuestNode["put"]>[0];

export function podsStory(node: GuestNode): readonly Check[] {
  const story = new Story(node);
  return [...coming(story), ...sharing(story), ...going(story), ...resizing(node)];
}

const coming = (story: Story): readonly Check[] => [
  {
    name: "pods start from their manifests, the init container first",
    run: async () => {
      for (const one of [BUSY, IDLE]) story.node.put(one as Pod);
      await story.node.startDaemon(CONFIGURATION);
      await story.settle("busy", "idle");
      // the container runs for a while before it prints something
      const words = await story.node.wait(
        "its first words",
        () => story.node.log(story.row("busy"), "app")[0] || undefined,
      );
      assert.equal(words, "left by the first");
      assert.deepEqual([story.row("busy").qos, story.row("idle").qos], ["Burstable", "BestEffort"]);
    },
  },
  {
    name: "every cgroup has the decided values",
    run: async () => story.expectAsDecided(await story.settle("busy", "idle")),
  },
  {
    name: "the decided values are those that the kubelet writes",
    run: async () => {
      const tier = (path: string, file: string) => story.node.read(path, file);
      assert.deepEqual([tier("/kubepods", "cpu.weight"), tier("/kubepods", "memory.min")], ["118", String(32 * MIB)]);
      assert.deepEqual(
        [tier("/kubepods/burstable", "cpu.weight"), tier("/kubepods/burstable", "memory.low")],
        ["4", String(32 * MIB)],
      );
      assert.equal(tier("/kubepods/besteffort", "cpu.weight"), "1");
      // the init container has the larger CPU limit
      const busy = ["4", "50000 100000", String(64 * MIB), String(32 * MIB), "100"];
      assert.deepEqual(story.pod("busy", "cpu.weight", "cpu.max", "memory.max", "memory.low", "pids.max"), busy);
      const [weight, ...others] = story.app("busy", "cpu.weight", "cpu.max", "memory.max", "memory.low", "memory.high");
      assert.deepEqual(others, ["10000 100000", String(64 * MIB), String(32 * MIB), "63750144"]);
      // runc before 1.3.2 writes 4, later versions write 17
      assert.ok(weight === "4" || weight === "17", `cpu.weight ${weight}`);
      assert.deepEqual(story.pod("idle", "cpu.weight", "cpu.max", "pids.max"), ["1", "max 100000", "100"]);
      // since 1.37, a container without request and limit is throttled as well, relative to the memory of all pods
      const high = Math.floor((Number(tier("/kubepods", "memory.max")) * 0.9) / 4096) * 4096;
      assert.deepEqual(story.app("idle", "cpu.weight", "memory.max", "memory.high"), ["1", "max", String(high)]);
    },
  },
];

const sharing = (story: Story): readonly Check[] => [
  {
    name: "other containers lose the CPUs before the container with exclusive CPUs starts",
    run: async () => {
      assert.deepEqual([story.app("busy", "cpuset.cpus"), story.app("idle", "cpuset.cpus")], [["0-3"], ["0-3"]]);
      story.node.put(ALONE as Pod);
      const pass = await story.settle("busy", "idle", "alone");
      const lines = await story.node.wait("what it saw", () => {
        const log = story.node.log(story.row("alone"), "app");
        return log.includes("that is all") ? log : undefined;
      });
      for (const [name, cpus] of [
        ["busy", "0-1"],
        ["idle", "0-1"],
        // both threads of one core
        ["alone", "2-3"],
      ] as const) {
        const file = `.${story.path(name)}/${story.id(name)}/cpuset.cpus`;
        assert.ok(lines.includes(`${file} ${cpus}`), `no ${file} ${cpus} in\n${lines.join("\n")}`);
        assert.deepEqual(story.app(name, "cpuset.cpus"), [cpus]);
      }
      story.expectAsDecided(pass);
      const { defaultCpuSet, entries } = story.node.cpuState();
      assert.deepEqual([defaultCpuSet, entries], ["0-1", { [story.row("alone").uid]: { app: "2-3" } }]);
    },
  },
  {
    name: "cpusets that another program has changed are corrected at the interval",
    run: async () => {
      const { node } = story;
      for (const name of ["idle", "alone"]) {
        const written = await node.hierarchy.write(`${story.path(name)}/${story.id(name)}`, "cpuset.cpus", "0-3");
        assert.ok(written.ok, JSON.stringify(written));
      }
      node.lookEach(1);
      await node.wait("their own CPUs", () =>
        story.app("idle", "cpuset.cpus")[0] === "0-1" && story.app("alone", "cpuset.cpus")[0] === "2-3"
          ? true
          : undefined,
      );
      node.lookEach(3600);
    },
  },
  {
    name: "a container with exclusive CPUs has no quota, and its memory is protected",
    run: async () => {
      const kept = ["max 100000", String(64 * MIB), String(64 * MIB)];
      assert.deepEqual(story.pod("alone", "cpu.max", "memory.min", "memory.max"), kept);
      assert.deepEqual(story.app("alone", "cpu.max", "memory.min", "memory.max", "memory.high"), [...kept, "max"]);
      assert.equal(story.node.read("/kubepods", "memory.min"), String(96 * MIB));
    },
  },
  {
    name: "a pod's usage is reported, with its throttling and pressure",
    run: async () => {
      // on a busy host a reading may be wrong, and the kernel reports pressure some seconds later, so the check waits
      // for a suitable reading
      const { usage } = await story.node.pod(
        "busy",
        "with its use",
        ({ usage }) =>
          (usage?.throttledPermille ?? 0) > 0 &&
          (usage?.cpuMilli ?? 0) > 0 &&
          // the container's limit is a tenth of a CPU
          (usage?.cpuMilli ?? 0) < 250 &&
          (usage?.pressure?.cpu ?? 0) > 0,
      );
      assert.ok((usage?.memoryWorkingSetBytes ?? 0) > 0 && (usage?.pids ?? 0) >= 2, JSON.stringify(usage));
    },
  },
];

const going = (story: Story): readonly Check[] => [
  {
    name: "a restarted daemon adopts the pods, and corrects what another program wrote",
    run: async () => {
      const { node } = story;
      const names = ["busy", "idle", "alone"];
      const ids = names.map((name) => story.id(name));
      const state = node.cpuState();
      await node.stopDaemon();
      const path = story.path("idle");
      await node.hierarchy.write(path, "cpu.weight", "77");
      node.passes.length = 0;
      await node.startDaemon(CONFIGURATION);
      story.expectAsDecided(await story.settle(...names));
      assert.deepEqual(
        names.map((name) => story.id(name)),
        ids,
      );
      const [first] = node.passes;
      const found = first?.drift.filter(({ cause }) => cause !== "weight_formula" && cause !== "page_rounding");
      const reported = found?.map(({ path, file, actual, cause }) => [path, file, actual, cause]);
      assert.deepEqual(reported, [[path, "cpu.weight", "77", "other_writer"]]);
      const wrote = first?.applied?.results.filter(({ status }) => status === "applied").map(({ step }) => step.path);
      assert.deepEqual(wrote, [path]);
      assert.deepEqual(node.cpuState(), state);
    },
  },
  {
    name: "a removed pod's exclusive CPUs are shared again",
    run: async () => {
      const { node } = story;
      node.remove("alone");
      const given = () => ({
        cpus: ["busy", "idle"].map((name) => story.app(name, "cpuset.cpus")[0]),
        hasCgroup: node.hierarchy.paths().includes(story.path("alone")),
        entries: node.cpuState().entries,
        kept: node.read("/kubepods", "memory.min"),
      });
      const wanted = { cpus: ["0-3", "0-3"], hasCgroup: false, entries: undefined, kept: String(32 * MIB) };
      // the values of the tree's own cgroups are written after those of its pods
      await node.wait("what it had", () => (isDeepStrictEqual(given(), wanted) ? true : undefined)).catch(() => {});
      assert.deepEqual(given(), wanted);
    },
  },
  {
    name: "nothing remains of pods whose manifests were removed",
    run: async () => {
      const { node } = story;
      node.remove("busy", "idle");
      await node.until("the end of all", ({ pods }) => (pods.length === 0 ? true : undefined));
      await node.wait("the cgroups' end", () => (node.leftovers().length === 0 ? true : undefined)).catch(() => {});
      assert.deepEqual(node.leftovers(), []);
      assert.equal(await node.sandboxes(), 0);
      assert.deepEqual(await node.containers(), []);
    },
  },
];
