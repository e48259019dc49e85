import { describe, expect, test } from "vitest";
import { persistDeviceCheckpoint } from "../../../../actuator/pods/devices/manager-files.ts";
import { limited, runnableContainer } from "../../../kit/runnable-pods.ts";
import { healthy, until } from "../../deviceplugin/node-plugin.ts";
import { ANSWER, entry, GPU, hold, joined, letIn, NIC, nodeWith, ONE, RUNNING } from "./manager-kit.ts";

const APP = runnableContainer("app");
const WAITS = {
  reason: "WaitingForDevicePlugin",
  message: `deferred until the device plugin of ${GPU} has registered, at most 300 s`,
  keeps: true,
};
const says = (message: string) => ({
  ok: false,
  error: { reason: "CreateContainerConfigError", message, keeps: true },
});

describe("runContainerOptions", () => {
  test("merges the plugins' answers by resource name, and reports a conflict once", async () => {
    const node = await nodeWith();
    const answer = (name: string) => () => ({
      containerResponses: [
        {
          envs: { SHARED: name, [name]: "yes" },
          devices: [{ hostPath: `/dev/${name}`, containerPath: `/dev/${name}`, permissions: "rw" }],
          cdiDevices: [{ name: `vendor.com/${name}=0` }],
        },
      ],
    });
    await joined(node, { resource: NIC, devices: healthy("n"), answers: { Allocate: answer("NIC") } });
    await joined(node, { resource: GPU, devices: healthy("a"), answers: { Allocate: answer("GPU") } });
    const pod = limited("p", { app: { [NIC]: 1, [GPU]: 1 }, idle: { cpu: 1 } });
    letIn(node, pod);
    expect(await node.manager.allocate(pod, RUNNING)).toMatchObject({ ok: true });
    const started = await node.manager.runContainerOptions(pod, APP);
    expect(started).toMatchObject({
      ok: true,
      value: {
        envs: [
          { name: "GPU", value: "yes" },
          { name: "SHARED", value: "GPU" },
          { name: "NIC", value: "yes" },
        ],
        devices: [{ pathOnHost: "/dev/GPU" }, { pathOnHost: "/dev/NIC" }],
        cdiDevices: ["vendor.com/GPU=0", "vendor.com/NIC=0"],
      },
    });
    await node.manager.runContainerOptions(pod, APP);
    expect(node.problems).toEqual([
      `container app of pod default/p: env \`SHARED\` is that of ${GPU}, and not that of ${NIC}`,
    ]);
    expect(await node.manager.runContainerOptions(pod, runnableContainer("idle"))).toEqual({ ok: true, value: null });
  });

  test("calls PreStartContainer with the held devices only where the plugin requires it", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a", "b"), options: { preStartRequired: true } });
    const nic = await joined(node, { resource: NIC, devices: healthy("n") });
    hold(node.files, entry("p", ["a", "b"], ANSWER), entry("p", ["n"], "", "app", NIC));
    const pod = limited("p", { app: { [GPU]: 2, [NIC]: 1 } });
    expect(await node.manager.runContainerOptions(pod, APP)).toMatchObject({
      ok: true,
      value: { envs: [{ name: "A", value: "1" }] },
    });
    expect(gpu.requests.at(-1)).toEqual({ method: "PreStartContainer", request: { devicesIds: ["a", "b"] } });
    expect(nic.requests.map(({ method }) => method)).toEqual(["GetDevicePluginOptions"]);
  });

  test("fails in the kubelet's words when PreStartContainer fails or hangs", async () => {
    const node = await nodeWith({ timeouts: { preStartMs: 500 } });
    const options = { preStartRequired: true };
    const answers = { PreStartContainer: () => new Error("reset failed") as Error | "hang" };
    const gpu = await joined(node, { resource: GPU, devices: healthy("a"), options, answers });
    hold(node.files, entry("p", ["a"], ANSWER));
    const pod = limited("p", ONE);
    expect(await node.manager.runContainerOptions(pod, APP)).toEqual(
      says("device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = reset failed"),
    );
    gpu.script.answers = { PreStartContainer: () => "hang" };
    expect(await node.manager.runContainerOptions(pod, APP)).toMatchObject({
      error: { message: expect.stringContaining("failed with err: rpc error: code = DeadlineExceeded desc = ") },
    });
    await gpu.vanish();
    await until(
      () => node.manager.host.states()[0]?.state,
      (state) => state === "stopped",
    );
    expect(await node.manager.runContainerOptions(pod, APP)).toEqual(
      says(`device plugin PreStartContainer rpc failed with err: endpoint ${gpu.socketPath} has been stopped`),
    );
  });

  test("needs no running plugin without PreStartContainer, until the resource is removed", async () => {
    const node = await nodeWith({ graceMs: 1_000 });
    const gpu = await joined(node, { resource: GPU, devices: healthy("a") });
    hold(node.files, entry("p", ["a"], ANSWER));
    const state = () => node.manager.host.states()[0]?.state;
    await gpu.vanish();
    await until(state, (s) => s === "stopped");
    const pod = limited("p", ONE);
    expect(await node.manager.runContainerOptions(pod, APP)).toMatchObject({ ok: true });
    await until(state, (s) => s === "removed");
    expect(await node.manager.runContainerOptions(pod, APP)).toEqual(
      says(`endpoint not found in cache for a registered resource: ${GPU}`),
    );
  });

  test("fails when the container has no allocated devices, or devices that no plugin was asked about", async () => {
    const node = await nodeWith();
    await joined(node, { resource: GPU, devices: healthy("a"), options: { preStartRequired: true } });
    const pod = limited("p", ONE);
    expect(await node.manager.runContainerOptions(pod, APP)).toEqual(
      says(`no devices found allocated in local cache for pod p, container app, resource ${GPU}`),
    );
    hold(node.files, entry("p", ["a"]));
    expect(await node.manager.runContainerOptions(pod, APP)).toMatchObject({
      error: { message: expect.stringContaining("has not been asked") },
    });
  });

  test("waits for a plugin that has not returned, and then goes on as the kubelet does", async () => {
    const node = await nodeWith({ waitMs: 60_000 });
    const registered = new Map([[GPU, ["a"]]]);
    persistDeviceCheckpoint(node.files, { entries: [entry("p", ["a"], ANSWER)], registered });
    await node.restart();
    const pod = limited("p", ONE);
    const waits = { ...WAITS, message: WAITS.message.replace("300", "60") };
    expect(await node.manager.runContainerOptions(pod, APP)).toEqual({ ok: false, error: waits });
    node.clock.aheadMs = 60_001;
    expect(await node.manager.runContainerOptions(pod, APP)).toMatchObject({
      ok: true,
      value: { envs: [{ name: "A" }] },
    });
    node.clock.aheadMs = 300_001;
    expect(await node.manager.runContainerOptions(pod, APP)).toEqual(
      says(`endpoint not found in cache for a registered resource: ${GPU}`),
    );
  });
});
