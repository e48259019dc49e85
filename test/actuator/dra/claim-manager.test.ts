import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { replaceText } from "../../../actuator/core/record-file.ts";
import type { PluginFault } from "../../../actuator/deviceplugin/fault.ts";
import { openPluginWatcher } from "../../../actuator/deviceplugin/watcher.ts";
import { ClaimManager } from "../../../actuator/dra/claim-manager.ts";
import { DraRegistry } from "../../../actuator/dra/driver-registry.ts";
import { err, ok } from "../../../api/base/result.ts";
import type { Container } from "../../../api/model/pod.ts";
import type { ResourceClaim } from "../../../api/model/resource-claim.ts";
import { profileOf } from "../../../api/profiles/index.ts";
import { claim, claiming, DRIVER, result } from "../../kit/claims.ts";
import { decodedPod } from "../../kit/pods.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { until } from "../deviceplugin/node-plugin.ts";
import { type DriverScript, TestDriver } from "./test-driver.ts";

const OTHER = "nic.example.com";

/** A node with drivers in its own directory: claims `a` and `b` of one driver, `n` of the other, and `both` of both. */
function node(timeoutMs = 2_000) {
  const dir = scratchFolder();
  const faults: PluginFault[] = [];
  const registry = new DraRegistry({ timeoutMs, onChange: () => {} });
  const watcher = openPluginWatcher({
    dir,
    handlers: { DRAPlugin: registry.handler },
    onFault: (fault) => faults.push(fault),
  });
  const drivers: TestDriver[] = [];
  onTestFinished(() => {
    watcher.close();
    registry.close();
    for (const driver of drivers) driver.die();
  });
  const nic = { ...result("n"), driver: OTHER };
  const pods = ["p", "q", "r"];
  const claims = [
    claim("a", [result("a")], pods),
    claim("b", [result("b")], pods),
    claim("n", [nic], pods),
    claim("both", [result("x"), nic], pods),
    ...Array.from({ length: 12 }, (_, i) => claim(`f${i}`, [result(`f${i}`)], pods)),
  ] as unknown as ResourceClaim[];
  const file = join(dir, "dra_manager_state");
  /** Starts the claim manager as a daemon does; `store` replaces the writing of the file. */
  const start = (store = (text: string): unknown => replaceText(file, text), version?: string): ClaimManager => {
    const opened = ClaimManager.open({
      behaviour: profileOf(version).behaviour.claims,
      gates: { extended: true, groups: false, optionalOperations: false },
      registry,
      claims: async (_, names) => {
        const found = claims.filter(({ metadata }) => names.includes(metadata.name));
        return ok(new Map(found.map((one) => [one.metadata.name, one])));
      },
      state: existsSync(file) ? readFileSync(file, "utf8") : undefined,
      store: (text) => {
        try {
          return ok(store(text));
        } catch (error) {
          return err((error as Error).message);
        }
      },
    });
    if (!opened.ok) throw new Error(opened.error);
    return opened.value;
  };
  const driver = async (name = DRIVER, script: Partial<DriverScript> = {}): Promise<TestDriver> => {
    const made = new TestDriver({ dir, name, ...script });
    drivers.push(made);
    await made.serve();
    await until(
      () => made.notified,
      (reported) => reported.length > 0,
    );
    return made;
  };
  const known = (): readonly string[] =>
    JSON.parse(JSON.parse(readFileSync(file, "utf8")).Data).ClaimInfoStateList.map(
      (one: { ClaimName: string; PodUIDs: object }) => `${one.ClaimName}: ${Object.keys(one.PodUIDs).join(" ")}`,
    );
  return { dir, file, registry, faults, start, driver, known };
}
const pod = (name: string, ...claims: readonly string[]) => decodedPod(claiming(name, claims));
const cdi = (manager: ClaimManager, of: ReturnType<typeof pod>) => {
  const devices = manager.devices(of, of.spec.containers[0] as Container);
  return devices.ok ? devices.value : devices.error;
};

describe("a DRA driver in plugins_registry", () => {
  test.each([
    [["v1.DRAPlugin", "v1beta1.DRAPlugin"], "v1.DRAPlugin"],
    [["v1beta1.DRAPlugin"], "v1beta1.DRAPlugin"],
    [["v1beta1.DRAPlugin", "v1.DRAPlugin"], "v1beta1.DRAPlugin"],
  ])("is called through the first service of %j that the node supports", async (services, service) => {
    const { start, driver, registry } = node();
    const gpu = await driver(DRIVER, { services });
    expect(registry.drivers()).toEqual([{ name: DRIVER, services: [service] }]);
    const manager = start();
    expect(await manager.prepare(pod("p", "a"))).toBeUndefined();
    expect(gpu.calls).toEqual([{ operation: "NodePrepareResources", service, claims: ["a"] }]);
    expect(cdi(manager, pod("p", "a"))).toEqual([`${DRIVER}/dev=a`]);
  });
  test("without a supported service is refused in the kubelet's words", async () => {
    const { driver, registry, faults } = node();
    const gpu = await driver(DRIVER, { services: ["1.0.0"] });
    const why = `RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC versions of DRA driver plugin ${DRIVER} at endpoint ${gpu.socketPath}: none of services supported by the plugin (["1.0.0"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])`;
    expect(gpu.notified[0]).toEqual({ pluginRegistered: false, error: why });
    // the driver is notified before the fault is reported
    await expect.poll(() => faults[0]?.message).toBe(why);
    expect(registry.drivers()).toEqual([]);
  });
  test("leaves when its socket is removed, and a second plugin of the same driver takes over", async () => {
    const { driver, registry, start } = node();
    const old = await driver();
    const gpu = await driver(DRIVER, { socket: "second.sock" });
    old.vanish();
    await until(
      () => registry.driver(DRIVER)?.endpoint,
      (endpoint) => endpoint === gpu.socketPath,
    );
    expect(await start().prepare(pod("p", "a"))).toBeUndefined();
    expect(gpu.prepared).toEqual(new Set(["claim-a"]));
    gpu.vanish();
    await until(
      () => registry.isRegistered(DRIVER),
      (is) => !is,
    );
    expect(await start().prepare(pod("q", "b"))).toBe(
      `prepare dynamic resources: DRA driver ${DRIVER} is not registered`,
    );
  });
});

describe("ResourceClaims", () => {
  test("are prepared once for all pods that share them, and unprepared after the last one", async () => {
    const { start, driver, known } = node();
    const gpu = await driver();
    const manager = start();
    const both = await Promise.all([manager.prepare(pod("p", "a", "b")), manager.prepare(pod("q", "b", "a"))]);
    expect(both).toEqual([undefined, undefined]);
    expect(gpu.calls.map(({ claims }) => claims)).toEqual([["a", "b"]]);
    expect(known()).toEqual(["a: uid-p uid-q", "b: uid-p uid-q"]);
    expect(await manager.unprepare(pod("p", "a", "b"))).toBeUndefined();
    expect(gpu.prepared).toEqual(new Set(["claim-a", "claim-b"]));
    expect(await manager.unprepare(pod("q", "b", "a"))).toBeUndefined();
    expect([[...gpu.prepared], known()]).toEqual([[], []]);
  });
  test("of a hanging driver do not hold up another driver's", async () => {
    const { start, driver } = node(1_000);
    const gpu = await driver(DRIVER, { answers: { NodePrepareResources: () => "hang" } });
    await driver(OTHER);
    const manager = start();
    let isDone = false;
    const hanging = manager.prepare(pod("p", "a")).finally(() => {
      isDone = true;
    });
    expect(await manager.prepare(pod("q", "n"))).toBeUndefined();
    expect(isDone).toBe(false);
    expect(await hanging).toContain(
      "prepare dynamic resources: NodePrepareResources: rpc error: code = DeadlineExceeded desc = ",
    );
    gpu.script.answers = {};
    expect(await manager.prepare(pod("p", "a"))).toBeUndefined();
  });
  test("of a hanging driver do not hold up other drivers' claims that its pods use too", async () => {
    const { start, driver, known } = node(1_000);
    const gpu = await driver(DRIVER, { answers: { NodePrepareResources: () => "hang" } });
    const nic = await driver(OTHER);
    const manager = start();
    const waits: string[] = [];
    const hanging = [pod("p", "a", "n"), pod("r", "b", "n")].map((one) =>
      manager.prepare(one, { onWait: (wait) => waits.push(wait?.what ?? "") }),
    );
    await expect.poll(() => gpu.calls.length).toBe(2);
    expect(await manager.prepare(pod("q", "n"))).toBeUndefined();
    expect(cdi(manager, pod("q", "n"))).toEqual([`${OTHER}/dev=n`]);
    expect(await manager.unprepare(pod("q", "n"))).toBeUndefined();
    expect(waits).toEqual([
      "its ResourceClaims to be read: a, n",
      "its ResourceClaims to be read: b, n",
      `the DRA driver ${DRIVER} to prepare ResourceClaim a`,
      `the DRA driver ${DRIVER} to prepare ResourceClaim b`,
    ]);
    for (const fault of await Promise.all(hanging)) expect(fault).toContain("DeadlineExceeded");
    gpu.script.answers = {};
    for (const one of [pod("p", "a", "n"), pod("r", "b", "n")]) expect(await manager.prepare(one)).toBeUndefined();
    expect(cdi(manager, pod("p", "a", "n"))).toEqual([`${DRIVER}/dev=a`, `${OTHER}/dev=n`]);
    expect(nic.calls.map(({ operation }) => operation)).toEqual(["NodePrepareResources"]);
    // a claim that this driver has not unprepared does not block another driver
    gpu.script.answers = { NodeUnprepareResources: () => "hang" };
    await manager.unprepare(pod("r", "n"));
    const leaving = manager.unprepare(pod("p", "a", "n"));
    await expect.poll(() => nic.prepared.size).toBe(0);
    expect(await manager.prepare(pod("q", "n"))).toBeUndefined();
    expect(known()).toEqual(["a: uid-p", "b: uid-r", "n: uid-q"]);
    expect(await leaving).toContain("DeadlineExceeded");
  });
  test("are prepared once even while a pod is still preparing other claims", async () => {
    const { start, driver } = node(1_000);
    const gpu = await driver();
    const nic = await driver(OTHER, { answers: { NodePrepareResources: () => "hang" } });
    const manager = start();
    const hanging = manager.prepare(pod("p", "a", "n"));
    await expect.poll(() => nic.calls.length).toBe(1);
    expect(await manager.prepare(pod("q", "a", "b"))).toBeUndefined();
    expect(cdi(manager, pod("q", "a", "b"))).toEqual([`${DRIVER}/dev=a`, `${DRIVER}/dev=b`]);
    expect(gpu.calls.map(({ claims }) => claims)).toEqual([["a"], ["b"]]);
    expect(await hanging).toContain("DeadlineExceeded");
  });
  test.each(["1.34", "1.37"] as const)(
    "being unprepared by the driver are waited for and prepared again: %s",
    async (version) => {
      const { start, driver } = node();
      const taken = Promise.withResolvers<void>();
      const gpu = await driver(DRIVER, {
        answers: {
          NodeUnprepareResources: (asked) => taken.promise.then(() => gpu.usual("NodeUnprepareResources", asked)),
        },
      });
      const manager = start(undefined, version);
      expect(await manager.prepare(pod("p", "a"))).toBeUndefined();
      const leaving = manager.unprepare(pod("p", "a"));
      await expect.poll(() => gpu.calls.length).toBe(2);
      const waits: string[] = [];
      const next = manager.prepare(pod("q", "a"), { onWait: (wait) => waits.push(wait?.what ?? "") });
      await expect
        .poll(() => waits.at(-1))
        .toBe(`the DRA driver ${DRIVER} to take back ResourceClaim a of another pod`);
      taken.resolve();
      expect([await leaving, await next]).toEqual([undefined, undefined]);
      expect([...gpu.prepared]).toEqual(["claim-a"]);
      expect(gpu.calls.map(({ operation }) => operation.slice(4))).toEqual([
        "PrepareResources",
        "UnprepareResources",
        "PrepareResources",
      ]);
    },
  );
  test.each<[string, (uids: readonly string[]) => object | Error, string]>([
    ["fails", () => new Error("no device"), "NodePrepareResources: rpc error: code = Unknown desc = no device"],
    ["says nothing of them", () => ({ claims: {} }), "NodePrepareResources skipped 1 ResourceClaims"],
    [
      "speaks of another",
      () => ({ claims: { "claim-a": {}, "claim-z": {} } }),
      "NodePrepareResources returned result for unknown claim UID claim-z",
    ],
    [
      "answers more than is kept of one",
      () => ({ claims: { "claim-a": { devices: [{ poolName: "n", deviceName: "x".repeat(300_000) }] } } }),
      "NodePrepareResources failed for ResourceClaim a: the answer has 300070 bytes, more than the 262144 of a claim",
    ],
  ])("of a driver that %s keep the pod from starting, and are tried again", async (_, answer, why) => {
    const { start, driver } = node();
    const gpu = await driver(DRIVER, { answers: { NodePrepareResources: () => answer(["claim-a"]) } });
    await driver(OTHER);
    const manager = start();
    expect(await manager.prepare(pod("p", "a"))).toBe(`prepare dynamic resources: ${why}`);
    expect(await manager.prepare(pod("q", "n"))).toBeUndefined();
    gpu.script.answers = {};
    expect(await manager.prepare(pod("p", "a"))).toBeUndefined();
    expect(cdi(manager, pod("p", "a"))).toEqual([`${DRIVER}/dev=a`]);
  });
  test("of a driver that fills the state file leave room for other drivers'", async () => {
    const { start, driver } = node(20_000);
    const large = (n: string) => ({ poolName: "n", deviceName: n.repeat(200_000) });
    const gpu = await driver(DRIVER, {
      answers: {
        NodePrepareResources: ({ claims }) => ({
          claims: Object.fromEntries(claims.map(({ uid, name }) => [uid, { devices: [large(name[0] ?? "")] }])),
        }),
      },
    });
    await driver(OTHER);
    const manager = start();
    const names = Array.from({ length: 12 }, (_, i) => `f${i}`);
    const messages = await Promise.all(names.map((name) => manager.prepare(pod("p", name))));
    const refused = messages.filter((one) => one !== undefined);
    expect([refused.length > 0, refused.length < messages.length]).toEqual([true, true]);
    expect(refused[0]).toMatch(
      /^prepare dynamic resources: NodePrepareResources failed for ResourceClaim f\d+: the driver's answers would have \d+ bytes, more than its share of dra_manager_state$/,
    );
    expect(await manager.prepare(pod("q", "n"))).toBeUndefined();
    gpu.script.answers = {};
    for (const name of names) expect(await manager.unprepare(pod("p", name))).toBeUndefined();
  });
  test("of a driver that died are unprepared once it is back", async () => {
    const { start, driver, known } = node();
    const gpu = await driver();
    const manager = start();
    await manager.prepare(pod("p", "a"));
    gpu.die();
    expect(await manager.unprepare(pod("p", "a"))).toMatch(
      // the registry may close the connection first
      /NodeUnprepareResources: rpc error: code = (?:Unavailable|Canceled)/,
    );
    expect(known()).toEqual(["a: uid-p"]);
    rmSync(gpu.socketPath, { force: true });
    await driver();
    while ((await manager.unprepare(pod("p", "a"))) !== undefined) await sleep(50);
    expect(known()).toEqual([]);
  });
  test("that are being unprepared are given to no other pod", async () => {
    const { start, driver } = node();
    const gpu = await driver();
    const manager = start();
    await manager.prepare(pod("p", "a"));
    gpu.script.answers = { NodeUnprepareResources: () => new Error("busy") };
    expect(await manager.unprepare(pod("p", "a"))).toContain("busy");
    expect(await manager.prepare(pod("q", "a"))).toBe("prepare dynamic resources: ResourceClaim a is being unprepared");
    gpu.script.answers = {};
    expect(await manager.unprepare(pod("p", "a"))).toBeUndefined();
    expect(await manager.prepare(pod("q", "a"))).toBeUndefined();
  });
  test("of unknown pods are unprepared", async () => {
    const { start, driver, known } = node();
    const gpu = await driver();
    await start().prepare(pod("p", "a", "b"));
    await start().prepare(pod("q", "b"));
    expect(await start().reconcile(new Set(["uid-q"]))).toEqual(new Map());
    expect([[...gpu.prepared], known()]).toEqual([["claim-b"], ["b: uid-q"]]);
  });
});

describe("a daemon that is killed", () => {
  /** Writes of the file that fail from write number `last` on. */
  const dyingAt = (file: string, last: number) => {
    let writes = 0;
    return (text: string): unknown => {
      if (writes++ >= last) throw new Error("killed");
      return replaceText(file, text);
    };
  };
  test.each([0, 1, 2, 3, 4])(
    "at its write %i leaves nothing prepared behind, and its successor goes on",
    async (last) => {
      const { start, driver, file, known } = node();
      const [gpu, nic] = [await driver(), await driver(OTHER)];
      const dying = start(dyingAt(file, last));
      await dying.prepare(pod("p", "both", "a"));
      await dying.unprepare(pod("p", "both", "a"));
      const next = start();
      expect(await next.prepare(pod("p", "both", "a"))).toBeUndefined();
      expect(cdi(next, pod("p", "both", "a"))).toEqual([`${DRIVER}/dev=both`, `${OTHER}/dev=both`, `${DRIVER}/dev=a`]);
      expect(await start().unprepare(pod("p", "both", "a"))).toBeUndefined();
      expect([[...gpu.prepared], [...nic.prepared], known()]).toEqual([[], [], []]);
    },
  );
  test("whose state cannot be written starts no pod with claims, and says why", async () => {
    const { start, driver } = node();
    await driver();
    const full = start(() => {
      throw new Error("ENOSPC: no space left on device");
    });
    expect(await full.prepare(pod("p", "a"))).toBe("checkpoint ResourceClaim state: ENOSPC: no space left on device");
  });
});
