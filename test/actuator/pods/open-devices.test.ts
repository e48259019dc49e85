import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { actuatorConfig } from "../../../actuator/core/config.ts";
import type { NodeClaims } from "../../../actuator/core/interfaces.ts";
import type { RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import { runnablePod } from "../../../actuator/lifecycle/spec/pod-spec.ts";
import { deviceRequirements } from "../../../actuator/pods/devices/device-requirements.ts";
import { ManagerFiles } from "../../../actuator/pods/devices/manager-files.ts";
import { openNodeDevices } from "../../../actuator/pods/open-devices.ts";
import { prepareClaims } from "../../../actuator/pods/sync/container-devices.ts";
import { noCounters } from "../../../actuator/status/counters.ts";
import type { ResourceClaim, ResourceSlice } from "../../../api/model/resource-claim.ts";
import { claim, DRIVER, result, slice } from "../../kit/claims.ts";
import { podManifest } from "../../kit/manifests.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { until } from "../deviceplugin/node-plugin.ts";
import { type DriverScript, TestDriver } from "../dra/test-driver.ts";

/** A node that serves DRA drivers in its own directories. */
function ground(settings: object = {}) {
  const dir = scratchFolder();
  const registry = join(dir, "plugins_registry");
  mkdirSync(registry);
  const all = {
    stateDir: dir,
    nodeName: "n1",
    mode: "enforce",
    pods: "enforce",
    manifests: dir,
    draDrivers: "serve",
    devicePluginsDirectory: join(dir, "device-plugins"),
    pluginsRegistryDirectory: registry,
    podResourcesDirectory: join(dir, "pr"),
    ...settings,
  };
  /** `devices`: the devices of a ResourceSlice beside the claims; empty: no slice. */
  const open = async (devices: readonly string[] = [], more: object = {}) => {
    const config = actuatorConfig({ ...all, ...more });
    if (!config.ok) throw new Error(config.error);
    const claims: NodeClaims = {
      resourceClaims: ["a", "b"].map((name) => claim(name, [result(name)], ["p"]) as unknown as ResourceClaim),
      resourceSlices: devices.length === 0 ? [] : [slice(devices, { nodeName: "n1" }) as unknown as ResourceSlice],
      deviceClasses: [],
    };
    const files = new ManagerFiles(join(dir, "managers"));
    const opened = await openNodeDevices({
      config: config.value,
      files,
      bootId: "boot",
      configuration: {},
      readPods: async () => ({ pods: [], whole: true, claims, problems: [], notices: [] }),
      counters: noCounters,
      onProblem: () => {},
      onChange: () => {},
    });
    if (opened.ok) {
      await opened.value.readPods();
      onTestFinished(async () => {
        opened.value.claims?.close();
        await opened.value.devices?.close();
      });
    }
    return opened;
  };
  const driver = async (script: Partial<DriverScript> = {}): Promise<TestDriver> => {
    const made = new TestDriver({ dir: registry, name: DRIVER, ...script });
    await made.serve();
    onTestFinished(() => made.die());
    await until(
      () => made.notified,
      (reported) => reported.length > 0,
    );
    return made;
  };
  return { dir, open, driver };
}
async function opened(settings: object = {}) {
  const made = ground(settings);
  const node = await made.open();
  if (!node.ok) throw new Error(node.error);
  const { claims } = node.value;
  if (claims === undefined) throw new Error("none are served");
  return { ...made, port: claims.port };
}
function podWith(...claims: readonly string[]): RunnablePod {
  const object = podManifest("p", {
    metadata: { namespace: "default", uid: "uid-p" },
    spec: {
      resourceClaims: claims.map((name) => ({ name, resourceClaimName: name })),
      containers: [{ name: "c", image: "i", resources: { claims: claims.map((name) => ({ name })) } }],
    },
  });
  const read = runnablePod(object, null, { draDrivers: true });
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return read.value;
}
const { signal } = new AbortController();

test.each(["off", "serve"])("DRA drivers are found beside device plugins: %s", async (devicePlugins) => {
  const { port, driver } = await opened({ devicePlugins });
  const gpu = await driver();
  expect(gpu.notified).toEqual([{ pluginRegistered: true, error: "" }]);
  const pod = podWith("a", "b");
  expect(await port.prepare(pod, signal)).toBeNull();
  expect(port.devices(pod, { name: "c" })).toEqual({ ok: true, value: [`${DRIVER}/dev=a`, `${DRIVER}/dev=b`] });
  expect(await port.prepare(podWith(), signal)).toBeNull();
  expect(port.released(pod)).toBe(false);
  await expect.poll(() => port.released(pod)).toBe(true);
  expect([gpu.prepared.size, gpu.calls.length]).toEqual([0, 2]);
});

test("claims that stay prepared after draDrivers was turned off are reported, with what releases them", async () => {
  const { open, port, driver } = await opened();
  await driver();
  expect(await port.prepare(podWith("a"), signal)).toBeNull();
  const off = await open([], { draDrivers: "off" });
  const message = `ResourceClaim default/a stays prepared by ${DRIVER}: with draDrivers off it is not given back; serve gives it back`;
  expect(off.ok && off.value.problems()).toEqual([{ from: "devices", message }]);
  expect(port.released(podWith("a"))).toBe(false);
  await expect.poll(() => port.released(podWith("a"))).toBe(true);
  const empty = await open([], { draDrivers: "off" });
  expect(empty.ok && empty.value.problems()).toEqual([]);
});

test("a pod waits a moment for a hanging DRA driver, and the wait ends when the pod is no longer wanted", {
  timeout: 20_000,
}, async () => {
  const { port, driver } = await opened();
  const gpu = await driver({ answers: { NodePrepareResources: () => "hang" } });
  const pod = podWith("a");
  const waits = {
    message: `waits for the DRA driver ${DRIVER} to prepare ResourceClaim a`,
    waits: "PreparingResourceClaims",
  };
  expect(await port.prepare(pod, signal)).toEqual(waits);
  const from = performance.now();
  expect(await port.prepare(pod, signal)).toEqual(waits);
  expect(performance.now() - from).toBeLessThan(500);
  expect(gpu.calls).toHaveLength(1);
  await expect.poll(() => port.released(pod), { timeout: 5_000 }).toBe(true);
  expect(gpu.calls.map(({ operation }) => operation)).toEqual(["NodePrepareResources", "NodeUnprepareResources"]);
  gpu.script.answers = {};
  expect(await port.prepare(pod, signal)).toBeNull();
});

test("a driver that hangs in unprepare is reported as a problem, and to the pod that waits for it", {
  timeout: 20_000,
}, async () => {
  const { port, driver } = await opened();
  const gpu = await driver();
  const pod = podWith("a", "b");
  await port.prepare(pod, signal);
  gpu.script.answers = { NodeUnprepareResources: () => "hang" };
  expect(port.released(pod)).toBe(false);
  await expect.poll(() => gpu.calls.length).toBe(2);
  expect(port.problems()).toEqual([]);
  const what = `the DRA driver ${DRIVER} to take back ResourceClaims a, b`;
  const waits = { message: `waits for ${what}`, waits: "UnpreparingResourceClaims" };
  // the pod returns with the same uid, as a static pod does
  expect(await port.prepare(pod, signal)).toEqual(waits);
  expect(port.problems()).toEqual([{ from: "devices", message: `pod uid-p waits for ${what}` }]);
});

test("a failed unprepare is reported, and retried as soon as the driver has registered again", async () => {
  const { port, driver } = await opened();
  const gpu = await driver();
  const pod = podWith("a");
  await port.prepare(pod, signal);
  gpu.script.answers = { NodeUnprepareResources: () => new Error("busy") };
  expect(port.released(pod)).toBe(false);
  await expect
    .poll(() => port.problems())
    .toEqual([
      {
        from: "devices",
        message:
          "pod uid-p cannot unprepare its ResourceClaims, and is tried again: unprepare dynamic resources: NodeUnprepareResources: rpc error: code = Unknown desc = busy",
      },
    ]);
  expect([port.released(pod), gpu.calls.length]).toEqual([false, 2]);
  gpu.vanish();
  gpu.script.answers = {};
  await gpu.serve();
  await expect.poll(() => port.released(pod), { timeout: 5_000 }).toBe(true);
  expect([gpu.prepared.size, port.problems()]).toEqual([0, []]);
});

test("a claim for an extended resource is prepared, and no device plugin is asked for the resource", async () => {
  const { port, driver } = await opened();
  await driver();
  const resource = "example.com/gpu";
  const requestMappings = [{ containerName: "c", resourceName: resource, requestName: "gpu" }];
  const amounts = { [resource]: "1" };
  const manifest = podManifest("p", {
    metadata: { namespace: "default", uid: "uid-p" },
    spec: { containers: [{ name: "c", image: "i", resources: { requests: amounts, limits: amounts } }] },
  });
  const object = { ...manifest, status: { extendedResourceClaimStatus: { resourceClaimName: "a", requestMappings } } };
  const read = runnablePod(object, null, { draDrivers: true });
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  expect(deviceRequirements(read.value)).toEqual(new Map());
  expect(deviceRequirements({ object: { ...object, status: {} } })).toEqual(new Map([["c", new Map([[resource, 1]])]]));
  expect(await port.prepare(read.value, signal)).toBeNull();
  expect(port.devices(read.value, { name: "c" })).toEqual({ ok: true, value: [`${DRIVER}/dev=a`] });
  expect(await prepareClaims(undefined, read.value, signal)).toMatchObject({
    message: expect.stringMatching(/draDrivers: off/),
  });
  const ofClass = { "deviceclass.resource.kubernetes.io/fpga": "1" };
  const spec = { containers: [{ name: "c", image: "i", resources: { requests: ofClass, limits: ofClass } }] };
  expect(runnablePod({ ...object, spec }, null, { draDrivers: true })).toMatchObject({ ok: true });
  expect(runnablePod({ ...object, spec }, null, { draDrivers: false })).toMatchObject({ ok: false });
  const { port: older } = await opened({ kubeletVersion: "1.34" });
  expect(await older.prepare(read.value, signal)).toMatchObject({
    message: expect.stringMatching(/^a claim gives its extended resources, and the gate DRAExtendedResource is off/),
  });
});

test("a claim made from a pod's template is prepared under the name in the pod's status", async () => {
  const { port, driver } = await opened();
  await driver();
  const { object } = podWith("a");
  const spec = { ...(object["spec"] as object), resourceClaims: [{ name: "a", resourceClaimTemplateName: "t" }] };
  const of = (status: object) => {
    const read = runnablePod({ ...object, spec, status }, null, { draDrivers: true });
    if (!read.ok) throw new Error(JSON.stringify(read.error));
    return read.value;
  };
  expect(await port.prepare(of({}), signal)).toMatchObject({
    message: 'prepare dynamic resources: pod "default/p": ResourceClaim not created yet',
  });
  const made = of({ resourceClaimStatuses: [{ name: "a", resourceClaimName: "b" }] });
  // the claim must have been created for this pod
  expect(await port.prepare(made, signal)).toMatchObject({ message: expect.stringMatching(/was not created for/) });
});

test("claims of unknown pods are unprepared at the next look", async () => {
  const { port, driver } = await opened();
  const gpu = await driver();
  await port.prepare(podWith("a"), signal);
  port.reconcile(() => new Set());
  await expect.poll(() => gpu.prepared.size).toBe(0);
});

test("with an unreadable DRA state no pod with claims starts, and other pods do", async () => {
  const { dir, open } = ground();
  mkdirSync(join(dir, "managers"));
  const file = join(dir, "managers", "dra_manager_state");
  writeFileSync(file, '{"Data":"x","Checksum":1}');
  const node = await open();
  if (!node.ok || node.value.claims === undefined) throw new Error("it does not open");
  const { port } = node.value.claims;
  expect(await port.prepare(podWith(), signal)).toBeNull();
  const fault = await port.prepare(podWith("a"), signal);
  expect(fault?.message).toMatch(
    /^no pod with ResourceClaims starts: create ResourceClaim cache: .*checkpoint is corrupted/,
  );
  expect(port.problems()).toHaveLength(1);
});

test("faults of claim allocations are reported by comparing them with the ResourceSlices", async () => {
  const reportOf = async (...devices: readonly string[]) => {
    const node = await ground().open(devices);
    return node.ok ? node.value.claims?.problems().map(({ message }) => message) : [node.error];
  };
  expect(await reportOf()).toEqual([]);
  expect(await reportOf("a", "b")).toEqual([]);
  expect(await reportOf("a")).toEqual([
    `ResourceClaim default/b: device b of driver ${DRIVER} and pool n1: no ResourceSlice of pool n1 has it`,
  ]);
});

test("opening fails where a kubelet answers beside the registry", async () => {
  const { dir, open } = ground();
  mkdirSync(join(dir, "device-plugins"));
  const socket = join(dir, "device-plugins", "kubelet.sock");
  const kubelet = createServer();
  await new Promise<void>((resolve) => kubelet.listen(socket, resolve));
  onTestFinished(() => void kubelet.close());
  expect(await open()).toEqual({
    ok: false,
    error: `DRA drivers: ${socket}: another process answers there, such as a kubelet: end it, or choose another directory (pluginsRegistryDirectory)`,
  });
});
