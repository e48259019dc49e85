import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OWNER, POD_NAME, POD_NAMESPACE, POD_UID } from "../../../../actuator/containerd/cri.ts";
import { kubeletsDevices } from "../../../../actuator/pods/admission/foreign-sandboxes.ts";
import { writeCheckpoint } from "../../../../api/decide/devices/checkpoint.ts";
import { must } from "../../../e2e/containerd/pods.ts";
import { scratch } from "../scratch.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

interface Foreign {
  readonly uid?: string;
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly container?: string;
}
/**
 * A pod that another program runs in the same runtime, with a kubelet's labels. Returns its sandbox and its container.
 */
async function foreignPod(world: SimulatedPodsNode, foreign: Foreign = {}) {
  const { uid = "foreign-uid", name = "db", container = "app", annotations = {} } = foreign;
  const labels = { [POD_NAME]: name, [POD_NAMESPACE]: "default", [POD_UID]: uid, ...foreign.labels };
  const sandbox = { metadata: { name, namespace: "default", uid, attempt: 0 }, labels, annotations };
  const make = async () => {
    const sandboxId = await must(world.runtime.runSandbox(sandbox));
    const config = { metadata: { name: container, attempt: 0 }, image: { image: "busybox:1" }, labels };
    const containerId = await must(world.runtime.createContainer(sandboxId, config, sandbox));
    await must(world.runtime.startContainer(containerId));
    return { sandboxId, containerId };
  };
  return world.time.drive(make());
}
const end = ({ runtime, time }: SimulatedPodsNode, { sandboxId }: { readonly sandboxId: string }) =>
  time.drive(must(runtime.stopSandbox(sandboxId)));
const DB = appPod("uid-db", { cpu: "100m" }, { metadata: { name: "db" } });
const HELD =
  "held, since sandboxes that this daemon did not make run pods of these names: default/db: see `nodewise takeover`";
const whyOf = (world: SimulatedPodsNode): string => world.pod("uid-db").record.refusal?.message ?? "";
const own = (world: SimulatedPodsNode): readonly string[] =>
  world.runtime.ownContainers.filter(({ state }) => state === "running").map(({ id }) => id);
const problems = (world: SimulatedPodsNode): readonly string[] =>
  (world.last?.problems ?? []).map(({ message }) => message).filter((message) => message.includes("sandbox"));

test("a pod whose name runs in a foreign sandbox waits with that reason, and is admitted afterwards", async () => {
  const world = new SimulatedPodsNode();
  const foreign = await foreignPod(world);
  world.pods = [DB];
  await world.run(3);
  expect(own(world)).toEqual([]);
  const message =
    `its name runs in sandbox ${foreign.sandboxId} (uid foreign-uid, since 2027-01-15T08:00:00.000Z, 1 container running) ` +
    "that this daemon did not make: see `nodewise takeover`, which stops it when asked to; it is admitted once that is gone";
  expect(world.pod("uid-db").record).toMatchObject({
    state: "pending",
    refusal: { reason: "ForeignSandbox", message },
  });
  expect(problems(world)).toEqual([HELD]);
  expect(world.reportOf(/ForeignSandbox/)).toEqual([`ForeignSandbox: ${message}`]);
  // the foreign container exits and its sandbox stays ready: the program that created the sandbox will start the
  // container again
  world.runtime.exit(foreign.containerId, 1);
  await world.run(2);
  expect(own(world)).toEqual([]);
  expect(whyOf(world)).toContain("0 containers running");
  await end(world, foreign);
  await world.run(4);
  // the program that created the sandbox may be about to create the next one
  expect(own(world)).toEqual([]);
  expect(whyOf(world)).toContain("it is admitted unless it is started there again within 5 s");
  await world.run(4);
  expect(own(world)).toHaveLength(1);
  expect(problems(world)).toEqual([]);
});

test("a running pod goes on when a foreign pod of its name appears, but starts no more containers", async () => {
  const world = new SimulatedPodsNode();
  world.pods = [DB];
  await world.run(4);
  const [id = ""] = own(world);
  const foreign = await foreignPod(world, { labels: { [OWNER]: "/nodewise-other" } });
  await world.run(2);
  expect(own(world)).toEqual([id]);
  expect(problems(world)).toEqual([
    expect.stringMatching(
      /^default\/db runs twice: its name runs in .*: let the Nodewise daemon of cgroup root \/nodewise-other end it/,
    ),
  ]);
  world.runtime.exit(id, 1);
  await world.run(30);
  expect(own(world)).toEqual([]);
  const [{ state } = {}] = world.status("uid-db").containerStatuses;
  expect(state).toMatchObject({ waiting: { reason: "ForeignSandbox" } });
  await end(world, foreign);
  await world.run(8);
  expect(own(world)).toHaveLength(1);
});

test("a daemon that restarts between two sandboxes of the foreign pod waits for the next one", async () => {
  const world = new SimulatedPodsNode();
  const first = await foreignPod(world);
  world.pods = [DB];
  await world.run(3);
  await end(world, first);
  world.restart();
  await world.run(3);
  expect(own(world)).toEqual([]);
  const next = await foreignPod(world, { uid: "foreign-2" });
  await world.run(10);
  expect(own(world)).toEqual([]);
  await end(world, next);
  await world.run(8);
  expect(own(world)).toHaveLength(1);
});

test("a foreign pod that appears during a start is noticed before each further start", async () => {
  const world = new SimulatedPodsNode();
  let come: ReturnType<typeof foreignPod> | undefined;
  world.runtime.onSandbox = ({ config }) => {
    if (config.metadata.uid === "uid-db") come ??= foreignPod(world);
  };
  world.pods = [DB];
  await world.run(4);
  const foreign = await come;
  expect(foreign).toBeDefined();
  expect(own(world)).toEqual([]);
  expect(world.runtime.running("app")).toHaveLength(1);
  if (foreign !== undefined) await end(world, foreign);
  await world.run(30);
  expect(own(world)).toHaveLength(1);
});

test("after a foreign pod of the same uid ours continues behind its attempt numbers", async () => {
  const world = new SimulatedPodsNode();
  const foreign = await foreignPod(world, { uid: "uid-db" });
  world.pods = [DB];
  await world.run(2);
  expect(own(world)).toEqual([]);
  await end(world, foreign);
  await world.run(8);
  expect(own(world)).toHaveLength(1);
  const [started] = world.runtime.ownContainers;
  expect([started?.sandbox.metadata.attempt, started?.config.metadata.attempt]).toEqual([1, 1]);
});

test("a kubelet's static pod of the same manifest under another node name blocks the pod", async () => {
  const world = new SimulatedPodsNode();
  const source = { "kubernetes.io/config.source": "file" };
  await foreignPod(world, { name: "db-backup-old", uid: "foreign-2", annotations: source, container: "copy" });
  const foreign = await foreignPod(world, { name: "db-old", annotations: source });
  const metadata = { name: "db-sim", annotations: source };
  world.pods = [appPod("uid-db", { cpu: "100m" }, { metadata, spec: { nodeName: "sim" } })];
  await world.run(2);
  expect(own(world)).toEqual([]);
  expect(whyOf(world)).toMatch(/a kubelet of the node name `old` seems to run its manifest as db-old in .*nodeName/);
  await end(world, foreign);
  await world.run(8);
  expect(own(world)).toHaveLength(1);
});

test("a pod that requests devices waits while a kubelet's running pod may hold them", async () => {
  const pluginsDirectory = scratch();
  const world = new SimulatedPodsNode({ kubeletsDevices: () => kubeletsDevices(pluginsDirectory) });
  const foreign = await foreignPod(world, { uid: "foreign-train", name: "train" });
  const limits = { cpu: "100m", "vendor.example/gpu": "1" };
  world.pods = [
    appPod("uid-db", {}, { metadata: { name: "db" }, container: { resources: { requests: limits, limits } } }),
  ];
  const reason = () => world.pod("uid-db").record.refusal?.reason;
  // the resource is unknown, since the daemon serves no device plugins here
  await world.run(1);
  expect(reason()).toBe("DevicePluginsOff");
  const entry = { podUid: "foreign-train", containerName: "app", allocResp: null };
  const deviceIds = new Map([[0, ["gpu-0"]]]);
  writeFileSync(
    join(pluginsDirectory, "kubelet_internal_checkpoint"),
    writeCheckpoint({ entries: [{ ...entry, resourceName: "vendor.example/gpu", deviceIds }], registered: new Map() }),
  );
  await world.run(1);
  expect(reason()).toBe("DevicesHeldElsewhere");
  expect(whyOf(world)).toMatch(
    /^waits for vendor.example\/gpu: a kubelet gave devices of it to default\/train, which runs in sandbox/,
  );
  await end(world, foreign);
  await world.run(61);
  expect(reason()).toBe("DevicePluginsOff");
  writeFileSync(join(pluginsDirectory, "kubelet_internal_checkpoint"), "{");
  await foreignPod(world, { uid: "foreign-2", name: "train-2" });
  await world.run(1);
  expect(whyOf(world)).toMatch(
    /^waits for vendor.example\/gpu: what a kubelet's pods hold that still run is not known \(/,
  );
});
