import { expect, test } from "vitest";
import { Gi, Measured, Mi, three, USAGES } from "./measured.ts";
import { SIM_SETTINGS } from "./settings.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const RETRY = SIM_SETTINGS.retryMs / 1000;
/** The pods as `manifestPods: ordinary` reads them: from files, neither critical nor exempt from eviction. */
const readFrom = (pods: () => readonly object[]) => async () => ({
  pods: pods(),
  whole: true,
  problems: [],
  notices: [],
  origins: new Map(
    pods().map((pod) => [pod, { file: "/m/all.yaml", nodeName: "", place: () => ({ line: 1, column: 1 }) }]),
  ),
});
function worldOf(pods: readonly object[], isOfFiles: boolean): SimulatedPodsNode {
  const world: SimulatedPodsNode = new SimulatedPodsNode(isOfFiles ? { readPods: readFrom(() => world.pods) } : {});
  world.pods = pods;
  world.runtime.programOf = () => ({ runsMs: null, exitCode: 143, stopsMs: 0 });
  return world;
}
const end = (world: SimulatedPodsNode, cause: "preempted" | "evicted"): void =>
  world.end("web", cause, "Reason", "message");
const web = (spec: object = {}): object => appPod("web", { cpu: "5" }, { spec: { priority: 1, ...spec } });

test("a preempted pod from a manifest waits until there is room, and then starts again", async () => {
  const world = worldOf([web()], true);
  await world.run(4);
  const critical = appPod("high", { cpu: "5" }, { spec: { priority: 2_000_000_000 } });
  world.pods = [...world.pods, critical];
  await world.run(20);
  expect(world.status("high")).toMatchObject({ phase: "Running" });
  expect(world.status("web")).toMatchObject({ phase: "Pending", reason: "OutOfcpu" });
  world.pods = world.pods.slice(0, 1);
  await world.run(10);
  expect(world.status("web")).toMatchObject({ phase: "Running" });
});

for (const isRestarted of [false, true])
  test(`an evicted pod starts again after a delay${isRestarted ? ", and over a restart" : ""}`, async () => {
    const world = worldOf([web()], true);
    await world.run(4);
    const before = world.idOf("web");
    end(world, "evicted");
    await world.run(RETRY - 5);
    expect(world.status("web")).toMatchObject({ phase: "Failed", reason: "Reason" });
    expect(world.pod("web").runtimePod).toBeNull();
    if (isRestarted) world.restart();
    await world.run(15);
    expect(world.status("web")).toMatchObject({ phase: "Running" });
    expect(world.status("web").reason).toBeUndefined();
    expect(["none", before]).not.toContain(world.idOf("web"));
    expect(world.pod("web").record.status).toBeUndefined();
    // the remains of the second end are removed too
    end(world, "evicted");
    await world.run(5);
    expect(world.pod("web").runtimePod).toBeNull();
    await world.run(RETRY + 10);
    expect(world.status("web")).toMatchObject({ phase: "Running" });
  });

test.each<["preempted" | "evicted", boolean, string]>([
  ["preempted", false, "Always"],
  ["evicted", false, "Always"],
  ["preempted", true, "Never"],
  ["evicted", true, "Never"],
])(
  "a pod that was %s stays Failed (from a manifest file: %s, restartPolicy %s)",
  async (cause, isOfFiles, restartPolicy) => {
    const world = worldOf([web({ restartPolicy })], isOfFiles);
    await world.run(4);
    end(world, cause);
    await world.run(2 * RETRY);
    expect(world.pod("web").record.state).toBe("terminated");
    expect(world.status("web")).toMatchObject({ phase: "Failed", reason: "Reason" });
  },
);

test("an evicted pod starts again only once its old containers are removed", async () => {
  const world = worldOf([web()], true);
  await world.run(4);
  world.runtime.on = ({ call }) =>
    call === "RemoveContainer" ? { effect: false, answer: { call, code: "UNKNOWN", message: "not now" } } : undefined;
  end(world, "evicted");
  await world.run(2 * RETRY);
  expect(world.pod("web").record.state).toBe("terminated");
  world.runtime.on = () => undefined;
  await world.run(2 * RETRY);
  expect(world.status("web")).toMatchObject({ phase: "Running" });
  expect(world.pod("web").runtimePod?.containers).toHaveLength(1);
});

test("no evicted pod starts again while the node is under pressure", async () => {
  const configuration = { evictionHard: { "memory.available": "1Gi" }, evictionPressureTransitionPeriod: "90s" };
  const measured: Measured = new Measured(
    [],
    configuration,
    undefined,
    readFrom(() => measured.world.pods),
  );
  measured.world.pods = three;
  await measured.world.run(6);
  Object.assign(measured.usages, USAGES);
  measured.memory = 900 * Mi;
  for (let i = 0; i < 30 && measured.evicted.length === 0; i++) await measured.world.run(1);
  measured.memory = 4 * Gi;
  const starts = (): number =>
    measured.world.events.filter(({ reason, pod }) => reason === "Started" && pod.name === "most").length;
  // the signal has recovered, and the node condition still stands
  await measured.world.run(2 * RETRY);
  expect([measured.evicted, measured.state("most"), starts()]).toEqual([["most"], "terminated", 1]);
  expect(measured.world.status("most")).toMatchObject({ phase: "Failed", reason: "Evicted" });
  await measured.world.run(2 * RETRY);
  expect([measured.evicted, measured.state("most"), starts()]).toEqual([["most"], "active", 2]);
});
