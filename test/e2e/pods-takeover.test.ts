import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { SandboxConfig } from "../../actuator/containerd/messages.ts";
import { ended, run, start } from "../cli/run.ts";
import { expectAsShown } from "../docs/shown.ts";
import { must } from "./containerd/pods.ts";
import { IMAGE, NODE_NAME, podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("a take-over");
/**
 * Locks its directory as a database does; a second instance that finds the lock creates /data/twice. After SIGTERM it
 * exits only when /data/may-end exists.
 */
const DATABASE = `mkdir /data/lock || touch /data/twice
trap 'touch /data/ending; while [ ! -e /data/may-end ]; do sleep 0.1; done; rmdir /data/lock; exit 0' TERM
while :; do sleep 1000 & wait $!; done`;

const uidOf = (name: string): string => createHash("md5").update(name).digest("hex");

describe.skipIf(why !== undefined)("pods taken over from a kubelet", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let data: string;
  /** The sandboxes that a kubelet left: one of a pod in the daemon's manifests, and one of another pod. */
  const left = { db: "", other: "" };
  beforeAll(async () => {
    node = await PodNode.start({ hasNetwork: true });
    data = join(node.dir, "data");
    mkdirSync(data);
    for (const name of ["db", "other"] as const) left[name] = await kubeletsPod(`${name}-e2e`, name === "db");
    await until("its database", () => existsSync(join(data, "lock")) || undefined);
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  /**
   * Runs a pod as a kubelet runs a static pod: on the host network, with the kubelet's labels and annotations, and with
   * a uid that the daemon does not use.
   */
  async function kubeletsPod(name: string, isDatabase: boolean): Promise<string> {
    const { connection } = node.containerd;
    const uid = uidOf(name);
    const labels = {
      "io.kubernetes.pod.name": name,
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.pod.uid": uid,
    };
    const linux = { securityContext: { namespaceOptions: { network: "NODE" as const } } };
    const sandboxConfig: SandboxConfig = {
      metadata: { name, uid, namespace: "default", attempt: 0 },
      labels,
      annotations: { "kubernetes.io/config.source": "file" },
      linux: { ...linux, cgroupParent: node.cgroupRoot },
    };
    const { podSandboxId } = await must(connection.call("RunPodSandbox", { config: sandboxConfig }));
    const config = {
      metadata: { name: "app", attempt: 0 },
      image: { image: IMAGE },
      command: ["sh", "-c", isDatabase ? DATABASE : "sleep 100000"],
      mounts: [{ containerPath: "/data", hostPath: data }],
      labels: { ...labels, "io.kubernetes.container.name": "app" },
      linux,
    };
    const { containerId } = await must(connection.call("CreateContainer", { podSandboxId, config, sandboxConfig }));
    await must(connection.call("StartContainer", { containerId }));
    return podSandboxId;
  }
  const command = (...args: readonly string[]): readonly string[] => [
    "takeover",
    "--settings",
    node.settingsFile(),
    ...args,
  ];
  const asGuide = (text: string, printed: string): void =>
    expectAsShown("docs/guide/takeover.md", text, printed.replaceAll(NODE_NAME, "n1"));
  const running = async (name: string) =>
    (await node.containersOf(name)).filter(({ state }) => state === "running").map(({ sandboxId }) => sandboxId);

  test("are held, listed, stopped only on request, also after a crash, and never run twice", async () => {
    const volumes = [{ name: "data", hostPath: { path: data } }];
    const volumeMounts = [{ name: "data", mountPath: "/data" }];
    const spec = { terminationGracePeriodSeconds: 20, volumes, containers: [{ script: DATABASE, volumeMounts }] };
    node.put("db", podOf("db", spec));
    let most = 0;
    const watched = new AbortController();
    onTestFinished(() => watched.abort());
    const watch = (async () => {
      while (!watched.signal.aborted) {
        most = Math.max(most, (await running("db")).length);
        await sleep(20);
      }
    })();
    watch.catch(() => undefined);

    const daemon = node.startDaemon();
    const held = await daemon.pod("db", "held", ({ reason }) => reason === "ForeignSandbox");
    expect(held).toMatchObject({
      state: "pending",
      message: expect.stringContaining(`sandbox ${left.db.slice(0, 13)} (uid ${uidOf("db-e2e")}`),
    });
    await daemon.event("db", "ForeignSandbox", /nodewise takeover/);
    // the daemon reports it at the end of a turn
    await daemon.until("its line", ({ problems }) => problems.find((one) => one.includes("run pods of these names")));
    const shown = await run(["pods", "--status-url", node.statusUrl]);
    expect(shown.stdout).toContain("run pods of these names: default/db-e2e: see `nodewise takeover`");
    expect(shown.stdout).toContain(`ForeignSandbox: its name runs in sandbox ${left.db.slice(0, 13)}`);
    asGuide("nodewise pods", shown.stdout);

    const plan = await run(command("-o", "json"));
    expect(plan).toMatchObject({ code: 1, stderr: "" });
    expect(JSON.parse(plan.stdout)).toMatchObject({
      dryRun: true,
      stops: [
        {
          pod: "default/db-e2e",
          sandbox: { id: left.db, running: 1 },
          graceSeconds: 20,
          containers: [{ name: "app" }],
        },
      ],
      stays: [{ pod: "default/other-e2e", sandbox: { id: left.other }, why: "no manifest names it" }],
    });
    expect(await running("db")).toEqual([left.db]);
    asGuide("nodewise takeover --settings /etc/nodewise/actuator.yaml", (await run(command())).stdout);

    // the command is killed while the database exits: the sandbox remains, so the daemon's pod still waits
    const crashed = start(command("--stop"));
    await until("the signal", () => existsSync(join(data, "ending")) || undefined);
    crashed.kill("SIGKILL");
    await ended(crashed);
    writeFileSync(join(data, "may-end"), "");
    await until("the database's end", async () => (await running("db")).length === 0 || undefined);
    expect((await run(command())).stdout).toContain("none runs");
    await daemon.pod("db", "held", ({ message }) => message.includes("0 containers running"));

    const stopped = await run(command("--stop"));
    expect(stopped).toMatchObject({ code: 0, stderr: "" });
    expect(stopped.stdout).toContain("\nwill be stopped, in this order\n");
    asGuide("nodewise takeover --settings /etc/nodewise/actuator.yaml --stop", stopped.stdout);
    expect(stopped.stdout).toContain(`stopped  default/db-e2e (sandbox ${left.db.slice(0, 13)})`);
    await daemon.running("db");
    expect(await running("other")).toEqual([left.other]);
    expect(await run(command())).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing to stop") });
    watched.abort();
    await watch;
    expect([most, existsSync(join(data, "twice"))]).toEqual([1, false]);

    // the way back: the daemon's pod ends before the pod runs elsewhere
    await daemon.stop();
    const last = node.startDaemon({ drain: true });
    await last.running("db");
    expect(await last.stop()).toMatchObject({ code: 0 });
    expect([await running("db"), existsSync(join(data, "lock")), existsSync(join(data, "twice"))]).toEqual([
      [],
      false,
      false,
    ]);
  });
});
