import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { RuntimeContainer } from "../../../../actuator/containerd/cri.ts";
import type { RunnablePod } from "../../../../actuator/lifecycle/pod.ts";
import { DEVICES_ANNOTATION } from "../../../../actuator/pods/devices/checkpoint-entries.ts";
import { persistDeviceCheckpoint } from "../../../../actuator/pods/devices/manager-files.ts";
import { limited } from "../../../kit/runnable-pods.ts";
import { seenContainer, seenPod } from "../../../kit/seen-pods.ts";
import { healthy, until } from "../../deviceplugin/node-plugin.ts";
import {
  ANSWER,
  decided,
  entriesIn,
  entry,
  GPU,
  historyOf,
  hold,
  joined,
  letIn,
  messages,
  NIC,
  type Node,
  nodeWith,
  ONE,
  RUNNING,
} from "./manager-kit.ts";

const TWO = { app: { [GPU]: 2 } };
const fileOf = ({ stateDir }: Node) => join(stateDir, "managers/device-plugins/kubelet_internal_checkpoint");

/** A pod whose container `app` exists in the runtime. */
const runs = (pod: RunnablePod, annotations = {}, state: RuntimeContainer["state"] = "running") => {
  const { name, uid } = pod;
  const app = seenContainer("app", { id: "c1", state, annotations });
  return { uid, pod, runtimePod: { ...seenPod(app), namespace: "default", name, uid, sandboxes: [] } };
};

describe("when the device checkpoint is lost", () => {
  test.each([
    ["is no JSON", () => "{nonsense", "invalid character 'n' looking for beginning of object key string"],
    [
      "has a wrong checksum",
      (text: string) => text.replace(/"Checksum":\d+/, '"Checksum":7'),
      "checkpoint is corrupted",
    ],
    ["is empty", () => "", "unexpected end of JSON input"],
    [
      "has the form of another version",
      (text: string) => text.replace('{"-1":["a"]}', '["a"]'),
      "cannot unmarshal array",
    ],
  ])("a file that %s is kept as a copy and reported", async (_, breaks, why) => {
    const node = await nodeWith();
    hold(node.files, entry("p", ["a"], ANSWER));
    const broken = breaks(readFileSync(fileOf(node), "utf8"));
    writeFileSync(fileOf(node), broken);
    await node.restart();
    await joined(node, { resource: GPU, devices: healthy("a") });
    letIn(node, limited("q", ONE));
    expect(readFileSync(`${fileOf(node)}.broken`, "utf8")).toBe(broken);
    expect(node.problems.join()).toContain(why);
    expect(node.problems.join()).toContain(`${fileOf(node)}.broken`);
    await node.restart();
    expect(existsSync(`${fileOf(node)}.broken.1`)).toBe(false);
  });

  test("the newest three copies are kept, each once, for a week at most", async () => {
    const node = await nodeWith();
    hold(node.files, entry("p", ["a"], ANSWER));
    for (let i = 0; i < 5; i++) {
      rmSync(fileOf(node));
      writeFileSync(fileOf(node), `{broken ${i}`);
      await node.restart();
      await node.restart();
    }
    const kept = () => ["", ".1", ".2", ".3"].map((end) => existsSync(`${fileOf(node)}.broken${end}`));
    expect(kept()).toEqual([true, true, true, false]);
    const texts = ["", ".1", ".2"].map((end) => readFileSync(`${fileOf(node)}.broken${end}`, "utf8"));
    expect(texts.sort()).toEqual(["{broken 2", "{broken 3", "{broken 4"]);
    persistDeviceCheckpoint(node.files, { entries: [entry("q", ["b"])], registered: null });
    node.clock.aheadMs = 6 * 24 * 60 * 60_000;
    node.manager.update(new Set());
    expect(kept()).toEqual([true, true, true, false]);
    node.clock.aheadMs = 8 * 24 * 60 * 60_000;
    node.manager.update(new Set());
    expect(kept()).toEqual([false, false, false, false]);
  });

  test("no device of a resource is allocated while a running pod holds unknown devices of it", async () => {
    const node = await nodeWith();
    await joined(node, { resource: GPU, devices: healthy("a", "b", "c") });
    await joined(node, { resource: NIC, devices: healthy("n") });
    const run = limited("run", TWO);
    const late = limited("late", ONE);
    const before = decided(node, late, [run]).next;
    node.manager.recover([runs(run)]);
    const words = `devices of ${GPU} are not allocated while pods run whose devices are not known: default/run (once their containers are restarted, or the pods removed, it is known)`;
    expect(node.manager.whyPending(late)).toEqual({ reason: "DevicesNotKnown", message: words, isReported: false });
    expect(node.manager.whyPending(limited("other", { app: { [NIC]: 1 } }))).toBeNull();
    expect(messages(node)).toEqual([words]);
    // a decision that was made before is not stored either
    node.files.persist(node.manager.withResponses(before));
    expect(entriesIn(node)).toEqual([]);
    node.manager.recover([runs(run, {}, "exited")]);
    expect(node.manager.whyPending(late)).toBeNull();
    expect(messages(node)).toEqual([]);
    letIn(node, late, [run]);
    expect(entriesIn(node)).toEqual([entry("late", ["a"])]);
  });

  test("devices named in the annotations of running containers are allocated to their pods again", async () => {
    const node = await nodeWith();
    await joined(node, { resource: GPU, devices: healthy("a", "b", "c") });
    const run = limited("run", TWO);
    letIn(node, run);
    expect(await node.manager.allocate(run, RUNNING)).toMatchObject({ ok: true });
    const options = await node.manager.runContainerOptions(run, {
      name: "app",
    } as RunnablePod["spec"]["containers"][0] & object);
    const marks = options.ok ? (options.value?.annotations ?? []) : [];
    const annotations = Object.fromEntries(marks.map(({ name, value }) => [name, value]));
    expect(Object.keys(annotations)).toEqual([DEVICES_ANNOTATION]);
    node.manager.close();
    rmSync(fileOf(node));
    await node.restart();
    await joined(node, { resource: GPU, devices: healthy("a", "b", "c") });
    node.manager.recover([runs(run, annotations)]);
    expect(messages(node)).toEqual([]);
    expect(node.problems.at(-1)).toBe("devices are booked again from the containers that run: default/run");
    expect(historyOf(node).filter(({ reason }) => reason === "BookedAgain")).toMatchObject([
      { kind: "allocated", resource: GPU, podUid: "run", container: "app", devices: ["a", "b"] },
    ]);
    const late = limited("late", ONE);
    letIn(node, late, [run]);
    expect(entriesIn(node).map(({ podUid, deviceIds }) => [podUid, ...(deviceIds?.values() ?? [])])).toEqual([
      ["run", ["a", "b"]],
      ["late", ["c"]],
    ]);
  });

  test("a checkpoint that is older or another node's does not free devices of running containers", async () => {
    const node = await nodeWith();
    await joined(node, { resource: GPU, devices: healthy("a", "b", "c", "d") });
    const [run, next, twin] = [limited("run", TWO), limited("next", ONE), limited("twin", ONE)];
    hold(node.files, entry("run", ["c", "d"], ANSWER), entry("next", ["a"], ANSWER), entry("twin", ["d"], ANSWER));
    const mark = (...ids: string[]) => ({ [DEVICES_ANNOTATION]: JSON.stringify({ [GPU]: { "-1": ids } }) });
    const living = [runs(run, mark("a", "b")), { uid: "next", pod: next, runtimePod: null }, runs(twin, mark("d"))];
    node.manager.recover(living);
    // devices of a pod that is about to start are allocated anew; a pod that runs with its recorded devices keeps them
    const after = [entry("twin", ["d"], ANSWER), entry("run", ["a", "b"])];
    expect(entriesIn(node)).toEqual(after);
    const words = `the checkpoint had devices c, d of ${GPU} as those of container app of pod default/run, which runs with a, b: what runs counts`;
    expect(node.problems.join("\n")).toContain(words);
    expect(historyOf(node).filter(({ reason }) => reason === "BookedAgain")).toHaveLength(1);
    const count = node.problems.length;
    node.manager.recover(living);
    expect(entriesIn(node)).toEqual(after);
    expect(node.problems).toHaveLength(count);
    const late = limited("late", TWO);
    expect(decided(node, late, [run, twin]).refusal).not.toBeNull();
  });

  test("the unreadable checkpoint is reported for a while, and recorded in the history", async () => {
    const node = await nodeWith();
    mkdirSync(dirname(fileOf(node)), { recursive: true });
    writeFileSync(fileOf(node), "{nonsense");
    await node.restart();
    const copy = `the file is kept as ${fileOf(node)}.broken for 7 days`;
    persistDeviceCheckpoint(node.files, { entries: [entry("q", ["b"])], registered: null });
    expect(messages(node)).toEqual([expect.stringContaining(copy)]);
    expect(historyOf(node)).toMatchObject([{ kind: "refused", reason: "CheckpointNotRead" }]);
    node.clock.aheadMs = 11 * 60_000;
    expect(messages(node)).toEqual([]);
  });

  test("a malformed devices annotation of a container is ignored", async () => {
    const node = await nodeWith();
    const run = limited("run", ONE);
    for (const mark of ["{", "null", "[]", `{"${GPU}":{"x":["a"]}}`, `{"${GPU}":["a"]}`, `{"${GPU}":{"0":[1]}}`]) {
      node.manager.recover([runs(run, { [DEVICES_ANNOTATION]: mark })]);
      expect(entriesIn(node)).toEqual([]);
      expect(messages(node)).toHaveLength(1);
    }
  });
});

test("held devices that vanish from the plugin's list are reported with the pods that hold them", async () => {
  const node = await nodeWith();
  const gpu = await joined(node, { resource: GPU, devices: healthy("a", "b") });
  hold(node.files, entry("p", ["a", "b"], ANSWER));
  node.manager.whyPending(limited("p", TWO));
  expect(node.manager.vanished()).toEqual([]);
  gpu.list(healthy("b"));
  await until(node.manager.host.devices, (devices) => devices.length === 1);
  const words = `device a of ${GPU}, held by container app, is not in the list of the device plugin any more`;
  expect(node.manager.vanished()).toEqual([{ podUid: "p", container: "app", message: words }]);
  expect(messages(node)).toEqual([`pod default/p: ${words}`]);
  // a stopped plugin has no device list
  await gpu.vanish();
  await until(
    () => node.manager.host.states()[0]?.state,
    (state) => state === "stopped",
  );
  expect(node.manager.vanished()).toEqual([]);
});
