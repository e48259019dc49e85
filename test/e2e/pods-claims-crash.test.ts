import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { NodeOperation } from "../../api/decide/dra/claim-info.ts";
import type { Asked, TestDriver } from "../actuator/dra/test-driver.ts";
import { claimingPod, claimManifest, driverOn, knownClaims } from "./pods/claims-on-node.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("ResourceClaims over crashes");
const NAMES = ["a", "b", "kept"];

describe.skipIf(why !== undefined)("ResourceClaims over crashes", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let gpu: TestDriver;
  beforeAll(async () => {
    node = await PodNode.start({ settings: { draDrivers: "serve", retrySeconds: 1 } });
    for (const name of NAMES) node.put(`claim-${name}`, claimManifest(name, ["first", "stays"]));
    gpu = driverOn(node);
    await gpu.serve();
    node.startDaemon();
    node.put("stays", claimingPod("stays", ["kept"]));
    await node.daemon.running("stays");
  }, LONG_MS);
  afterEach(async () => {
    // whatever happened: its claim was prepared once, it was never started again, and nobody else holds anything
    expect([...gpu.prepared]).toEqual(["claim-kept"]);
    expect(knownClaims(node)).toEqual(["kept: uid-stays"]);
    expect((await node.containersOf("stays")).map(({ state, attempt }) => [state, attempt])).toEqual([["running", 0]]);
    expect(gpu.calls.filter(({ claims }) => claims.includes("kept"))).toHaveLength(1);
  });
  afterAll(async () => {
    gpu?.vanish();
    await node?.stop();
  }, LONG_MS);

  const lastOnly = (): Promise<true> => until("only the claim that stays", () => holds(gpu.prepared.size === 1));
  const ends = async (name: string): Promise<void> => {
    node.remove(name);
    await node.daemon.gone(name);
    await lastOnly();
  };
  /** The daemon is killed in the driver's call, before it answers or after. */
  const killedIn = (operation: NodeOperation, answers: boolean): Promise<void> => {
    const killed = Promise.withResolvers<void>();
    gpu.script.answers = {
      [operation]: (asked: Asked) => {
        gpu.script.answers = {};
        if (answers) gpu.usual(operation, asked);
        killed.resolve(node.daemon.kill());
        return "hang";
      },
    };
    return killed.promise;
  };

  test.each([true, false])(
    "the daemon is killed while a claim is prepared; the driver had done it: %s",
    async (done) => {
      const killed = killedIn("NodePrepareResources", done);
      node.put("first", claimingPod("first", ["a", "b"]));
      await killed;
      expect(knownClaims(node)).toEqual(["a: uid-first", "b: uid-first", "kept: uid-stays"]);
      node.startDaemon();
      await node.daemon.running("first");
      expect([...gpu.prepared].sort()).toEqual(["claim-a", "claim-b", "claim-kept"]);
      await ends("first");
    },
  );
  test("the daemon is killed while a claim is prepared, and its pod is gone when it comes back", async () => {
    const killed = killedIn("NodePrepareResources", true);
    node.put("first", claimingPod("first", ["a"]));
    await killed;
    node.remove("first");
    node.startDaemon();
    await node.daemon.gone("first");
    await lastOnly();
    expect(await node.containersOf("first")).toEqual([]);
  });
  test.each([true, false])(
    "the daemon is killed while a claim is given back; the driver had done it: %s",
    async (done) => {
      node.put("first", claimingPod("first", ["a"]));
      await node.daemon.running("first");
      const killed = killedIn("NodeUnprepareResources", done);
      node.remove("first");
      await killed;
      node.startDaemon();
      await node.daemon.gone("first");
      await lastOnly();
    },
  );
  test("the daemon is killed while a pod runs, whose container then starts anew with what was prepared", async () => {
    node.put("first", claimingPod("first", ["a"]));
    await node.daemon.running("first");
    const calls = gpu.calls.length;
    await node.daemon.kill();
    const [container] = await node.containersOf("first");
    await node.kill(container?.id ?? "");
    node.startDaemon();
    await node.daemon.pod(
      "first",
      "restarted",
      ({ containers }) => containers[0]?.restarts === 1 && containers[0].ready,
    );
    expect(gpu.calls).toHaveLength(calls);
    await ends("first");
  });
  test("the driver dies in its call, and the pod starts once it is back", async () => {
    gpu.script.answers = {
      NodePrepareResources: () => {
        gpu.script.answers = {};
        gpu.die();
        return "hang";
      },
    };
    node.put("first", claimingPod("first", ["a"]));
    await node.daemon.event(
      "first",
      "FailedPrepareDynamicResources",
      /NodePrepareResources: rpc error: code = (Canceled|Unavailable)/,
    );
    node.put("plain", podOf("plain"));
    await node.daemon.running("plain");
    await ends("plain");
    gpu.vanish();
    await gpu.serve();
    await node.daemon.running("first");
    await ends("first");
  });
  test("the driver is gone while its pod ends, and takes the claim back once it is there again", async () => {
    node.put("first", claimingPod("first", ["a"]));
    await node.daemon.running("first");
    gpu.vanish();
    node.remove("first");
    await node.daemon.until("why it is there still", ({ problems }) =>
      holds(problems.some((one) => one.includes("does not get rid of its ResourceClaims"))),
    );
    expect((await node.containersOf("first")).map(({ state }) => state)).toEqual(["exited"]);
    await gpu.serve();
    await node.daemon.gone("first");
    await lastOnly();
  });
});
