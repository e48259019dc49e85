import { existsSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { faultText, type PluginFault } from "../../../actuator/deviceplugin/fault.ts";
import { hostFixture } from "./host-kit.ts";
import { healthy, until } from "./node-plugin.ts";

const GPU = "example.com/gpu";

describe("a kubelet.sock that was removed while it is served", () => {
  test("is bound again with a report; waiting plugins register again, and others stay connected", async () => {
    const { host, plugin, faults } = await hostFixture();
    const waiting = plugin({ resource: GPU, devices: healthy("a", "b") });
    await waiting.start();
    onTestFinished(waiting.comeBack("kubelet.sock"));
    const calm = plugin({ resource: "example.com/calm", devices: healthy("x") });
    await calm.start();
    await until(host.devices, (d) => d.length === 3);
    const generations = () => host.states().map(({ generation }) => generation);
    const [before, calmBefore] = generations() as [number, number];
    rmSync(host.socketPath);
    await until(generations, ([now = 0]) => now > before);
    await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 2);
    expect(generations()[1]).toBe(calmBefore);
    expect(host.amounts().get("example.com/calm")).toEqual({ capacity: 1, allocatable: 1 });
    expect(faults.filter(({ code }) => code === "SOCKET_LOST")).toEqual([
      {
        resource: "",
        endpoint: host.socketPath,
        call: "Register",
        code: "SOCKET_LOST",
        message: `${host.socketPath} was taken away while it was served: it is bound again`,
      },
    ]);
  });
  test("and replaced by another process's is a fault as long as that process keeps it", async () => {
    const { host, faults } = await hostFixture();
    const lost = () => host.standing().map(({ code, message }) => `${code} ${message}`);
    expect(lost()).toEqual([]);
    rmSync(host.socketPath);
    const other = createServer((socket) => socket.destroy());
    await new Promise<void>((done) => other.listen(host.socketPath, done));
    onTestFinished(() => void other.close());
    await until(lost, (all) => all.length === 1);
    expect(lost()[0]).toMatch(/^SOCKET_LOST the socket was taken away, .* another process answers there/);
    expect(faults).toEqual(host.standing());
    await new Promise((done) => other.close(done));
    await until(lost, (all) => all.length === 0);
    expect(faults.at(-1)?.stands).toBeUndefined();
    expect(faultText(faults.at(-1) as PluginFault)).toBe(
      `Register at ${host.socketPath}: SOCKET_LOST: ${host.socketPath} was taken away while it was served: it is bound again`,
    );
  });
  test("with its whole directory is bound again, and plugins can register there", async () => {
    const { dir, host, plugin } = await hostFixture();
    const gpu = plugin({ resource: GPU, devices: healthy("a") });
    await gpu.start();
    await until(host.devices, (d) => d.length === 1);
    rmSync(dir, { recursive: true });
    await until(
      () => existsSync(host.socketPath),
      (is) => is,
    );
    await gpu.vanish();
    await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 0);
    await gpu.start();
    await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 1);
  });
});
