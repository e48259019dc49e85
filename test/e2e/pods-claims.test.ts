import { isDeepStrictEqual } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { NodeOperation } from "../../api/decide/dra/claim-info.ts";
import type { Asked, TestDriver } from "../actuator/dra/test-driver.ts";
import { DRIVER } from "../kit/claims.ts";
import { cdiContainerd } from "./containerd/programs.ts";
import { claimingPod, claimManifest, driverOn, knownClaims, servesCdi, specify } from "./pods/claims-on-node.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until } from "./pods/until.ts";

const LONG_MS = 300_000;
const OTHER = "nic.example.com";
/** The driver whose devices the runtime adds. */
const CDI = "cdi.example.com";
const NAMES = ["a", "b", "c", "d", "e", "f", "g"];
const why = noPods("pods with ResourceClaims");

describe.skipIf(why !== undefined)("pods with ResourceClaims", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let gpu: TestDriver;
  let nic: TestDriver;
  let cdi: TestDriver;
  beforeAll(async () => {
    node = await PodNode.start({ runtime: cdiContainerd(), settings: { draDrivers: "serve", retrySeconds: 1 } });
    specify(node, ["cdi"], CDI);
    for (const name of NAMES) node.put(`claim-${name}`, claimManifest(name, ["first", "second"]));
    node.put("claim-n", claimManifest("n", ["other"], OTHER));
    node.put("claim-cdi", claimManifest("cdi", ["first"], CDI));
    [gpu, nic, cdi] = [driverOn(node), driverOn(node, OTHER), driverOn(node, CDI, true)];
    node.startDaemon();
    await Promise.all([gpu, nic, cdi].map((driver) => driver.serve()));
  }, LONG_MS);
  afterEach(() => {
    gpu.script.answers = {};
    gpu.calls.length = 0;
  });
  afterAll(async () => {
    for (const driver of [gpu, nic, cdi]) driver?.vanish();
    await node?.stop();
  }, LONG_MS);

  const released = (driver = gpu): Promise<true> => until("no claim is held", () => holds(driver.prepared.size === 0));
  const ends = async (...names: readonly string[]): Promise<void> => {
    node.remove(...names);
    await node.daemon.gone(...names);
  };

  test("have them prepared before they run, and unprepared once they have stopped", async () => {
    const states: unknown[] = [];
    const look = (operation: NodeOperation) => (asked: Asked) => {
      void node.containersOf("first").then((all) => states.push([operation, all.map(({ state }) => state)]));
      return gpu.usual(operation, asked);
    };
    gpu.script.answers = {
      NodePrepareResources: look("NodePrepareResources"),
      NodeUnprepareResources: look("NodeUnprepareResources"),
    };
    node.put("first", claimingPod("first", ["a", "b"]));
    await node.daemon.running("first");
    expect(gpu.calls.map(({ operation, claims }) => [operation, claims])).toEqual([
      ["NodePrepareResources", ["a", "b"]],
    ]);
    expect(knownClaims(node)).toEqual(["a: uid-first", "b: uid-first"]);
    await ends("first");
    expect([[...gpu.prepared], knownClaims(node)]).toEqual([[], []]);
    expect(states).toEqual([
      ["NodePrepareResources", []],
      ["NodeUnprepareResources", ["exited"]],
    ]);
  });

  test("see the CDI devices of their claims where the runtime supports CDI", async ({ skip }) => {
    if (!(await servesCdi(node))) skip("this runtime does not serve CDI");
    node.put("first", claimingPod("first", ["cdi", "a"]));
    await node.daemon.running("first");
    const [container] = await node.containersOf("first");
    const script = "echo $CLAIMED_CDI; ls /dev | grep claimed; echo x > /dev/claimed-cdi && echo written";
    expect(await node.exec(container?.id ?? "", script)).toBe("by the spec\nclaimed-cdi\nwritten");
    await ends("first");
    expect([[...cdi.prepared], knownClaims(node)]).toEqual([[], []]);
  });
  test("do not start, and say why, where the runtime would ignore their CDI devices", async ({ skip }) => {
    if (await servesCdi(node)) skip("this runtime serves CDI");
    node.put("first", claimingPod("first", ["cdi"]));
    await node.daemon.event("first", "Failed", /^Error: CDI devices \(cdi\.example\.com\/dev=cdi\): containerd /);
    expect(await node.containersOf("first")).toEqual([]);
    await ends("first");
    expect([[...cdi.prepared], knownClaims(node)]).toEqual([[], []]);
  });

  test.each([
    ["1.36", "v1alpha1.DRAResourceHealth", "b"],
    ["1.37", "v1.DRAResourceHealth", "a"],
  ] as const)(
    "report the health of their devices at once, also after the daemon was killed: kubelet %s",
    async (kubeletVersion, service, name) => {
      const device = { poolName: "n", deviceName: name };
      const reportOf = (health: string, message?: string) =>
        node.daemon.pod("first", `whose device is ${health}`, ({ containers: [main] }) => {
          const [claim] = main?.allocatedResourcesStatus ?? [];
          return isDeepStrictEqual(claim, {
            name: `claim:${name}`,
            resources: [{ resourceID: `${DRIVER}/n/${name}`, health, ...(message && { message }) }],
          });
        });
      await node.daemon.kill();
      node.startDaemon({ kubeletVersion });
      node.put("first", claimingPod("first", [name]));
      await node.daemon.running("first");
      await reportOf("Unknown");
      expect(gpu.watchers.at(-1)?.service).toBe(service);
      gpu.report({ device, health: 1 });
      await reportOf("Healthy");
      gpu.report({ device, health: 2, healthCheckTimeoutSeconds: 3600, message: "too hot" });
      await reportOf("Unhealthy", "too hot");
      // after that, the driver reports no devices
      gpu.devices = [];
      await node.daemon.kill();
      const watchers = gpu.watchers.length;
      node.startDaemon({ kubeletVersion });
      await until("the next stream", () => holds(gpu.watchers.length > watchers));
      await reportOf("Unhealthy", "too hot");
      await ends("first");
      await released();
    },
  );

  test("can share a claim, which is prepared once and kept for the last of them", async () => {
    node.put("first", claimingPod("first", ["a"]));
    await node.daemon.running("first");
    node.put("second", claimingPod("second", ["a"]));
    await node.daemon.running("second");
    await ends("first");
    expect([[...gpu.prepared], knownClaims(node)]).toEqual([["claim-a"], ["a: uid-second"]]);
    await ends("second");
    await released();
    expect(gpu.calls.map(({ operation }) => operation)).toEqual(["NodePrepareResources", "NodeUnprepareResources"]);
  });

  test("without a driver say so, and start once the driver has registered", async () => {
    gpu.vanish();
    node.put("first", claimingPod("first", ["c"]));
    await node.daemon.event(
      "first",
      "FailedPrepareDynamicResources",
      `Failed to prepare dynamic resources: prepare dynamic resources: DRA driver ${DRIVER} is not registered`,
    );
    expect(await node.containersOf("first")).toEqual([]);
    await gpu.serve();
    await node.daemon.running("first");
    await ends("first");
    await released();
  });

  test("wait for a hanging driver without holding up others", async () => {
    const hung = Promise.withResolvers<void>();
    gpu.script.answers = {
      NodePrepareResources: () => {
        hung.resolve();
        return "hang";
      },
    };
    const many = Array.from({ length: 10 }, (_, i) => `hung-${i}`);
    node.put("claim-hung", claimManifest("g", many));
    node.remove("claim-g");
    for (const name of many) node.put(name, claimingPod(name, ["g"]));
    await hung.promise;
    const waits = await node.daemon.pod("hung-0", "waiting", ({ containers }) =>
      containers.some(({ reason }) => reason === "PreparingResourceClaims"),
    );
    expect(waits.containers[0]?.message).toMatch(new RegExp(`waits for (the DRA driver ${DRIVER}|its ResourceClaims)`));
    node.put("other", claimingPod("other", ["n"]));
    node.put("plain", podOf("plain"));
    await node.daemon.running("other", "plain");
    await ends("other", "plain");
    await released(nic);
    // a hanging call is cancelled when its pod has to end
    await ends(...many);
    expect(knownClaims(node)).toEqual([]);
  });

  test("are retried ten seconds after a driver's failure, when starting and when ending", async () => {
    node.put("second", claimingPod("second", ["e"]));
    await node.daemon.running("second");
    const fails = () => new Error("no device left");
    gpu.script.answers = { NodePrepareResources: fails, NodeUnprepareResources: fails };
    node.put("first", claimingPod("first", ["d"]));
    node.remove("second");
    const words = "NodePrepareResources: rpc error: code = Unknown desc = no device left";
    await node.daemon.event(
      "first",
      "FailedPrepareDynamicResources",
      `Failed to prepare dynamic resources: prepare dynamic resources: ${words}`,
    );
    await node.daemon.until("the driver's words", ({ problems }) =>
      holds(problems.some((one) => one.includes("NodeUnprepareResources") && one.includes("no device left"))),
    );
    expect((await node.containersOf("second")).map(({ state }) => state)).not.toContain("running");
    gpu.script.answers = {};
    await node.daemon.gone("second");
    await node.daemon.running("first");
    await ends("first");
    expect([[...gpu.prepared], knownClaims(node)]).toEqual([[], []]);
  });

  test("without a reservation, or without the claim itself, say so", async () => {
    node.put("third", claimingPod("third", ["a"]));
    node.put("second", claimingPod("second", ["nobodys"]));
    await node.daemon.event(
      "third",
      "FailedPrepareDynamicResources",
      /pod third-e2e \(uid-third\) is not allowed to use ResourceClaim a \(claim-a\)$/,
    );
    await node.daemon.event(
      "second",
      "FailedPrepareDynamicResources",
      /fetch ResourceClaim nobodys: resourceclaims.resource.k8s.io "nobodys" not found$/,
    );
    await ends("third", "second");
  });
});
