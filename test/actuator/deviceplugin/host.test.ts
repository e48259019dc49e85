import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { devicePlugins, devices } from "../../../api/model/machine.ts";
import { hostFixture } from "./host-kit.ts";
import { healthy, type NodePlugin, register, until } from "./node-plugin.ts";

const GPU = "example.com/gpu";
const PATIENT = { dialMs: 20_000 };

describe("a plugin that registers", () => {
  test("shows its devices, options and amounts in the snapshot's form", async () => {
    const { host, plugin, faults } = await hostFixture();
    const topology = { nodes: [{ ID: 1 }, { ID: 0 }] };
    const list = [{ ID: "a", health: "Healthy", topology }, ...healthy("b"), { ID: "c", health: "Unhealthy" }];
    await plugin({ resource: GPU, devices: list, options: { preStartRequired: true } }).start();
    await until(host.devices, (d) => d.length === 3);
    expect(host.devices()).toEqual([
      { resource: GPU, id: "a", health: "Healthy", numaNodes: [0, 1] },
      { resource: GPU, id: "b", health: "Healthy" },
      { resource: GPU, id: "c", health: "Unhealthy" },
    ]);
    const options = { preStartRequired: true, getPreferredAllocationAvailable: false };
    expect(host.plugins()).toEqual([{ resource: GPU, registered: true, options }]);
    expect([...host.amounts()]).toEqual([[GPU, { capacity: 3, allocatable: 2 }]]);
    expect(devices.parse(host.devices())).toEqual(host.devices());
    expect(devicePlugins.parse(host.plugins())).toEqual(host.plugins());
    expect(faults).toEqual([]);
  });

  test("replaces its former list with each new one, and listeners are notified of changes only", async () => {
    const { host, plugin } = await hostFixture();
    const gpu = plugin({ resource: GPU, devices: healthy("a", "b") });
    await gpu.start();
    await until(host.devices, (d) => d.length === 2);
    let heard = 0;
    host.onChange(() => heard++);
    gpu.list(healthy("b", "a"));
    await sleep(300);
    expect(heard).toBe(0);
    gpu.list(healthy("b"));
    await until(host.devices, (d) => d.length === 1);
    gpu.list([]);
    await until(host.devices, (d) => d.length === 0);
    expect([...host.amounts()]).toEqual([[GPU, { capacity: 0, allocatable: 0 }]]);
    await until(
      () => heard,
      (n) => n === 2,
    );
  });

  test("has only unhealthy devices once its stream ends, and only its name after the grace period", async () => {
    const { host, plugin } = await hostFixture({ graceMs: 2_000 });
    const gpu = plugin({ resource: GPU, devices: healthy("a", "b") });
    await gpu.start();
    await until(host.devices, (d) => d.length === 2);
    await gpu.vanish();
    await until(host.plugins, ([p]) => p?.registered === false);
    expect([...host.amounts()]).toEqual([[GPU, { capacity: 2, allocatable: 0 }]]);
    expect(host.plugins()[0]?.stoppedAt).toMatch(/^20\d\d-/);
    expect(devicePlugins.parse(host.plugins())).toEqual(host.plugins());
    await until(host.devices, (d) => d.length === 0);
    expect([...host.amounts()]).toEqual([[GPU, { capacity: 0, allocatable: 0 }]]);
    expect(host.states()[0]?.state).toBe("removed");
  });

  test("whose stream ends while the plugin runs gets a new stream", async () => {
    const { host, plugin, faults } = await hostFixture();
    const gpu = plugin({ resource: GPU, devices: healthy("a") });
    await gpu.start();
    await until(host.devices, (d) => d.length === 1);
    gpu.endStreams();
    await until(host.plugins, ([p]) => p?.registered === false);
    expect(faults.map(({ call, code, resource }) => [call, code, resource])).toEqual([["ListAndWatch", "ENDED", GPU]]);
    await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 1);
    expect(host.states()[0]?.generation).toBe(2);
  });

  test("again replaces its former registration, whose end has no effect", async () => {
    const { host, plugin, faults } = await hostFixture();
    const old = plugin({ resource: GPU, devices: healthy("a"), name: "old.sock" });
    await old.start();
    await until(host.devices, (d) => d.length === 1);
    const next = plugin({ resource: GPU, devices: healthy("b", "c"), name: "new.sock" });
    await next.start();
    await until(host.devices, (d) => d.length === 2);
    await until(
      () => old.streams.size,
      (n) => n === 0,
    );
    await old.vanish();
    await sleep(300);
    expect([...host.amounts()]).toEqual([[GPU, { capacity: 2, allocatable: 2 }]]);
    expect(host.states()[0]).toMatchObject({ state: "registered", generation: 2, flips: 0 });
    expect(faults).toEqual([]);
  });

  test("twice at a time keeps the later registration, whichever answers first", async () => {
    const { host, plugin } = await hostFixture({ timeouts: PATIENT });
    const slow = plugin({ resource: GPU, devices: healthy("slow"), name: "slow.sock" });
    const registered = slow.register().catch((error: Error) => error.message);
    await sleep(200);
    await plugin({ resource: GPU, devices: healthy("quick"), name: "quick.sock" }).start();
    await slow.serve();
    expect(await registered).toContain("a later registration replaced this one");
    await until(host.devices, (d) => d.length === 1);
    expect(host.devices()[0]?.id).toBe("quick");
  });

  test("before it serves is waited for", async () => {
    const { host, plugin } = await hostFixture({ timeouts: PATIENT });
    const gpu = plugin({ resource: GPU, devices: healthy("a") });
    const registered = gpu.register();
    await sleep(300);
    await gpu.serve();
    await registered;
    await until(host.devices, (d) => d.length === 1);
  });
});

describe("a plugin that accepts each call and ends its stream at once", () => {
  const sayAndEnd = (gpu: NodePlugin) => {
    const ends = setInterval(() => gpu.endStreams(), 20);
    onTestFinished(() => clearInterval(ends));
    return () => clearInterval(ends);
  };
  test("is removed at the end of its grace period, counted from the first end, with few reports", async () => {
    const { host, plugin } = await hostFixture({ graceMs: 12_000, aliveAfterMs: 60_000 });
    const gpu = plugin({ resource: GPU, devices: healthy("a") });
    const messages: string[] = [];
    host.onChange(() => {
      const [state] = host.states();
      const line = `${state?.generation} ${state?.state}`;
      if (messages.at(-1) !== line) messages.push(line);
    });
    await gpu.start();
    await until(host.devices, (d) => d.length === 1);
    sayAndEnd(gpu);
    await until(host.states, ([state]) => state?.state === "stopped" && state.generation === 2);
    const [first] = host.states();
    await until(host.states, ([state]) => state?.state === "removed");
    // the event is delivered at the end of that turn of the event loop
    await until(
      () => messages.at(-1),
      (line) => line === "2 removed",
    );
    expect(messages.slice(-2)).toEqual(["2 stopped", "2 removed"]);
    expect(new Set(messages.map((line) => line.split(" ")[0]))).toEqual(new Set(["1", "2"]));
    expect(first?.stoppedAt).toBeDefined();
    expect(host.states()[0]?.stoppedAt).toBe(first?.stoppedAt);
    // the host called the plugin more often than it reported failures
    const tries = gpu.requests.filter(({ method }) => method === "GetDevicePluginOptions");
    expect(tries.length).toBeGreaterThan(2);
    expect([...host.amounts()]).toEqual([[GPU, { capacity: 0, allocatable: 0 }]]);
  });
  test("and registers each time is removed at its first end after the grace period", async () => {
    const { host, plugin } = await hostFixture({ graceMs: 1_000, aliveAfterMs: 60_000 });
    const gpu = plugin({ resource: GPU, devices: healthy("a") });
    await gpu.start();
    await until(host.devices, (d) => d.length === 1);
    for (const deadline = performance.now() + 30_000; host.states()[0]?.state !== "removed"; ) {
      if (performance.now() > deadline) throw new Error("it is never removed");
      gpu.endStreams();
      await until(host.states, ([state]) => state?.state !== "registered");
      if (host.states()[0]?.state === "stopped") await gpu.register();
    }
    await gpu.register();
    await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 1);
  });
  test("and then recovers is available once its stream has lasted, with a new grace period", async () => {
    const { host, plugin } = await hostFixture({ graceMs: 60_000, aliveAfterMs: 500 });
    const gpu = plugin({ resource: GPU, devices: healthy("a") });
    await gpu.start();
    await until(host.devices, (d) => d.length === 1);
    const mend = sayAndEnd(gpu);
    await until(host.states, ([state]) => state?.state === "stopped" && state.generation === 2);
    const before = host.states()[0]?.stoppedAt ?? 0;
    mend();
    await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 1);
    expect(host.states()[0]).toMatchObject({ state: "registered", generation: 3 });
    await sleep(1_000);
    gpu.endStreams();
    await until(host.states, ([state]) => state?.state === "stopped");
    expect(host.states()[0]?.stoppedAt).toBeGreaterThan(before);
  });
});

describe("a registration is refused for", () => {
  const refusals = [
    [
      "v1alpha1",
      { version: "v1alpha1" },
      'requested API version "v1alpha1" is not supported by kubelet. Supported version is ["v1beta1"]',
    ],
    ["no extended resource", { resourceName: "cpu" }, 'the ResourceName "cpu" is invalid'],
    ["a control character", { resourceName: "a\u0001" }, 'the ResourceName "a\\x01" is invalid'],
    [
      "Kubernetes' own domain",
      { resourceName: "kubernetes.io/gpu" },
      'the ResourceName "kubernetes.io/gpu" is invalid',
    ],
    [
      "an endpoint with a path",
      { endpoint: "../other/x.sock" },
      'the endpoint "../other/x.sock" must be the name of a socket in ',
    ],
    [
      "an absolute endpoint",
      { endpoint: "/run/x.sock" },
      'the endpoint "/run/x.sock" must be the name of a socket in ',
    ],
    ["no endpoint", { endpoint: "" }, 'the endpoint "" must be the name of a socket in '],
    ["an endpoint of two lines", { endpoint: "a\nb.sock" }, 'the endpoint "a\\nb.sock" in '],
    ["an endpoint too long for the kernel", { endpoint: "x".repeat(100) }, " is no path of at most 107 readable bytes"],
    ["kubelet.sock itself", { endpoint: "kubelet.sock" }, "is this node's own socket"],
    ["an endpoint that nobody listens on", { endpoint: "nobody.sock" }, "failed to dial device plugin: "],
  ] as const;
  test.each(refusals)("%s", async (_name, request, message) => {
    const { host, plugin, faults, dir } = await hostFixture();
    await plugin({ resource: "example.com/other", devices: healthy("x") }).start();
    await until(host.devices, (d) => d.length === 1);
    const all = { version: "v1beta1", endpoint: "gpu.sock", resourceName: GPU, ...request };
    await expect(register(join(dir, "kubelet.sock"), all)).rejects.toMatchObject({
      code: 2,
      details: expect.stringContaining(message),
    });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatchObject({ resource: all.resourceName, call: "Register" });
    expect([...host.amounts().keys()]).toEqual(["example.com/other"]);
  });
});
