import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEFAULT_MOUNT_ROOT } from "../../actuator/cgroupfs/open.ts";
import { removeCgroups } from "./containerd/leftovers.ts";
import { podOf, SERVES } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { freePort } from "./pods/port.ts";
import { noPods } from "./pods/skip.ts";
import { until, WAITS } from "./pods/until.ts";

const LONG_MS = 300_000;
const UID = "0f1e2d3c-1111-4222-8333-444444444444";
const why = noPods("what is not a daemon's own");

describe.skipIf(why !== undefined)("foreign pods and directories", { timeout: LONG_MS }, () => {
  let node: PodNode;
  const left: ChildProcess[] = [];
  beforeAll(async () => {
    node = await PodNode.start({ settings: { intervalSeconds: 1 } });
  }, LONG_MS);
  afterAll(async () => {
    for (const child of left) child.kill("SIGKILL");
    await node?.stop();
    if (node !== undefined) removeCgroups(`${node.cgroupRoot.slice(1)}-b`);
  }, LONG_MS);

  test("are left alone by a second daemon, and by the first in its own directory", async () => {
    mkdirSync(join(node.dir, "pods/photos/2020"), { recursive: true });
    mkdirSync(join(node.dir, "pods/db/volumes/table"), { recursive: true });
    node.put(
      "web",
      podOf("web", {
        volumes: [{ name: "data", emptyDir: {} }],
        containers: [
          { script: `echo kept > /data/file; ${SERVES}`, volumeMounts: [{ name: "data", mountPath: "/data" }] },
        ],
      }),
    );
    const first = node.startDaemon();
    const [web] = await first.running("web");
    const data = join(node.dir, `pods/${web?.uid}/volumes/kubernetes.io~empty-dir/data/file`);
    await until("its data", () => existsSync(data) || undefined);
    await first.until("what is foreign", ({ problems }) =>
      problems.find((one) => JSON.stringify(one).includes("pods/photos in podsDirectory: not made by this daemon")),
    );

    mkdirSync(join(node.dir, "none"));
    const own = (name: string): string => join(node.dir, "b", name);
    const places = {
      cgroupRoot: `${node.cgroupRoot}-b`,
      manifests: join(node.dir, "none"),
      stateDir: own("state"),
      podLogsDirectory: own("logs"),
      containerLogsDirectory: own("links"),
      statusListen: `127.0.0.1:${await freePort()}`,
    };
    const refused = node.startDaemon(places);
    const ended = await until("the refusal", () =>
      refused.lines.find((line) => line.includes("another daemon, keeps it")),
    ).catch(() => refused.stop().then(({ stderr }) => stderr));
    expect(ended).toContain(`podsDirectory ${join(node.dir, "pods")}: process ${first.pid}`);
    expect(ended).toContain("give each daemon its own");
    await refused.stop();

    // with its own directory the second daemon runs, and does not touch the first daemon's files
    const second = node.startDaemon({ ...places, podsDirectory: own("pods") });
    await until("its passes", () => (existsSync(own("state/status.json")) ? true : undefined));
    expect(existsSync(data)).toBe(true);
    const [still] = await first.running("web");
    expect(still?.containers).toEqual(web?.containers);
    await second.stop();

    node.remove("web");
    await first.gone("web");
    expect(readdirSync(join(node.dir, "pods")).sort()).toEqual(["db", "photos"]);
    expect(existsSync(join(node.dir, "pods/db/volumes/table"))).toBe(true);
    await first.stop();
  });

  test("do not include processes a dead runtime left in the daemon's cgroups, which are killed", async () => {
    node.startDaemon();
    await until("its cgroups", () => (node.hierarchy.processes("/") === 0 && tiers().length > 0 ? true : undefined));
    const cgroup = `/kubepods/besteffort/pod${UID}`;
    const child = spawn("sleep", ["1000"], { stdio: "ignore" });
    left.push(child);
    const ended = new Promise((resolve) => child.on("exit", (_, signal) => resolve(signal)));
    const mounts = (node.hierarchy.version === 2 ? [""] : ["memory", "cpu", "pids"])
      .map((mount) => join(DEFAULT_MOUNT_ROOT, mount, node.cgroupRoot))
      .filter(existsSync);
    const joins = async (): Promise<boolean> => {
      const made = await node.hierarchy.create(cgroup, node.hierarchy.support().controllers);
      expect(made).toMatchObject({ ok: true });
      for (const mount of mounts) writeFileSync(join(mount, cgroup, "cgroup.procs"), String(child.pid));
      return true;
    };
    // the daemon may remove a cgroup that is still empty
    await expect.poll(joins, WAITS).toBe(true);
    await node.daemon.until("the problem", ({ problems }) =>
      problems.find((one) => JSON.stringify(one).includes(`pod${UID} holds processes ${child.pid} (sleep)`)),
    );
    expect(await ended).toBe("SIGKILL");
    await until("its cgroup's end", () => (node.hierarchy.paths().includes(cgroup) ? undefined : true));
    const message = `killed process ${child.pid} (sleep) in cgroup ${node.cgroupRoot}`;
    await expect.poll(() => node.daemon.lines.join("\n"), WAITS).toContain(message);
  });
  const tiers = (): readonly string[] => node.hierarchy.paths().filter((path) => path === "/kubepods/besteffort");
});
