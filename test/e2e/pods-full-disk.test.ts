import { readdirSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PodRecord } from "../../actuator/lifecycle/record.ts";
import { type SmallFileSystem, smallFileSystem } from "./containerd/small-file-system.ts";
import { podOf, SERVES } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until, WAITS } from "./pods/until.ts";

const LONG_MS = 300_000;
const Mi = 2 ** 20;
const why = noPods("the kernel's full disks");
const writes = (name: string, mebibytes: number): object =>
  podOf(name, {
    containers: [
      {
        script: `dd if=/dev/zero of=/data/file bs=1M count=${mebibytes} 2>/dev/null; ${SERVES}`,
        volumeMounts: [{ name: "data", mountPath: "/data" }],
      },
    ],
    volumes: [{ name: "data", emptyDir: {} }],
  });

describe.skipIf(why !== undefined)("on a disk that also holds the daemon's records", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let disk: SmallFileSystem;
  const settings = (evictionPeriodSeconds: number) => ({
    manifestPods: "ordinary",
    // the time until an evicted pod of a manifest may start again
    retrySeconds: 600,
    stateDir: join(disk.path, "state"),
    podsDirectory: join(disk.path, "pods"),
    evictionPeriodSeconds,
  });
  beforeAll(async () => {
    disk = smallFileSystem(64 * Mi);
    node = await PodNode.start({
      configuration: { evictionHard: { "nodefs.available": "10%" }, evictionPressureTransitionPeriod: "1s" },
    });
  }, LONG_MS);
  afterAll(async () => {
    await node?.stop();
    disk?.release();
  }, LONG_MS);

  const availableBytes = (): number => {
    const { bavail, bsize } = statfsSync(disk.path);
    return bavail * bsize;
  };
  /** The states in the records on disk, by pod name; throws if a record is not complete. */
  const states = (): Readonly<Record<string, string>> => {
    const directory = join(disk.path, "state/pods");
    const files = readdirSync(directory).filter((file) => file.endsWith(".pod.json"));
    const records = files.map((file) => {
      const { record } = JSON.parse(readFileSync(join(directory, file), "utf8")) as { readonly record: PodRecord };
      const { name } = record.pod["metadata"] as { readonly name: string };
      return [name.replace(/-e2e$/, ""), `${record.state} ${record.end?.cause ?? ""}`.trim()];
    });
    return Object.fromEntries(records) as Record<string, string>;
  };
  /**
   * Waits until the pod has filled the disk. The disk may be full for a shorter time than the daemon needs to answer,
   * because the pod is evicted.
   */
  const filledBy = async (name: string) => {
    let least = Number.POSITIVE_INFINITY;
    const looking = setInterval(() => {
      least = Math.min(least, availableBytes());
    }, 5);
    node.put(name, writes(name, 100));
    await until("a full disk", () => holds(least < Mi)).finally(() => clearInterval(looking));
  };

  test("a pod that fills it is evicted, the disk is free again, and the records are intact", async () => {
    node.put("small", writes("small", 1));
    const daemon = node.startDaemon(settings(1));
    await daemon.running("small");
    await filledBy("filler");
    await daemon.event("filler", "Evicted", /^The node was low on resource: ephemeral-storage\. /);
    await daemon.pod("filler", "ended", ({ state, reason }) => state === "terminated" && reason === "Evicted");
    await daemon.until("room", () => (availableBytes() > 40 * Mi ? true : undefined));
    await daemon.until("an end of the problems", ({ problems }) =>
      problems.some((one) => one.includes("ENOSPC")) ? undefined : true,
    );
    // a record that could not be written before is written at the end of a sync
    await expect.poll(states, WAITS).toEqual({ small: "lives", filler: "ended evicted" });
    expect(daemon.eventsOf("small", "Evicted")).toEqual([]);
    await daemon.kill();
    const again = node.startDaemon(settings(1));
    await again.running("small");
    await again.pod("filler", "ended", ({ state, reason }) => state === "terminated" && reason === "Evicted");
    expect(again.eventsOf("filler", "Evicted")).toEqual([]);
    node.remove("filler");
    await again.gone("filler");
    await again.kill();
  });

  test("a pod that fills it is evicted by a daemon started later, although it cannot write a record", async () => {
    // this daemon does not check for pressure
    const before = node.startDaemon(settings(3600));
    await before.running("small");
    await filledBy("found");
    await before.kill();
    const daemon = node.startDaemon(settings(1));
    await daemon.pod("found", "ended", ({ state, reason }) => state === "terminated" && reason === "Evicted");
    await daemon.until("room", () => (availableBytes() > 40 * Mi ? true : undefined));
    await daemon.until("an end of the problems", ({ problems }) =>
      problems.some((one) => one.includes("ENOSPC")) ? undefined : true,
    );
    const pattern = /the record of pod [^ ]+ cannot be written yet \(ENOSPC\)/;
    await expect.poll(() => daemon.lines.join("\n"), WAITS).toMatch(pattern);
    await expect.poll(states, WAITS).toEqual({ small: "lives", found: "ended evicted" });
    await daemon.event("found", "Evicted");
    expect(daemon.eventsOf("found", "Evicted")).toHaveLength(1);
    node.remove("found");
    await daemon.gone("found");
    await daemon.kill();
  });

  test("a full disk makes the daemon not ready until there is room", async () => {
    const daemon = node.startDaemon(settings(3600));
    await daemon.running("small");
    await filledBy("held");
    const readiness = async (): Promise<unknown> => (await fetch(`${node.statusUrl}/readyz`)).json();
    await expect.poll(readiness, WAITS).toMatchObject({
      ready: false,
      reasons: expect.arrayContaining([expect.stringMatching(/^its own files cannot be written: .*: ENOSPC/)]),
    });
    node.remove("held");
    await expect.poll(readiness, WAITS).toEqual({ ready: true, reasons: [] });
    await daemon.gone("held");
    await daemon.kill();
  });

  test("a pod that fills it can be deleted, also by a daemon started later", async () => {
    const before = node.startDaemon(settings(3600));
    await before.running("small");
    await filledBy("deleted");
    await before.kill();
    node.remove("deleted");
    const daemon = node.startDaemon(settings(3600));
    await daemon.gone("deleted");
    await expect.poll(availableBytes, WAITS).toBeGreaterThan(40 * Mi);
    await expect.poll(states, WAITS).toEqual({ small: "lives" });
    await daemon.running("small");
  });
});
