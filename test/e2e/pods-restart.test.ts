import { existsSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PodRow } from "../../actuator/status/node-status.ts";
import { IMAGE, podOf, STUBBORN } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const MIB = 1024 * 1024;
const EMPTY = { volumes: [{ name: "work", emptyDir: {} }] };
const WORK = { volumeMounts: [{ name: "work", mountPath: "/work" }] };
/** containerd may report the exit first and its cause later. */
const isOutOfMemory = ({ state, containers }: PodRow): boolean =>
  state === "terminated" && containers[0]?.reason === "OOMKilled";
const why = noPods("containers that end");

describe.skipIf(why !== undefined)("containers that end by themselves", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({ isMeddled: true });
    node.put("steady", podOf("steady"));
    const fails = { script: "[ -e /work/tried ] && exit 0; touch /work/tried; exit 1", ...WORK };
    node.put("onfailure", podOf("onfailure", { restartPolicy: "OnFailure", ...EMPTY, containers: [fails] }));
    node.put("never", podOf("never", { restartPolicy: "Never", containers: [{ script: "exit 4" }] }));
    // containerd watches for OOM events only after the container has started
    const eats = {
      script: `sleep 3; x=$(head -c ${128 * MIB} /dev/zero | tr '\\0' x); echo $x`,
      limits: { memory: "16Mi" },
    };
    node.put("hungry", podOf("hungry", { restartPolicy: "Never", containers: [eats] }));
    node.put("version", podOf("version", { terminationGracePeriodSeconds: 4, containers: [{ script: STUBBORN }] }));
    node.startDaemon();
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  test("are restarted according to their pod's restartPolicy", async () => {
    const { daemon } = node;
    const never = await daemon.pod("never", "failed", ({ state }) => state === "terminated");
    expect(never).toMatchObject({
      phase: "Failed",
      containers: [{ state: "terminated", reason: "Error", exitCode: 4, restarts: 0 }],
    });
    const hungry = await daemon.pod("hungry", "out of memory", isOutOfMemory);
    expect(hungry).toMatchObject({
      phase: "Failed",
      containers: [{ state: "terminated", reason: "OOMKilled", exitCode: 137, restarts: 0 }],
    });
    const done = await daemon.pod("onfailure", "done", ({ state }) => state === "terminated");
    expect(done).toMatchObject({ phase: "Succeeded", containers: [{ reason: "Completed", exitCode: 0, restarts: 1 }] });
  });

  test("have log links where log collectors look for them", async () => {
    await node.daemon.running("steady");
    const [steady] = await node.containersOf("steady");
    const link = join(node.dir, "links", `steady-e2e_default_app-${steady?.id}.log`);
    await until("the link", () => existsSync(link) || undefined);
    expect(readlinkSync(link)).toBe(steady?.logPath);
  });

  test("are restarted after longer and longer delays", async () => {
    const { daemon } = node;
    node.put("crash", podOf("crash", { containers: [{ script: "echo out of order; exit 7" }] }));
    const held = await daemon.pod("crash", "held back", ({ reason }) => reason === "CrashLoopBackOff");
    expect(held.containers[0]?.lastState).toMatchObject({ exitCode: 7, reason: "Error" });
    expect(held.message).toBe(`back-off 10s restarting failed container=app pod=crash-e2e_default(${held.uid})`);
    await daemon.event(
      "crash",
      "BackOff",
      `Back-off restarting failed container app in pod crash-e2e_default(${held.uid})`,
    );
    await daemon.pod("crash", "held back for longer", ({ message }) => message.startsWith("back-off 20s "));
    const last = await until("one dead container left", async () => {
      const [one, before] = await node.containersOf("crash");
      return before === undefined ? one : undefined;
    });
    expect(last.attempt).toBe(2);
    const starts = await until("three starts", () => {
      const all = daemon.eventsOf("crash", "Started").map(({ at }) => Date.parse(at));
      return all.length < 3 ? undefined : all;
    });
    const [, second = 0, third = 0] = starts;
    expect(third - second).toBeGreaterThanOrEqual(10_000);
  });

  test("leave a changed manifest's pod waiting until the former one has ended", async () => {
    const { daemon } = node;
    const [former] = await daemon.running("version");
    // the former pod keeps running until the test has seen the pod that waits for its end
    const seen = Promise.withResolvers<void>();
    node.meddling = { before: (method) => (method === "StopContainer" ? seen.promise : undefined) };
    node.put("version", podOf("version", { containers: [{ env: [{ name: "VERSION", value: "2" }] }] }));
    const waits = await daemon.pod("version", "waiting", ({ reason }) => reason === "FormerVersionEnding");
    seen.resolve();
    expect(waits).toMatchObject({ state: "pending", phase: "Pending" });
    expect(waits.message).toBe(`waits for the end of its former version, ${former?.uid}`);
    const held = await node.held();
    const formerRuns = held.get(former?.uid ?? "")?.containers.some(({ state }) => state === "running") === true;
    expect(formerRuns && held.has(waits.uid)).toBe(false);
    const latter = await daemon.pod(
      "version",
      "running anew",
      ({ uid, phase }) => uid === waits.uid && phase === "Running",
    );
    expect(latter.containers[0]?.restarts).toBe(0);
    const killing = await daemon.event(former?.uid ?? "", "Killing");
    const started = await daemon.event(latter.uid, "Started");
    expect(Date.parse(started.at) - Date.parse(killing.at)).toBeGreaterThanOrEqual(4_000);
    const left = await until("one version", async () => {
      const [one, other] = await node.containersOf("version");
      return other === undefined ? one : undefined;
    });
    expect(await node.exec(left.id, "echo $VERSION")).toBe("2");
  });

  test("did not affect the pod beside them", async () => {
    const all = await node.containersOf("steady");
    expect(all.map(({ state, attempt, image }) => [state, attempt, image])).toEqual([["running", 0, IMAGE]]);
    expect(node.daemon.eventsOf("steady").map(({ reason }) => reason)).toEqual(["Pulled", "Created", "Started"]);
  });
});
