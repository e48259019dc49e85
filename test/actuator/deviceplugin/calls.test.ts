import { describe, expect, test } from "vitest";
import type { PluginTimeouts } from "../../../actuator/deviceplugin/endpoint.ts";
import { faultText } from "../../../actuator/deviceplugin/fault.ts";
import { hostFixture, QUICK } from "./host-kit.ts";
import { healthy, type PluginScript, until } from "./node-plugin.ts";

const GPU = "example.com/gpu";
/** Longer than any test. */
const NEVER_MS = 600_000;
const OPTIONS = { preStartRequired: true, getPreferredAllocationAvailable: true };
const QUESTION = { available: ["a", "b", "c"], mustInclude: ["a"], size: 2 };

/** A registered plugin with three devices, and a second plugin that works. */
async function withPlugin(script: Partial<PluginScript>, timeouts: Partial<PluginTimeouts> = {}) {
  const all = await hostFixture({ timeouts });
  const gpu = all.plugin({ resource: GPU, devices: healthy("a", "b", "c"), ...script });
  await gpu.start();
  const other = all.plugin({ resource: "example.com/other", devices: healthy("x") });
  await other.start();
  await until(all.host.devices, (d) => d.some(({ id }) => id === "x"));
  return { ...all, gpu, other };
}

describe("Allocate", () => {
  test("asks for one container and returns its response", async () => {
    const { host, gpu } = await withPlugin({});
    const given = await host.allocate(GPU, ["a", "b"]);
    expect(given).toMatchObject({ ok: true, value: { response: { envs: new Map([["SEEN", "yes"]]) } } });
    expect(gpu.requests.at(-1)).toEqual({
      method: "Allocate",
      request: { containerRequests: [{ devicesIds: ["a", "b"] }] },
    });
  });
  test.each<readonly [string, () => object | Error | "hang", string, number]>([
    [
      "an error",
      () => new Error("no such device"),
      "Allocate of `example.com/gpu` at SOCKET: UNKNOWN: no such device",
      NEVER_MS,
    ],
    [
      "two containers",
      () => ({ containerResponses: [{}, {}] }),
      "INVALID_ANSWER: the answer is for 2 containers, asked was for 1",
      NEVER_MS,
    ],
    [
      "a path that climbs out",
      () => ({ containerResponses: [{ mounts: [{ hostPath: "/../etc", containerPath: "/x" }] }] }),
      "climbs out",
      NEVER_MS,
    ],
    [
      "nothing",
      () => "hang" as const,
      "DEADLINE_EXCEEDED: Deadline exceeded; the plugin gave no answer within 1000 ms",
      QUICK.allocateMs,
    ],
  ])(
    "that is answered with %s is an error naming plugin and resource, and other plugins go on",
    async (_name, Allocate, message, allocateMs) => {
      const { host, gpu } = await withPlugin({ answers: { Allocate } }, { allocateMs });
      const given = await host.allocate(GPU, ["a"]);
      if (given.ok) throw new Error("taken");
      expect(faultText(given.error)).toContain(message.replace("SOCKET", gpu.socketPath));
      expect(given.error).toMatchObject({ resource: GPU, endpoint: gpu.socketPath, call: "Allocate" });
      expect(await host.allocate("example.com/other", ["x"])).toMatchObject({ ok: true });
      expect(host.amounts().get(GPU)).toEqual({ capacity: 3, allocatable: 3 });
    },
  );
  test("of a stopped or unknown plugin is an error", async () => {
    const { host, gpu } = await withPlugin({});
    await gpu.vanish();
    await until(host.plugins, (p) => p.some(({ registered }) => registered === false));
    expect(await host.allocate(GPU, ["a"])).toMatchObject({
      error: { code: "STOPPED", message: `endpoint ${gpu.socketPath} has been stopped`, resource: GPU },
    });
    expect(await host.allocate("example.com/none", ["a"])).toMatchObject({
      error: { code: "NOT_REGISTERED", message: "unknown Device Plugin example.com/none" },
    });
  });
  test("ends at once when the host closes", async () => {
    const timeouts = { allocateMs: NEVER_MS };
    const { host, gpu } = await withPlugin({ answers: { Allocate: () => "hang" } }, timeouts);
    const given = host.allocate(GPU, ["a"]);
    await until(
      () => gpu.requests,
      (requests) => requests.some(({ method }) => method === "Allocate"),
    );
    host.close();
    expect(await given).toMatchObject({ ok: false, error: { code: "CANCELLED" } });
  });
});

describe("GetPreferredAllocation", () => {
  test("sends the kubelet's request, and keeps only ids of that request", async () => {
    const GetPreferredAllocation = () => ({ containerResponses: [{ deviceIDs: ["c", "a", "c", "", "nobody"] }] });
    const { host, gpu } = await withPlugin({ options: OPTIONS, answers: { GetPreferredAllocation } });
    expect(await host.preferred(GPU, QUESTION)).toEqual({ ok: true, value: ["c", "a"] });
    const asked = { availableDeviceIDs: ["a", "b", "c"], mustIncludeDeviceIDs: ["a"], allocationSize: 2 };
    expect(gpu.requests.at(-1)?.request).toEqual({ containerRequests: [asked] });
  });
  test("is not sent to a plugin that does not offer it", async () => {
    const { host, gpu } = await withPlugin({});
    expect(await host.preferred(GPU, QUESTION)).toEqual({ ok: true, value: null });
    expect(gpu.requests.map(({ method }) => method)).toEqual(["GetDevicePluginOptions"]);
  });
  test("fails at its deadline without an answer", async () => {
    const answers = { GetPreferredAllocation: () => "hang" as const };
    const { host } = await withPlugin({ options: OPTIONS, answers }, { preferredMs: QUICK.preferredMs });
    expect(await host.preferred(GPU, QUESTION)).toMatchObject({ error: { code: "DEADLINE_EXCEEDED", resource: GPU } });
  });
});

describe("PreStartContainer", () => {
  test("is sent with the ids to a plugin that requires it, and to no other", async () => {
    const { host, gpu, other } = await withPlugin({ options: OPTIONS });
    expect(await host.preStart(GPU, ["a", "b"])).toEqual({ ok: true, value: null });
    expect(gpu.requests.at(-1)).toEqual({ method: "PreStartContainer", request: { devicesIds: ["a", "b"] } });
    expect(await host.preStart("example.com/other", ["x"])).toEqual({ ok: true, value: null });
    expect(other.requests.map(({ method }) => method)).toEqual(["GetDevicePluginOptions"]);
  });
  test("is an error when it hangs or fails", async () => {
    const answers = { PreStartContainer: () => "hang" as const };
    const { host, gpu } = await withPlugin({ options: OPTIONS, answers }, { preStartMs: QUICK.preStartMs });
    expect(await host.preStart(GPU, ["a"])).toMatchObject({ error: { code: "DEADLINE_EXCEEDED" } });
    gpu.script.answers = { PreStartContainer: () => new Error("reset failed") };
    expect(await host.preStart(GPU, ["a"])).toMatchObject({ error: { code: "UNKNOWN", message: "reset failed" } });
  });
});

describe("a misbehaving plugin", () => {
  test("that hangs in GetDevicePluginOptions is not registered, and others are", async () => {
    const { host, plugin } = await withPlugin({}, { optionsMs: QUICK.optionsMs });
    const hanging = plugin({ resource: "example.com/hangs", answers: { GetDevicePluginOptions: () => "hang" } });
    await expect(hanging.start()).rejects.toMatchObject({
      details: expect.stringContaining("failed to get device plugin options: "),
    });
    expect([...host.amounts().keys()]).toEqual([GPU, "example.com/other"]);
  });
  test("that lists more devices than a node may have has none healthy, and others stay", async () => {
    const { host, gpu, faults } = await withPlugin({});
    gpu.list(Array.from({ length: 20_000 }, (_, i) => ({ ID: `${i}` })));
    const [fault] = await until(
      () => faults,
      (f) => f.length > 0,
    );
    expect(fault).toMatchObject({
      resource: GPU,
      endpoint: gpu.socketPath,
      call: "ListAndWatch",
      code: "INVALID_ANSWER",
    });
    expect(fault?.message).toBe(
      "the list holds 20000 devices, and there is room for 19999 of this one: all plugins together may list 20000, and those that are in use or registered first keep theirs",
    );
    expect(host.amounts().get(GPU)?.allocatable).toBe(0);
    expect(host.amounts().get("example.com/other")?.allocatable).toBe(1);
  });
  test("that lists a million devices is refused because the message is too large", async () => {
    const { host, gpu, faults } = await withPlugin({});
    gpu.list(Array.from({ length: 1_000_000 }, (_, i) => ({ ID: `${i}` })));
    const [fault] = await until(
      () => faults,
      (f) => f.length > 0,
    );
    expect(fault).toMatchObject({
      resource: GPU,
      code: "RESOURCE_EXHAUSTED",
      message: expect.stringMatching(/larger than .*; a message of a plugin may have 4194304 bytes$/),
    });
    expect(await host.allocate("example.com/other", ["x"])).toMatchObject({ ok: true });
  });
  test("may list 4,096 devices", async () => {
    const { host, gpu } = await withPlugin({});
    gpu.list(healthy(...Array.from({ length: 4096 }, (_, i) => `gpu-${i}`)));
    await until(
      () => host.amounts().get(GPU)?.allocatable,
      (n) => n === 4096,
    );
  });
  test("that lists duplicate and empty ids is reported once, not with each list", async () => {
    const { host, gpu, faults } = await withPlugin({});
    for (let i = 0; i < 5; i++) {
      gpu.list(healthy("a", "a", "", `n${i}`));
      await until(host.devices, (d) => d.some(({ id }) => id === `n${i}`));
    }
    expect(faults.map(({ code, message }) => [code, message])).toEqual([
      ["LEFT_OUT", 'device "a" is listed twice: it counts once; device 2 is left out: its id is empty'],
    ]);
    // the faults remain until the plugin sends a correct list
    expect(host.standing()).toEqual(faults);
    gpu.list(healthy("a"));
    await until(host.devices, (d) => d.filter(({ resource }) => resource === GPU).length === 1);
    expect(host.standing()).toEqual([]);
  });
  test("that flips devices thousands of times causes few updates, and its newest list is in force", async () => {
    const { host, gpu } = await withPlugin({});
    let heard = 0;
    host.onChange(() => heard++);
    for (let i = 0; i < 5000; i++)
      gpu.list([{ ID: "a", health: i % 2 === 0 ? "Unhealthy" : "Healthy" }, ...healthy("b")]);
    gpu.list(healthy("last"));
    await until(host.devices, (d) => d.some(({ id }) => id === "last"));
    expect(heard).toBeLessThan(30);
  });
});
