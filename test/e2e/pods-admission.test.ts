import { availableParallelism } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { podOf, STUBBORN } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";

const LONG_MS = 300_000;
const CPUS = availableParallelism();
const CRITICAL = 2_000_000_000;
/** The node does not have room for two pods of this size. */
const MOST = CPUS * 1000 - 400;
const GRACE_SECONDS = 4;
const why = noPods("admission on the node");

const most = { requests: { cpu: `${MOST}m` } };
const asked = (name: string, priority: number, more: object = {}): object =>
  podOf(name, {
    uid: `00000000-0000-4000-8000-${name.padStart(12, "0").replaceAll(/[^0-9a-f]/g, "a")}`,
    priority,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    containers: [{ ...most, ...more }],
  });

describe.skipIf(why !== undefined)("admission on the node", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({ hasServer: true, isMeddled: true });
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const low = asked("low", 10, { script: STUBBORN });
  const big = asked("big", 20);
  const critical = asked("crit", CRITICAL);
  const beside = podOf("beside", { uid: "00000000-0000-4000-8000-00000000be51" });

  test("refuses a pod that does not fit with the reason, and retries it until there is room", async () => {
    node.server.set([low, beside]);
    const daemon = node.startDaemon();
    await daemon.running("low", "beside");
    node.server.set([low, beside, big]);
    const refused = await daemon.pod("big", "refused", ({ refusal }) => refusal !== null);
    const words = `Node didn't have enough resource: cpu, requested: ${MOST}, used: ${MOST}, capacity: ${CPUS * 1000}`;
    expect([refused.phase, refused.state, refused.reason, refused.refusal?.message]).toEqual([
      "Pending",
      "pending",
      "OutOfcpu",
      words,
    ]);
    await daemon.event("big", "OutOfcpu", words);
    expect((await node.containersOf("big")).length).toBe(0);
    // a daemon remembers the admitted pods after it was killed
    await daemon.kill();
    await node.startDaemon().pod("big", "refused again", ({ reason }) => reason === "OutOfcpu");
    await node.daemon.running("low", "beside");
  });

  test("starts a critical pod after its victim has ended within its grace period", async () => {
    const { daemon } = node;
    const [victim] = await node.containersOf("low");
    // the victim keeps running until the test has seen the pod that waits for it
    const seen = Promise.withResolvers<void>();
    node.meddling = { before: (method) => (method === "StopContainer" ? seen.promise : undefined) };
    node.server.set([low, beside, big, critical]);
    const waits = await daemon.pod("crit", "waiting", ({ reason }) => reason === "WaitingForVictims");
    seen.resolve();
    expect(waits.message).toBe("waits until default/low ended");
    const preempting = await daemon.event("low", "Preempting", "Preempted in order to admit critical pod");
    await daemon.running("crit");
    const ended = (await node.containersOf("low")).find(({ id }) => id === victim?.id);
    const [started] = await node.containersOf("crit");
    expect(ended).toMatchObject({ state: "exited", exitCode: 137 });
    const endedAtMs = ended?.finishedAtMs ?? 0;
    expect(endedAtMs - Date.parse(preempting.at)).toBeGreaterThanOrEqual(GRACE_SECONDS * 1000 - 100);
    expect(started?.createdAtMs ?? 0).toBeGreaterThan(endedAtMs);

    // a pod of an API server has failed for good; its controller creates a new one
    const lost = await daemon.pod("low", "ended", ({ state }) => state === "terminated");
    expect(lost).toMatchObject({
      phase: "Failed",
      reason: "Preempting",
      message: "Preempted in order to admit critical pod",
    });
    const { refusal } = await daemon.pod("big", "refused still", ({ state }) => state === "pending");
    expect(refusal?.reason).toBe("OutOfcpu");
  });

  test("admits a refused pod when another one leaves", async () => {
    const { daemon } = node;
    node.server.set([beside, big]);
    await daemon.running("big");
    await daemon.gone("low", "crit");
    const [one, other] = await node.containersOf("beside");
    expect([one?.state, one?.attempt, other]).toEqual(["running", 0, undefined]);
  });

  test("ends no pod while the server of the pods is unreachable or sends nonsense", async () => {
    const { daemon } = node;
    node.server.set([beside]);
    await daemon.gone("big");
    node.server.set([{ kind: "Pod", metadata: { name: "what" } }]);
    await daemon.until("the fault", ({ problems }) =>
      problems.find((one) => one.includes("items[0] has no metadata.uid")),
    );
    await daemon.running("beside");
    await node.closeServer();
    await daemon.until("the server's absence", ({ problems }) => problems.find((one) => one.includes("ECONNREFUSED")));
    await daemon.turns(3);
    await daemon.running("beside");
  });
});
