import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "../cli/run.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until, WAITS } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("manifests that are wrong");

describe.skipIf(why !== undefined)("faulty manifests", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start();
    for (const name of ["steady", "edited", "grown"]) node.put(name, podOf(name));
    await node.startDaemon().running("steady", "edited", "grown");
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const problem = (text: string | RegExp) =>
    node.daemon.until(`problem ${text}`, ({ problems }) => problems.find((one) => one.match(text) !== null));
  /** The containers that were running from the beginning still run. */
  const expectStillRunning = async (...names: readonly string[]): Promise<void> => {
    for (const name of names) {
      const [one, other] = await node.containersOf(name);
      expect([name, one?.state, one?.attempt, other]).toEqual([name, "running", 0, undefined]);
    }
  };
  const turns = (count: number): Promise<void> => node.daemon.turns(count);

  test("are refused with every unsupported field by name", async () => {
    const secret = { env: [{ name: "KEY", valueFrom: { secretKeyRef: { name: "key", key: "key" } } }] };
    const maps = { envFrom: [{ configMapRef: { name: "m" } }] };
    node.put(
      "asks",
      podOf("asks", { volumes: [{ name: "s", secret: { secretName: "s" } }], containers: [{ ...secret, ...maps }] }),
    );
    const refused = await node.daemon.until("the refusal", ({ refusedManifests }) => refusedManifests[0]);
    expect(refused.pod).toBe("default/asks-e2e");
    const paths = refused.faults.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^spec\.volumes\[0\]/),
        expect.stringMatching(/^spec\.containers\[0\]\.env\[0\]\.valueFrom/),
        expect.stringMatching(/^spec\.containers\[0\]\.envFrom/),
      ]),
    );
    const shown = await run(["pods", "--status-url", node.statusUrl]);
    expect(shown.stdout).toContain("default/asks-e2e");
    expect(shown.stdout).toMatch(/asks\.yaml:\d+:\d+: spec\.containers\[0\]\.envFrom: config maps and secrets need/);
    const logged = () => node.daemon.lines.filter((line) => line.includes("default/asks-e2e is not run"));
    await until("its line in the log", () => holds(logged().length > 0));
    await turns(2);
    expect(logged()).toEqual([expect.stringMatching(/asks\.yaml:\d+:\d+: default\/asks-e2e is not run: spec\./)]);
    // a running pod is not ended when its new manifest cannot be run
    node.put("grown", podOf("grown", { containers: [maps] }));
    await node.daemon.until("both refusals", ({ refusedManifests }) =>
      refusedManifests.length === 2 ? true : undefined,
    );
    await turns(2);
    await expectStillRunning("steady", "edited", "grown");
  });

  test("keep the last valid version in force while broken, and the place is reported", async () => {
    node.put("edited", "apiVersion: v1\nkind: Pod\nmetadata: {name: edited\n");
    expect(await problem(/edited\.yaml/)).toMatch(/edited\.yaml.*(?:line|:)\s*\d/);
    // the file of a writer that does not replace it atomically is empty for a moment
    node.put("edited", "");
    expect(await problem(/edited\.yaml: holds no/)).toContain("holds no object: expected JSON or YAML");
    node.put("other", "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: other}\nspec: {}\n");
    expect(await problem(/other\.yaml/)).toContain("expected apiVersion `v1` and kind `Pod`");
    await turns(2);
    await expectStillRunning("steady", "edited", "grown");
    // nor does a daemon end the pod if it has never read the complete file
    await node.daemon.kill();
    node.startDaemon();
    expect(await problem(/edited\.yaml: holds no/)).toContain("to end its pods remove the file");
    await turns(2);
    await expectStillRunning("steady", "edited", "grown");
  });

  test("with the name of another pod leave the one in force running, and both files are reported", async () => {
    node.remove("other");
    node.put("twin-1", podOf("twin", { containers: [{ env: [{ name: "N", value: "1" }] }] }));
    await node.daemon.running("twin");
    node.put("twin-2", podOf("twin", { containers: [{ env: [{ name: "N", value: "2" }] }] }));
    expect(await problem(/twin-2\.yaml/)).toMatch(/twin-e2e is also in .*twin-1\.yaml, which counts: rename one/);
    // a manifest whose name comes earlier does not take precedence either
    node.put("twin-0", podOf("twin", { containers: [{ env: [{ name: "N", value: "0" }] }] }));
    expect(await problem(/twin-0\.yaml/)).toMatch(/twin-e2e is also in .*twin-1\.yaml, which counts: rename one/);
    await turns(2);
    await expectStillRunning("twin");
    const runs = async (text: string) => {
      const [one] = await node.containersOf("twin");
      return one?.state === "running" && (await node.exec(one.id, "echo $N")) === text;
    };
    node.remove("twin-2");
    await turns(2);
    expect(await runs("1")).toBe(true);
    node.remove("twin-1");
    await expect.poll(() => runs("0"), WAITS).toBe(true);
    node.remove("twin-0");
    await node.daemon.gone("twin");
  });

  test("that were never read do not hold back pods of other files", async () => {
    node.put("leaves", podOf("leaves"));
    node.put("renewed", podOf("renewed"));
    await node.daemon.running("leaves", "renewed");
    node.put("half", "kind: [");
    await problem(/half\.yaml/);
    node.remove("leaves");
    node.put("renewed", podOf("renewed", { containers: [{ env: [{ name: "N", value: "2" }] }] }));
    await node.daemon.gone("leaves");
    const isRenewed = async () => {
      const [one] = await node.containersOf("renewed");
      return one?.state === "running" && (await node.exec(one.id, "echo $N")) === "2";
    };
    await expect.poll(isRenewed, WAITS).toBe(true);
    node.remove("half", "renewed");
    await node.daemon.gone("renewed");
  });

  test("do not end their pods when their directory disappears", async () => {
    renameSync(node.manifests, `${node.manifests}-away`);
    await problem(/manifests.*no such|manifests.*not there|manifests.*exist/i);
    await turns(2);
    await expectStillRunning("steady", "edited", "grown");
    // first a file takes the directory's place, then the right directory
    writeFileSync(node.manifests, "");
    await turns(2);
    rmSync(node.manifests);
    renameSync(`${node.manifests}-away`, node.manifests);
    await turns(2);
    await expectStillRunning("steady", "grown");
    mkdirSync(join(node.manifests, "inner"));
    await problem(/inner.*is a directory/);
    node.put("late", podOf("late"));
    await node.daemon.running("late", "steady");
  });
});
