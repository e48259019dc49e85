import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { NodeOperation } from "../../api/decide/dra/claim-info.ts";
import { claimingPod, claimManifest, knownClaims, servesCdi } from "./pods/claims-on-node.ts";
import { type DriverFault, DriverProcess } from "./pods/driver-process.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("ResourceClaims over crashes");
const [PREPARE, UNPREPARE] = ["NodePrepareResources", "NodeUnprepareResources"] as const;
/** The moments of a call: the driver has not begun, or it has done everything and not answered. */
const MOMENTS = ["hangs", "hangs when it has done it"] as const;

describe.skipIf(why !== undefined)("ResourceClaims across crashes", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let gpu: DriverProcess;
  let tests = 0;
  /** The name of each test's own pod and claim. */
  let name = "";
  beforeAll(async () => {
    node = await PodNode.start({ settings: { draDrivers: "serve", retrySeconds: 1 }, isMeddled: true });
    node.put("claim-kept", claimManifest("kept", ["stays"]));
    gpu = new DriverProcess(node);
    gpu.start();
    node.startDaemon();
    node.put("stays", claimingPod("stays", ["kept"]));
    await node.daemon.running("stays");
  }, LONG_MS);
  afterEach(async () => {
    // after every test: the kept claim was prepared once, its pod was never restarted, and no other claim is prepared
    expect(gpu.prepared).toEqual(["claim-kept"]);
    expect(knownClaims(node)).toEqual(["kept: uid-stays"]);
    expect((await node.containersOf("stays")).map(({ state, attempt }) => [state, attempt])).toEqual([["running", 0]]);
    expect(gpu.callsOf("kept")).toEqual([PREPARE]);
  });
  afterAll(async () => {
    await gpu?.kill();
    await node?.stop();
  }, LONG_MS);

  const begins = (): void => {
    name = `pod-${++tests}`;
    node.put(`claim-${name}`, claimManifest(name, [name]));
    node.put(name, claimingPod(name, [name]));
  };
  const ends = async (): Promise<void> => {
    node.remove(name);
    await isGone();
  };
  const isGone = async (): Promise<void> => {
    await node.daemon.gone(name);
    await until("only the claim that stays", () => holds(gpu.prepared.length === 1));
  };
  /**
   * Sets the fault of an operation, calls `start`, waits for the call to the driver, then calls `kill` and removes the
   * fault.
   */
  const inCall = async (
    operation: NodeOperation,
    fault: DriverFault,
    start: () => void,
    kill: () => Promise<unknown>,
  ) => {
    gpu.setFaults({ [operation]: fault });
    const asked = gpu.asked(operation);
    start();
    await asked;
    await kill();
    gpu.setFaults({});
  };
  const restarted = async (): Promise<void> => {
    await gpu.kill();
    gpu.start();
  };
  const failsToPrepare = () =>
    node.daemon.event(
      name,
      "FailedPrepareDynamicResources",
      /NodePrepareResources: rpc error: code = (Canceled|Unavailable)/,
    );

  describe("when the driver is killed", () => {
    test("before NodePrepareResources, the pod starts once it is back, and others start meanwhile", async () => {
      await gpu.kill();
      begins();
      await failsToPrepare();
      node.put("plain", podOf("plain"));
      await node.daemon.running("plain");
      node.remove("plain");
      gpu.start();
      await node.daemon.running(name);
      expect(gpu.callsOf(name)).toEqual([PREPARE]);
      await ends();
      expect(gpu.callsOf(name)).toEqual([PREPARE, UNPREPARE]);
    });
    test.each(MOMENTS)("in NodePrepareResources, where it %s, the pod starts once it is back", async (fault) => {
      await inCall(PREPARE, fault, begins, () => gpu.kill());
      await failsToPrepare();
      expect(await node.containersOf(name)).toEqual([]);
      gpu.start();
      await node.daemon.running(name);
      expect(gpu.callsOf(name)).toEqual([PREPARE, PREPARE]);
      await ends();
      expect(gpu.callsOf(name)).toEqual([PREPARE, PREPARE, UNPREPARE]);
    });
    test.each(["RunPodSandbox", "StartContainer"] as const)(
      "after its answer and before %s, the pod starts without another call",
      async (method) => {
        node.meddling = {
          before: async (called) => {
            if (called !== method) return;
            node.meddling = {};
            await gpu.kill();
          },
        };
        begins();
        await node.daemon.running(name);
        expect(gpu.callsOf(name)).toEqual([PREPARE]);
        gpu.start();
        await ends();
        expect(gpu.callsOf(name)).toEqual([PREPARE, UNPREPARE]);
      },
    );
    test("while the pod runs, a restarted container uses what was prepared", async () => {
      begins();
      await node.daemon.running(name);
      await gpu.kill();
      const [container] = await node.containersOf(name);
      await node.kill(container?.id ?? "");
      await node.daemon.pod(name, "restarted", ({ containers: [one] }) => one?.restarts === 1 && one.ready);
      gpu.start();
      await ends();
      expect(gpu.callsOf(name)).toEqual([PREPARE, UNPREPARE]);
    });
    test.each(MOMENTS)("in NodeUnprepareResources, where it %s, it unprepares once it is back", async (fault) => {
      begins();
      await node.daemon.running(name);
      await inCall(
        UNPREPARE,
        fault,
        () => node.remove(name),
        () => gpu.kill(),
      );
      await node.daemon.until("why it is there still", ({ problems }) =>
        holds(problems.some((one) => one.includes("cannot unprepare its ResourceClaims"))),
      );
      expect((await node.containersOf(name)).map(({ state }) => state)).toEqual(["exited"]);
      gpu.start();
      await isGone();
      expect(gpu.callsOf(name)).toEqual([PREPARE, UNPREPARE, UNPREPARE]);
    });
  });

  describe("when the daemon is killed", () => {
    test.each(MOMENTS)("in NodePrepareResources, where the driver %s, the next one prepares again", async (fault) => {
      await inCall(PREPARE, fault, begins, () => node.daemon.kill());
      expect(knownClaims(node)).toEqual(["kept: uid-stays", `${name}: uid-${name}`]);
      node.startDaemon();
      await node.daemon.running(name);
      expect(gpu.callsOf(name)).toEqual([PREPARE, PREPARE]);
      await ends();
    });
    test("in NodePrepareResources together with the driver, the pod starts afterwards", async () => {
      await inCall(PREPARE, MOMENTS[1], begins, () => Promise.all([node.daemon.kill(), restarted()]));
      node.startDaemon();
      await node.daemon.running(name);
      await ends();
    });
    test("in NodePrepareResources and the pod is deleted meanwhile, the claim is unprepared", async () => {
      await inCall(PREPARE, MOMENTS[1], begins, () => node.daemon.kill());
      node.remove(name);
      node.startDaemon();
      await isGone();
      expect(await node.containersOf(name)).toEqual([]);
    });
    test.each(MOMENTS)(
      "in NodeUnprepareResources, where the driver %s, the next one unprepares again",
      async (fault) => {
        begins();
        await node.daemon.running(name);
        await inCall(
          UNPREPARE,
          fault,
          () => node.remove(name),
          () => node.daemon.kill(),
        );
        node.startDaemon();
        await isGone();
        expect(gpu.callsOf(name)).toEqual([PREPARE, UNPREPARE, UNPREPARE]);
      },
    );
    test("while a pod runs, a restarted container uses what was prepared", async () => {
      begins();
      await node.daemon.running(name);
      await node.daemon.kill();
      const [container] = await node.containersOf(name);
      await node.kill(container?.id ?? "");
      node.startDaemon();
      await node.daemon.pod(name, "restarted", ({ containers: [one] }) => one?.restarts === 1 && one.ready);
      expect(gpu.callsOf(name)).toEqual([PREPARE]);
      await ends();
    });
  });

  test("faulty drivers affect their own claims only, and nothing is left once they behave", async () => {
    const cdi = (await servesCdi(node)) ? /unresolvable CDI devices/ : /CDI devices \(.*\): containerd /;
    const wrong: readonly (readonly [DriverFault, RegExp])[] = [
      ["names another claim", /NodePrepareResources returned result for unknown claim UID nobodys-0$/],
      ["leaves the claim out", /NodePrepareResources skipped 1 ResourceClaims$/],
      ["has a million devices", /ResourceExhausted|more than the \d+ of a claim/],
      ["has no CDI device of that name", cdi],
      ["hangs", /waits for the DRA driver/],
    ];
    const faultyDrivers = wrong.map(([fault, words], i) => {
      const driver = new DriverProcess(node, `liar-${i}.example.com`);
      driver.setFaults({ [PREPARE]: fault });
      driver.start();
      node.put(`claim-liar-${i}`, claimManifest(`liar-${i}`, [`liar-${i}`], driver.name));
      node.put(`liar-${i}`, claimingPod(`liar-${i}`, [`liar-${i}`]));
      return { driver, words, fault, pod: `liar-${i}` };
    });
    try {
      begins();
      node.put("plain", podOf("plain"));
      await Promise.all(
        faultyDrivers.map(({ pod, words }) =>
          node.daemon.pod(pod, `waiting: ${words}`, ({ containers: [one] }) => words.test(one?.message ?? "")),
        ),
      );
      await node.daemon.running(name, "plain");
      node.remove("plain");
      await ends();
      // a prepared claim is not prepared again, whatever faults its devices have: this pod cannot start
      const others = faultyDrivers.filter(({ fault }) => fault !== "has no CDI device of that name");
      for (const { driver } of faultyDrivers) {
        driver.setFaults({});
        await driver.kill();
        driver.start();
      }
      await node.daemon.running(...others.map(({ pod }) => pod));
      for (const { driver, fault } of others) driver.setFaults({ [UNPREPARE]: fault });
      node.remove(...faultyDrivers.map(({ pod }) => pod));
      await node.daemon.until("what is wrong with each", ({ problems }) =>
        holds(
          others
            .filter(({ fault }) => fault !== "hangs")
            .every(({ pod }) => problems.some((one) => one.includes(`pod uid-${pod} cannot unprepare`))),
        ),
      );
      for (const { driver } of others) {
        await driver.kill();
        driver.setFaults({});
        driver.start();
      }
      await node.daemon.gone(...faultyDrivers.map(({ pod }) => pod));
      expect(faultyDrivers.flatMap(({ driver }) => driver.prepared)).toEqual([]);
    } finally {
      await Promise.all(faultyDrivers.map(({ driver }) => driver.kill()));
    }
  });
});
