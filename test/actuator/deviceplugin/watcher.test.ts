import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { scratchFolder } from "../../kit/scratch.ts";
import { hostFixture } from "./host-kit.ts";
import { healthy, until } from "./node-plugin.ts";

const GPU = "example.com/gpu";
const info = (more: object = {}) => ({
  type: "DevicePlugin",
  name: GPU,
  endpoint: "",
  supportedVersions: ["v1beta1"],
  ...more,
});

/**
 * A host that scans its own registry directory. The long interval between scans shows that the host reacts to file
 * events.
 */
async function withRegistry(rescanMs = 60_000) {
  const registryDir = scratchFolder();
  return { ...(await hostFixture({ registryDir, rescanMs })), registryDir };
}

describe("a plugin in plugins_registry", () => {
  test("is found, registered and notified, and ends when its socket is removed", async () => {
    const { host, plugin, registryDir, faults } = await withRegistry();
    const gpu = plugin({ resource: GPU, devices: healthy("a"), dir: registryDir, info: info() });
    await gpu.serve();
    await until(host.devices, (d) => d.length === 1);
    await until(
      () => gpu.notified,
      (n) => n.length === 1,
    );
    expect(gpu.notified).toEqual([{ pluginRegistered: true, error: "" }]);
    renameSync(gpu.socketPath, join(registryDir, ".hidden"));
    await until(host.plugins, ([p]) => p?.registered === false);
    expect(host.amounts().get(GPU)).toEqual({ capacity: 1, allocatable: 0 });
    expect(faults).toEqual([]);
  });
  test("whose stream was opened again still ends when its socket is removed", async () => {
    const { host, plugin, registryDir } = await withRegistry();
    const gpu = plugin({ resource: GPU, devices: healthy("a") });
    await gpu.serve();
    const front = plugin({ resource: GPU, dir: registryDir, info: info({ endpoint: gpu.socketPath }) });
    await front.serve();
    await until(host.devices, (d) => d.length === 1);
    gpu.endStreams();
    await until(
      () => host.states()[0]?.generation,
      (generation) => generation === 2,
    );
    expect(host.states()[0]?.state).toBe("registered");
    await front.vanish();
    await until(host.plugins, ([p]) => p?.registered === false);
    // the host does not add the plugin again, though the plugin still serves
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(host.amounts().get(GPU)).toEqual({ capacity: 1, allocatable: 0 });
  });
  test("in a subdirectory before the start is found; dot names and files are ignored", async () => {
    const registryDir = scratchFolder();
    mkdirSync(join(registryDir, "vendor"));
    writeFileSync(join(registryDir, "file.sock"), "");
    const all = await hostFixture({ registryDir: join(registryDir, "none") });
    const gpu = all.plugin({ resource: GPU, devices: healthy("a"), dir: join(registryDir, "vendor"), info: info() });
    const dot = all.plugin({ resource: GPU, dir: registryDir, name: ".dot.sock", info: info() });
    const odd = createServer().listen(join(registryDir, "two\nlines.sock"));
    onTestFinished(() => void odd.close());
    await gpu.serve();
    await dot.serve();
    const host = await hostFixture({ registryDir });
    await until(host.host.devices, (d) => d.length === 1);
    expect(dot.notified).toEqual([]);
    expect(host.faults).toEqual([]);
  });
  test("may serve at another socket", async () => {
    const { host, plugin, registryDir, dir } = await withRegistry();
    const gpu = plugin({ resource: GPU, devices: healthy("a", "b") });
    await gpu.serve();
    const front = plugin({
      resource: GPU,
      dir: registryDir,
      name: "reg.sock",
      info: info({ endpoint: gpu.socketPath }),
    });
    await front.serve();
    await until(host.devices, (d) => d.length === 2);
    expect(host.states()[0]?.endpoint).toBe(join(dir, "example.com_gpu.sock"));
  });
  test("created again at the same path is registered again", async () => {
    const { host, plugin, registryDir } = await withRegistry();
    const first = plugin({ resource: GPU, devices: healthy("a"), dir: registryDir, info: info() });
    await first.serve();
    await until(host.devices, (d) => d.length === 1);
    await first.vanish();
    const next = plugin({ resource: GPU, devices: healthy("a", "b"), dir: registryDir, info: info() });
    await next.serve();
    await until(
      () => host.amounts().get(GPU)?.allocatable,
      (n) => n === 2,
    );
    await until(
      () => next.notified,
      (n) => n.length > 0,
    );
    expect(next.notified.map((n) => n.pluginRegistered)).toEqual([true]);
  });
  test("is found by polling when events are missed because the directory was replaced", async () => {
    const { host, plugin, registryDir } = await withRegistry(200);
    renameSync(registryDir, `${registryDir}-gone`);
    onTestFinished(() => renameSync(`${registryDir}-gone`, registryDir));
    mkdirSync(registryDir);
    onTestFinished(() => rmSync(registryDir, { recursive: true, force: true }));
    const gpu = plugin({ resource: GPU, devices: healthy("a"), dir: registryDir, info: info() });
    await gpu.serve();
    await until(host.devices, (d) => d.length === 1);
  });

  const refusals = [
    [
      "of another type",
      { type: "CSIPlugin" },
      "RegisterPlugin error -- no handler registered for plugin type: CSIPlugin at socket SOCKET",
    ],
    [
      "of another version",
      { supportedVersions: ["v1", "v2"] },
      "RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, is not among plugin supported versions [v1 v2]",
    ],
    [
      "with no extended resource",
      { name: "gpu" },
      'RegisterPlugin error -- plugin validation failed with err: invalid name of device plugin socket: the ResourceName "gpu" is invalid',
    ],
    [
      "with an endpoint that climbs",
      { endpoint: "/run/../x.sock" },
      'RegisterPlugin error -- plugin validation failed with err: the endpoint "/run/../x.sock" must be the path of a socket',
    ],
    [
      "with an endpoint that nobody serves",
      { endpoint: "/run/nobody-here.sock" },
      "RegisterPlugin error -- plugin registration failed with err: failed to dial device plugin: ",
    ],
  ] as const;
  test.each(refusals)("%s is notified why it is not registered", async (_name, more, message) => {
    const { host, plugin, registryDir, faults } = await withRegistry();
    const gpu = plugin({ resource: GPU, dir: registryDir, info: info(more) });
    await gpu.serve();
    await until(
      () => gpu.notified,
      (n) => n.length > 0,
    );
    expect(gpu.notified[0]).toEqual({
      pluginRegistered: false,
      error: expect.stringContaining(message.replace("SOCKET", gpu.socketPath)),
    });
    await until(
      () => faults,
      (f) => f.length > 0,
    );
    expect(faults[0]).toMatchObject({ call: "Register", message: gpu.notified[0]?.error });
    expect(host.devices()).toEqual([]);
  });
});
