import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { podOf, SERVES, type TestContainer } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { freePort } from "./pods/port.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("containers that are probed");
const exec = (command: string, more: object = {}) => ({ exec: { command: ["sh", "-c", command] }, ...more });
/** Probes every second, with a timeout long enough for a loaded machine. */
const QUICK = { periodSeconds: 1, timeoutSeconds: 30 };
const probed = (name: string, container: TestContainer, spec: object = {}): object =>
  podOf(name, { ...spec, containers: [container] });

describe.skipIf(why !== undefined)("containers with probes", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start();
    // a pod that has been running for some time when the daemon is restarted
    const readinessProbe = exec("cat /ok", { ...QUICK, periodSeconds: 30, failureThreshold: 1 });
    node.put("steady", probed("steady", { script: `touch /ok; ${SERVES}`, readinessProbe }));
    node.startDaemon();
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);
  const readyOf = (name: string, ready: boolean) =>
    node.daemon.pod(name, ready ? "ready" : "not ready", ({ state, containers }) =>
      containers.every((one) => state === "active" && one.state === "running" && one.ready === ready),
    );

  test("are ready exactly while their readiness probe succeeds", async () => {
    const readinessProbe = exec("cat /ok", { ...QUICK, failureThreshold: 1 });
    node.put("flips", probed("flips", { script: SERVES, readinessProbe }));
    const row = await readyOf("flips", false);
    expect(row.containers).toMatchObject([{ started: true, ready: false }]);
    const [container] = await node.containersOf("flips");
    const id = container?.id ?? "";
    await node.daemon.event(
      "flips",
      "Unhealthy",
      "Readiness probe failed: cat: can't open '/ok': No such file or directory\n",
    );
    await node.exec(id, "touch /ok");
    await readyOf("flips", true);
    await node.exec(id, "rm /ok");
    await readyOf("flips", false);
    expect((await node.containersOf("flips")).map(({ attempt }) => attempt)).toEqual([0]);
    node.remove("flips");
    await node.daemon.gone("flips");
  });

  test("are restarted when their liveness probe fails, with the probe's grace period", async () => {
    const livenessProbe = exec("false", {
      ...QUICK,
      failureThreshold: 2,
      initialDelaySeconds: 2,
      terminationGracePeriodSeconds: 1,
    });
    // at the end of the test, the container reacts to the signal
    const yields = join(node.dir, "yields");
    mkdirSync(yields);
    const volumeMounts = [{ name: "yields", mountPath: "/yields" }];
    const spec = {
      terminationGracePeriodSeconds: 60,
      restartPolicy: "OnFailure",
      volumes: [{ name: "yields", hostPath: { path: yields } }],
    };
    const script = "trap '[ ! -e /yields/now ] || exit 0' TERM; while :; do sleep 0.2; done";
    node.put("dies", probed("dies", { script, livenessProbe, volumeMounts }, spec));
    const killing = await node.daemon.event(
      "dies",
      "Killing",
      "Container app failed liveness probe, will be restarted",
    );
    await until("another instance", async () => {
      const [newest] = await node.containersOf("dies");
      return newest !== undefined && newest.attempt > 0 && newest.state === "running" ? true : undefined;
    });
    const started = await until("its event", () => node.daemon.eventsOf("dies", "Started")[1]);
    // without the probe's own grace period, it would take at least a minute
    expect(Date.parse(started.at) - Date.parse(killing.at)).toBeLessThan(60_000);
    expect(node.daemon.eventsOf("dies", "Unhealthy")[0]?.msg).toBe("Liveness probe failed: ");
    writeFileSync(join(yields, "now"), "");
    node.remove("dies");
    await node.daemon.gone("dies");
  });

  test("with restartPolicy Never are killed all the same when liveness fails", async () => {
    const livenessProbe = exec("false", { ...QUICK, failureThreshold: 1 });
    node.put("once", probed("once", { script: SERVES, livenessProbe }, { restartPolicy: "Never" }));
    // no container of the pod may run any more, so all of them are stopped
    await node.daemon.event("once", "Killing", "Stopping container app");
    await node.daemon.pod("once", "over", ({ state }) => state === "terminated");
    node.remove("once");
    await node.daemon.gone("once");
  });

  test("run their startup probe before all others", async () => {
    const container = {
      script: SERVES,
      startupProbe: exec("cat /up", { ...QUICK, failureThreshold: 100 }),
      livenessProbe: exec("cat /up", { ...QUICK, failureThreshold: 1 }),
      readinessProbe: exec("true", QUICK),
    };
    node.put("slow", probed("slow", container));
    await node.daemon.event("slow", "Unhealthy", /^Startup probe failed: cat: /);
    const [first] = await node.containersOf("slow");
    const row = await readyOf("slow", false);
    expect(row.containers).toMatchObject([{ started: false, ready: false, restarts: 0 }]);
    await node.exec(first?.id ?? "", "touch /up");
    const up = await readyOf("slow", true);
    expect(up.containers).toMatchObject([{ started: true, restarts: 0 }]);
    expect(node.daemon.eventsOf("slow", "Unhealthy").every(({ msg }) => msg.startsWith("Startup"))).toBe(true);
    node.remove("slow");
    await node.daemon.gone("slow");
  });

  test("of a sidecar hold the pod's own containers back until it has started", async () => {
    const startupProbe = exec("cat /up", { ...QUICK, failureThreshold: 100 });
    const sidecar = { name: "side", script: SERVES, restartPolicy: "Always", startupProbe };
    node.put("beside", podOf("beside", { initContainers: [sidecar], containers: [{ script: SERVES }] }));
    await node.daemon.event("beside", "Unhealthy", /^Startup probe failed: /);
    expect(await node.containersOf("beside")).toEqual([]);
    const [side] = await node.containersOf("beside", "side");
    await node.exec(side?.id ?? "", "touch /up");
    await node.daemon.running("beside");
    node.remove("beside");
    await node.daemon.gone("beside");
  });

  test("stay ready over a restart of the daemon", async () => {
    await readyOf("steady", true);
    const [steady] = await node.containersOf("steady");
    // kubelet 1.36: a container that has run for ten seconds keeps its readiness
    await sleep(Math.max(0, (steady?.startedAtMs ?? Date.now()) + 11_000 - Date.now()));
    await node.daemon.stop();
    const daemon = node.startDaemon();
    const seen: boolean[] = [];
    await daemon.until("a look at it", ({ pods }) => {
      const app = pods.find(({ name }) => name.startsWith("steady"))?.containers[0];
      if (app?.state === "running") seen.push(app.ready);
      return seen.length >= 10 ? true : undefined;
    });
    expect(new Set(seen)).toEqual(new Set([true]));
    node.remove("steady");
    await daemon.gone("steady");
  });

  test("can be probed over HTTP and TCP on the node's network", async () => {
    const port = await freePort();
    const script = `mkdir -p /www; echo up > /www/up; httpd -f -p 127.0.0.1:${port} -h /www & trap 'exit 0' TERM; while :; do sleep 1; done`;
    const httpGet = { host: "127.0.0.1", port, path: "/up" };
    const container = {
      script,
      ports: [{ name: "web", containerPort: port }],
      readinessProbe: { httpGet, ...QUICK },
      livenessProbe: { tcpSocket: { host: "127.0.0.1", port: "web" }, ...QUICK, failureThreshold: 30 },
    };
    node.put("web", probed("web", container));
    await readyOf("web", true);
    const [web] = await node.containersOf("web");
    await node.exec(web?.id ?? "", "rm /www/up");
    await node.daemon.event("web", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404");
    await readyOf("web", false);
    const rows = await node.daemon.until("the probes' rows", ({ probes = [] }) => {
      const its = probes.filter(({ pod }) => pod.startsWith("web"));
      return its.length === 2 ? its : undefined;
    });
    expect(rows.map(({ type, handler }) => [type, handler]).toSorted()).toEqual([
      ["liveness", "tcp"],
      ["readiness", "http"],
    ]);
    node.remove("web");
    await node.daemon.gone("web");
  });
});
