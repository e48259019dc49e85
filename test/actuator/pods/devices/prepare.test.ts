import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { persistDeviceCheckpoint } from "../../../../actuator/pods/devices/manager-files.ts";
import { readAllocateResponse } from "../../../../api/decide/devices/allocate-response.ts";
import { limited } from "../../../kit/runnable-pods.ts";
import { healthy, until } from "../../deviceplugin/node-plugin.ts";
import {
  ANSWER,
  entriesIn,
  entry,
  GPU,
  historyOf,
  hold,
  joined,
  letIn,
  NIC,
  nodeWith,
  ONE,
  RUNNING,
} from "./manager-kit.ts";

const asked = ({ requests }: { requests: { method: string; request: Record<string, unknown> }[] }) =>
  requests
    .filter(({ method }) => method === "Allocate")
    .map(({ request }) => (request["containerRequests"] as { devicesIds: string[] }[])[0]?.devicesIds);
const envsOf = (base64: string | null | undefined) => {
  const read = readAllocateResponse(base64 ?? "");
  return read.ok ? Object.fromEntries(read.value.envs) : null;
};
/** Answers with the requested devices in a variable. */
const listingDevices = (request: Record<string, unknown>) => {
  const [first] = request["containerRequests"] as { devicesIds: string[] }[];
  return { containerResponses: [{ envs: { GOT: first?.devicesIds.join(",") ?? "" } }] };
};

describe("allocate", () => {
  test("calls Allocate once per resource of each container, init containers first, and keeps the answers", async () => {
    const node = await nodeWith();
    const answers = { Allocate: listingDevices };
    const gpu = await joined(node, { resource: GPU, devices: healthy("a", "b", "c"), answers });
    const nic = await joined(node, { resource: NIC, devices: healthy("n"), answers });
    const pod = limited("p", { app: { [GPU]: 2, [NIC]: 1, cpu: 1 }, idle: { cpu: 1 } }, { init: { [GPU]: 1 } });
    letIn(node, pod);
    expect(entriesIn(node).map(({ allocResp }) => allocResp)).toEqual([null, null, null]);
    expect(await node.manager.allocate(pod, RUNNING)).toEqual({ ok: true, value: null });
    // the init container's device is reused
    expect(asked(gpu)).toEqual([["a"], ["a", "b"]]);
    expect(asked(nic)).toEqual([["n"]]);
    const got = entriesIn(node).map((e) => [e.containerName, e.resourceName, envsOf(e.allocResp)]);
    expect(got).toEqual([
      ["init", GPU, { GOT: "a" }],
      ["app", GPU, { GOT: "a,b" }],
      ["app", NIC, { GOT: "n" }],
    ]);
    expect(await node.manager.allocate(pod, RUNNING)).toEqual({ ok: true, value: null });
    expect(asked(gpu)).toHaveLength(2);
  });

  test("lets a hanging plugin block only its own pod, and loses no answer", async () => {
    const node = await nodeWith({ timeouts: { allocateMs: 1_500 } });
    const slow = await joined(node, { resource: NIC, devices: healthy("n"), answers: { Allocate: () => "hang" } });
    const gpu = await joined(node, {
      resource: GPU,
      devices: healthy("a", "b", "c"),
      answers: { Allocate: listingDevices },
    });
    const stuck = limited("stuck", { app: { [NIC]: 1 } });
    const pods = ["p", "q", "r"].map((uid) => limited(uid, ONE));
    letIn(node, stuck);
    for (const [i, pod] of pods.entries()) letIn(node, pod, [stuck, ...pods.slice(0, i)]);
    const order: string[] = [];
    const hanging = node.manager.allocate(stuck, RUNNING).then((end) => {
      order.push("stuck");
      return end;
    });
    const ends = await Promise.all(pods.map((pod) => node.manager.allocate(pod, RUNNING)));
    expect(ends.every(({ ok }) => ok)).toBe(true);
    expect(order).toEqual([]);
    expect(asked(gpu).flat().toSorted()).toEqual(["a", "b", "c"]);
    const end = await hanging;
    expect(end).toMatchObject({
      error: {
        reason: "UnexpectedAdmissionError",
        message: expect.stringMatching(
          /^Allocate failed due to rpc error: code = DeadlineExceeded desc = .*within 1500 ms.*, which is unexpected$/,
        ),
      },
    });
    expect(slow.requests.filter(({ method }) => method === "Allocate")).toHaveLength(1);
    const envs = entriesIn(node).map((e) => [e.podUid, envsOf(e.allocResp)]);
    expect(envs).toEqual(pods.map(({ uid }, i) => [uid, { GOT: ["a", "b", "c"][i] }]));
  });

  test("releases all devices of a pod that a plugin refuses, in the kubelet's words, and no others", async () => {
    const node = await nodeWith();
    const refuses = () => new Error("no such device");
    await joined(node, { resource: GPU, devices: healthy("a", "b") });
    await joined(node, { resource: NIC, devices: healthy("n"), answers: { Allocate: refuses } });
    hold(node.files, entry("other", ["b"], ANSWER));
    const pod = limited("p", { app: { [GPU]: 1, [NIC]: 1 } });
    letIn(node, pod, [limited("other", ONE)]);
    expect(entriesIn(node)).toHaveLength(3);
    const end = await node.manager.allocate(pod, RUNNING);
    expect(end).toEqual({
      ok: false,
      error: {
        reason: "UnexpectedAdmissionError",
        message: "Allocate failed due to rpc error: code = Unknown desc = no such device, which is unexpected",
      },
    });
    expect(entriesIn(node)).toEqual([entry("other", ["b"], ANSWER)]);
    const reported = historyOf(node).filter(({ kind }) => kind !== "registered");
    expect(reported.map(({ kind, resource, pod, devices }) => [kind, resource, pod, devices])).toEqual([
      ["allocated", GPU, undefined, ["b"]],
      ["refused", NIC, "default/p", undefined],
    ]);
    expect(reported[1]?.message).toContain("no such device");
  });

  test("names plugin and resource when the answer cannot be used", async () => {
    const node = await nodeWith();
    const climbs = () => ({ containerResponses: [{ mounts: [{ hostPath: "/../etc", containerPath: "/x" }] }] });
    const gpu = await joined(node, { resource: GPU, devices: healthy("a"), answers: { Allocate: climbs } });
    const pod = limited("p", ONE);
    letIn(node, pod);
    const end = await node.manager.allocate(pod, RUNNING);
    expect(end).toMatchObject({ error: { message: expect.stringContaining(`climbs out`) } });
    expect(end).toMatchObject({
      error: {
        message: expect.stringContaining(`(device plugin of ${GPU} at ${gpu.socketPath}), which is unexpected`),
      },
    });
    expect(entriesIn(node)).toEqual([]);
  });

  test("leaves the devices pending when it is aborted, and the next turn waits for the same call", async () => {
    const node = await nodeWith({ timeouts: { allocateMs: 1_500 } });
    const gpu = await joined(node, { resource: GPU, devices: healthy("a"), answers: { Allocate: () => "hang" } });
    const pod = limited("p", ONE);
    letIn(node, pod);
    const cut = new AbortController();
    const first = node.manager.allocate(pod, cut.signal);
    await until(
      () => asked(gpu).length,
      (n) => n === 1,
    );
    cut.abort();
    expect(await first).toMatchObject({ ok: false, error: { keeps: true } });
    expect(await node.manager.allocate(pod, cut.signal)).toMatchObject({ ok: false, error: { keeps: true } });
    expect(entriesIn(node)).toEqual([entry("p", ["a"])]);
    const second = await node.manager.allocate(pod, RUNNING);
    expect(second).toMatchObject({ error: { message: expect.stringContaining("DeadlineExceeded") } });
    expect(asked(gpu)).toEqual([["a"]]);
  });

  test("keeps the answer of a plugin that answers while it is aborted", async () => {
    const node = await nodeWith();
    const cut = new AbortController();
    const cuts = (request: Record<string, unknown>) => {
      cut.abort();
      return listingDevices(request);
    };
    const gpu = await joined(node, { resource: GPU, devices: healthy("a"), answers: { Allocate: cuts } });
    const pod = limited("p", ONE);
    letIn(node, pod);
    expect(await node.manager.allocate(pod, cut.signal)).toMatchObject({ ok: false, error: { keeps: true } });
    expect(await node.manager.allocate(pod, RUNNING)).toEqual({ ok: true, value: null });
    expect(asked(gpu)).toEqual([["a"]]);
    expect(envsOf(entriesIn(node)[0]?.allocResp)).toEqual({ GOT: "a" });
  });

  test("records repeated failures less and less often, until it succeeds", async () => {
    const node = await nodeWith();
    const answers: Record<string, (request: Record<string, unknown>) => object> = { Allocate: () => new Error("no") };
    await joined(node, { resource: GPU, devices: healthy("a"), answers });
    const pod = limited("p", ONE);
    const tries = async (times: number) => {
      for (let i = 0; i < times; i++) {
        letIn(node, pod);
        node.manager.update(new Set(["p"]));
        await node.manager.allocate(pod, RUNNING);
        node.manager.update(new Set(["p"]));
      }
    };
    await tries(9);
    answers["Allocate"] = listingDevices;
    await tries(1);
    node.manager.host.close();
    const reported = historyOf(node).filter(({ kind }) => kind !== "registered");
    expect(reported.map(({ kind, count }) => [kind, count])).toEqual([
      ["refused", undefined],
      ["refused", 2],
      ["refused", 4],
      ["refused", 8],
      ["allocated", 1],
    ]);
  });

  test("reports a slow call while it is under way", async () => {
    const node = await nodeWith({ timeouts: { allocateMs: 1_500 } });
    const gpu = await joined(node, { resource: GPU, devices: healthy("a"), answers: { Allocate: () => "hang" } });
    const pod = limited("p", ONE);
    letIn(node, pod);
    const end = node.manager.allocate(pod, RUNNING);
    await until(
      () => asked(gpu).length,
      (n) => n === 1,
    );
    expect(node.manager.slowCalls()).toEqual(new Map());
    node.clock.aheadMs = 2_000;
    expect([...node.manager.slowCalls()]).toEqual([
      ["p", { reason: "AllocatingDevices", message: `waits for the device plugin of ${GPU} to answer Allocate` }],
    ]);
    await end;
    expect(node.manager.slowCalls()).toEqual(new Map());
  });

  test("requests new devices for a container that holds none, and keeps those of the others", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a", "b") });
    hold(node.files, entry("p", ["a"]));
    const end = await node.manager.allocate(limited("p", { app: { [GPU]: 1 }, side: { [GPU]: 1 } }), RUNNING);
    expect(end).toEqual({
      ok: false,
      error: {
        reason: "DecidingDevices",
        message: `its devices are allocated again: no devices found allocated in local cache for pod p, container side, resource ${GPU}`,
        keeps: true,
      },
    });
    expect(asked(gpu)).toEqual([["a"]]);
    expect(entriesIn(node)).toMatchObject([{ podUid: "p", containerName: "app" }]);
    expect([...node.manager.toReallocate()]).toEqual([["p", new Set(["side"])]]);
    node.manager.reallocated("p", null);
    expect(node.manager.toReallocate().size).toBe(0);
  });

  test("does not bring back devices that were released during the call", async () => {
    const node = await nodeWith();
    const takesBack = () => {
      persistDeviceCheckpoint(node.files, { entries: null, registered: null });
      return { containerResponses: [{}] };
    };
    await joined(node, { resource: GPU, devices: healthy("a"), answers: { Allocate: takesBack } });
    const pod = limited("p", ONE);
    letIn(node, pod);
    expect(await node.manager.allocate(pod, RUNNING)).toMatchObject({ error: { reason: "UnexpectedAdmissionError" } });
    expect(entriesIn(node)).toEqual([]);
  });

  test("calls no plugin and touches no file for a pod without devices", async () => {
    const node = await nodeWith();
    const before = node.files.read();
    expect(await node.manager.allocate(limited("p", { app: { cpu: 1 } }), RUNNING)).toEqual({ ok: true, value: null });
    expect(node.files.read()).toBe(before);
  });

  test("keeps the devices when the answer cannot be written, and tries again", async () => {
    const node = await nodeWith();
    await joined(node, { resource: GPU, devices: healthy("a") });
    const pod = limited("p", ONE);
    letIn(node, pod);
    const inTheWay = join(node.stateDir, "managers/device-plugins/kubelet_internal_checkpoint.new");
    mkdirSync(inTheWay);
    expect(await node.manager.allocate(pod, RUNNING)).toMatchObject({
      error: { keeps: true, message: expect.stringContaining("EISDIR") },
    });
    expect(entriesIn(node)).toEqual([entry("p", ["a"])]);
    rmdirSync(inTheWay);
    expect(await node.manager.allocate(pod, RUNNING)).toEqual({ ok: true, value: null });
  });
});
