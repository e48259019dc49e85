import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rotatedLogs } from "../../actuator/pods/logs/rotated.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until, WAITS } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("the logs of containers");
const CONFIGURATION = { containerLogMaxSize: "1Mi", containerLogMaxFiles: 3, containerLogMonitorInterval: "3s" };
/** Prints numbered lines, several MB per second. */
const FLOODS =
  "trap 'exit 0' TERM; i=0; while :; do seq $i $((i + 4999)) | sed 's/^/line /'; i=$((i + 5000)); sleep 0.05; done";

describe.skipIf(why !== undefined)("logs of containers over a real containerd", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({ configuration: CONFIGURATION });
    node.put("flood", podOf("flood", { containers: [{ script: FLOODS }] }));
    node.startDaemon();
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const directory = (): string => {
    const [pod = ""] = readdirSync(join(node.dir, "logs")).filter((name) => name.startsWith("default_flood-"));
    return join(node.dir, "logs", pod, "app");
  };
  /** The names of the rotated logs in use, without files that an interrupted rotation left behind. */
  const rotated = async (): Promise<readonly string[]> =>
    (await rotatedLogs(directory(), "0.log")).inUse.map(({ name }) => name);
  /** The number of kept lines, and the places where a kept line does not follow the line before it. */
  const jumps = async (): Promise<{ readonly lines: number; readonly jumps: readonly string[] }> => {
    // a daemon that was killed may have renamed the log before the runtime began a new one
    const names = [...(await rotated()), "0.log"].filter((name) => existsSync(join(directory(), name)));
    const found: string[] = [];
    let [lines, last, line] = [0, Number.NaN, ""];
    for (const name of names) {
      const bytes = readFileSync(join(directory(), name));
      const text = (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
      // the runtime may end a log in the middle of a line (`P`) and continue the line in the next log
      for (const [, time, tag, part = ""] of text.matchAll(/^(\S+) stdout ([PF]) (.*)$/gm)) {
        line += part;
        if (tag !== "F") continue;
        // the start of the first kept line may have been in a log that has been removed
        if (lines === 0 && !line.startsWith("line ")) {
          line = "";
          continue;
        }
        const number = Number(line.replace(/^line /, ""));
        if (lines > 0 && number !== last + 1) found.push(`${last} -> ${line} at ${time} in ${name} of ${names}`);
        [lines, last, line] = [lines + 1, number, ""];
      }
    }
    return { lines, jumps: found };
  };
  test("are bounded for a container that floods its log, without a missing line in between", async () => {
    await node.daemon.running("flood");
    // the next rotation may already be running, so the last compressed log may be missing
    const names = await until("a second rotation", async () => {
      const found = existsSync(directory()) ? await rotated() : [];
      return found.length === 2 ? found : undefined;
    });
    expect(names).toEqual([
      expect.stringMatching(/^0\.log\.\d{8}-\d{6}\.gz$/),
      expect.stringMatching(/^0\.log\.\d{8}-\d{6}$/),
    ]);
    const metrics = await (await fetch(`${node.statusUrl}/metrics`)).text();
    expect(metrics).toMatch(/^nodewise_container_log_rotations_total [1-9]/m);
    expect(metrics).toMatch(/^nodewise_container_log_rotation_failures_total 0$/m);
    const [app] = await node.containersOf("flood");
    const links = readdirSync(join(node.dir, "links")).filter((name) => name.includes(app?.id ?? "?"));
    // during a rotation, no log has that name
    expect(links.map((name) => readlinkSync(join(node.dir, "links", name)))).toEqual([join(directory(), "0.log")]);
  });

  test("are created again when a log was removed", async () => {
    const log = join(directory(), "0.log");
    // a rotation may have renamed the log for a moment
    await expect.poll(() => rmSync(log), WAITS).toBeUndefined();
    await until("a new log", () => holds((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0));
    // the removed log's lines are missing, so the other logs are removed too
    for (const name of await rotated()) rmSync(join(directory(), name), { force: true });
  });

  test("lose and repeat no line when the daemon is killed again and again", async () => {
    for (let i = 0; i < 2; i++) {
      const before = (await rotated()).at(-1);
      await until("a rotation", async () => holds((await rotated()).at(-1) !== before));
      await node.daemon.kill();
      node.startDaemon();
      await node.daemon.running("flood");
    }
    const last = (await rotated()).at(-1);
    await until("one more", async () => holds((await rotated()).at(-1) !== last));
    await node.daemon.kill();
    const [app] = await node.containersOf("flood");
    await node.kill(app?.id ?? "");
    // the runtime may still be writing the last lines into the renamed log; a lost line would never appear
    await expect.poll(jumps, WAITS).toEqual({ lines: expect.any(Number), jumps: [] });
    expect((await jumps()).lines).toBeGreaterThan(10_000);
    expect((await rotated()).length).toBeLessThanOrEqual(2);
    node.startDaemon();
  });

  test("are removed with the pod", async () => {
    node.remove("flood");
    await node.daemon.gone("flood");
    await until("the end of what it left", async () => holds((await node.leftovers()).length === 0));
  });
});
