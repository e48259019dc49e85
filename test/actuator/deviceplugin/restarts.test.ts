import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ServiceError, status } from "@grpc/grpc-js";
import { describe, expect, onTestFinished, test } from "vitest";
import { openDevicePluginHost } from "../../../actuator/deviceplugin/host.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { hostFixture } from "./host-kit.ts";
import { healthy, until } from "./node-plugin.ts";

const GPU = "example.com/gpu";

describe("the registration socket", () => {
  test("is made for its owner only; stale sockets are removed, and other files stay", async () => {
    const dir = scratchFolder();
    writeFileSync(join(dir, "kubelet_internal_checkpoint"), "{}");
    const stale = createServer();
    await new Promise<void>((resolve) => stale.listen(join(dir, "stale.sock"), resolve));
    onTestFinished(() => void stale.close());
    const opened = await openDevicePluginHost({ dir });
    if (!opened.ok) throw new Error(opened.error);
    expect(opened.value.removed).toEqual(["stale.sock"]);
    expect(existsSync(join(dir, "stale.sock"))).toBe(false);
    expect(existsSync(join(dir, "kubelet_internal_checkpoint"))).toBe(true);
    expect(statSync(opened.value.socketPath).mode & 0o777).toBe(0o600);
    opened.value.close();
    expect(existsSync(opened.value.socketPath)).toBe(false);
  });

  test("that another process answers on is not changed, nor any other file", async () => {
    const { dir, plugin } = await hostFixture();
    await plugin({ resource: GPU }).start();
    const second = await openDevicePluginHost({ dir });
    expect(second).toMatchObject({
      ok: false,
      error: expect.stringContaining("another process answers there, such as a kubelet"),
    });
    expect(existsSync(join(dir, "example.com_gpu.sock"))).toBe(true);
    await plugin({ resource: "example.com/other" }).start();
  });

  test("is refused in a directory with an invalid or too long path", async () => {
    for (const [dir, why] of [
      [`/tmp/${"x".repeat(100)}`, "at most 107 bytes, this has 118"],
      ["relative", "begins with `/`"],
      ["/tmp/two\nlines", "can be read"],
    ] as const) {
      expect(await openDevicePluginHost({ dir })).toMatchObject({
        ok: false,
        error: expect.stringContaining(why),
      });
      expect(existsSync(dir)).toBe(false);
    }
  });

  test("does not replace a file", async () => {
    const dir = scratchFolder();
    writeFileSync(join(dir, "kubelet.sock"), "");
    expect(await openDevicePluginHost({ dir })).toMatchObject({
      ok: false,
      error: expect.stringContaining("is no socket"),
    });
    expect(existsSync(join(dir, "kubelet.sock"))).toBe(true);
  });

  test("of another process that took its place is not removed on close", async () => {
    const { dir, host } = await hostFixture();
    rmSync(host.socketPath);
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(join(dir, "kubelet.sock"), resolve));
    onTestFinished(() => void other.close());
    host.close();
    await sleep(50);
    expect(existsSync(host.socketPath)).toBe(true);
  });
});

describe("a restart", () => {
  test.each(["kubelet.sock", "own socket"] as const)(
    "of the host is noticed by a plugin that watches its %s and registers again",
    async (on) => {
      const { host, plugin, again, dir } = await hostFixture();
      const gpu = plugin({ resource: GPU, devices: healthy("a", "b") });
      await gpu.start();
      onTestFinished(gpu.comeBack(on));
      await until(host.devices, (d) => d.length === 2);
      host.close();
      expect(existsSync(gpu.socketPath)).toBe(true);
      const next = await again();
      expect(next.removed).toEqual(["example.com_gpu.sock"]);
      await until(next.amounts, (amounts) => amounts.get(GPU)?.allocatable === 2);
      expect(existsSync(join(dir, "example.com_gpu.sock"))).toBe(true);
    },
  );

  test("of the plugin replaces its registration at the same socket", async () => {
    const { host, plugin } = await hostFixture();
    const first = plugin({ resource: GPU, devices: healthy("a", "b") });
    await first.start();
    await until(host.devices, (d) => d.length === 2);
    await first.vanish(true);
    await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 0);
    await first.vanish();
    await plugin({ resource: GPU, devices: healthy("a", "b", "c") }).start();
    await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 3);
    expect(
      host
        .states()[0]
        ?.history.filter(({ id }) => id === "a")
        .map(({ from, to }) => [from, to]),
    ).toEqual([
      [null, "Healthy"],
      ["Healthy", "Unhealthy"],
      ["Unhealthy", "Healthy"],
    ]);
  });

  test("of host and plugin brings the devices back", async () => {
    const { host, plugin, again } = await hostFixture();
    const first = plugin({ resource: GPU, devices: healthy("a") });
    await first.start();
    await until(host.devices, (d) => d.length === 1);
    await first.vanish(true);
    host.close();
    const next = await again();
    expect(next.devices()).toEqual([]);
    await plugin({ resource: GPU, devices: healthy("a") }).start();
    await until(next.amounts, (amounts) => amounts.get(GPU)?.allocatable === 1);
  });

  test("of the plugin while the host is down removes its socket as stale, and it registers again", async () => {
    const { host, plugin, again } = await hostFixture();
    host.close();
    const gpu = plugin({ resource: GPU, devices: healthy("a", "b") });
    await gpu.serve();
    await expect(gpu.register()).rejects.toMatchObject({ code: 14 });
    onTestFinished(gpu.comeBack("kubelet.sock"));
    const next = await again();
    expect(next.removed).toEqual(["example.com_gpu.sock"]);
    await until(next.amounts, (amounts) => amounts.get(GPU)?.allocatable === 2);
  });

  test("of the plugin with another resource at the same path is not taken for the old one", async () => {
    const { host, plugin } = await hostFixture();
    const old = plugin({ resource: GPU, devices: healthy("a"), name: "one.sock" });
    await old.start();
    await until(host.devices, (d) => d.length === 1);
    await old.vanish();
    const other = plugin({ resource: "example.com/other", devices: healthy("x"), name: "one.sock" });
    await other.serve();
    await until(host.plugins, ([p]) => p?.registered === false);
    // longer than the delay before the first reconnect
    await sleep(1_500);
    expect(other.requests).toEqual([]);
    expect(host.amounts().get(GPU)).toEqual({ capacity: 1, allocatable: 0 });
    await other.register();
    await until(host.amounts, (amounts) => amounts.get("example.com/other")?.allocatable === 1);
  });

  test("of the host does not wait for a plugin that hangs in its registration", async () => {
    const { host, plugin } = await hostFixture({ timeouts: { optionsMs: 600_000 } });
    const gpu = plugin({ resource: GPU, answers: { GetDevicePluginOptions: () => "hang" } });
    await gpu.serve();
    const registering = gpu.register().catch((error: ServiceError) => error);
    await until(
      () => gpu.requests.length,
      (n) => n === 1,
    );
    host.close();
    const ended = await registering;
    if (!(ended instanceof Error)) throw new Error("registered");
    // that code would mean that the plugin's own deadline had passed
    expect(ended.code).not.toBe(status.DEADLINE_EXCEEDED);
    expect(host.states()).toEqual([]);
  });
});
