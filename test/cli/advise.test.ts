import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { EXIT } from "../../api/cli/terminal.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { decisionRow, snapshotRow, value } from "../contract/store-rows.ts";
import { sharedApi } from "../kit/api.ts";
import { realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { CONTAINERS, HOUR, measuredSnapshot, summary, WHOLE } from "../kit/summary.ts";
import { run } from "./run.ts";

/** Four measurements a day for a month. */
const COUNT = 120;
const scratch = scratchFolder();
const dataDir = join(scratch, "history");
const api = sharedApi({ dataDir, retention: { maxRowsPerNode: 1e6, maxAgeMs: 1e15 } });
const file = (name: string, content: string | object): string => {
  writeFileSync(join(scratch, name), typeof content === "string" ? content : JSON.stringify(content));
  return join(scratch, name);
};

beforeAll(async () => {
  const store = value(openNode({ file: historyFile(dataDir) }));
  const first = Date.now() - COUNT * 6 * HOUR;
  for (let i = 0; i < COUNT; i++) {
    const at = first + i * 6 * HOUR;
    const snapshot = snapshotRow({
      node: "n1",
      storedAtMs: at,
      body: JSON.stringify(measuredSnapshot(i * 6, 101 + i)),
    });
    value(
      await store.record({ decision: decisionRow({ node: "n1", snapshotId: snapshot.id, decidedAtMs: at }), snapshot }),
    );
  }
  await store.close();
});

const advise = (...args: readonly string[]) => run(["advise", "reserves", ...args]);

describe("nodewise advise reserves, from a history", () => {
  const own = () => ["--data-dir", dataDir, "--node", "n1"];

  test("shows what was measured since --since, what to reserve, and how allocatable changes", async () => {
    const ran = await advise(...own(), "--since", "40d", "--margin", "0");
    expect(ran).toMatchObject({ code: EXIT.ok, stderr: "" });
    const lines = ran.stdout.split("\n");
    expect(lines[0]).toMatch(/^n1 · reserves · kubelet-1\.\d+\+\d+$/);
    expect(lines[1]).toBe(
      "99th percentile and 0 % of 120 measurements, 2026-11-14T00:00:00Z to 2026-12-13T18:00:00Z (29d18h)",
    );
    expect(ran.stdout).toMatch(/^RESERVATION +RESOURCE +MEASURED +MEDIAN +P99 +PEAK +NOW +RECOMMENDED$/m);
    // the 119th value of 101, 102, ..., plus the 150 of the runtime
    expect(ran.stdout).toMatch(/^kubeReserved +memory +120 +310 MiB +369 MiB +370 MiB +– +369Mi$/m);
    expect(ran.stdout).toMatch(/^cpu +4 +\S+ +-\d+m$/m);
    expect(ran.stdout).toContain("NOTES\n- systemReserved.ephemeral-storage and systemReserved.pid are not measured");
  });

  test("uses the last days only without --since, and a sample with --limit", async () => {
    const week = JSON.parse((await advise(...own(), "-o", "json")).stdout);
    expect(week.measurements.count).toBe(27);
    const few = JSON.parse((await advise(...own(), "--limit", "5", "-o", "json")).stdout);
    expect(few.measurements.count).toBeLessThanOrEqual(5);
    expect(few.notes.map(({ code }: { code: string }) => code)).toContain("sampled");
  });

  test("gets the same from a running API", async () => {
    const args = [
      "--node",
      "n1",
      "--since",
      "2000-01-01",
      "--until",
      "2999-01-01",
      "--percentile",
      "95.5",
      "--margin",
      "25",
      "-o",
      "json",
    ];
    const here = await advise("--data-dir", dataDir, ...args);
    const there = await advise("--api", api.url, ...args);
    expect(there).toMatchObject({ code: EXIT.ok, stderr: "" });
    expect(JSON.parse(there.stdout)).toEqual(JSON.parse(here.stdout));
    const unknown = await advise("--api", api.url, "--node", "n2");
    expect(unknown).toMatchObject({ code: EXIT.badInput, stdout: "", stderr: expect.stringContaining("unknown_node") });
  });

  test("prints with -o patch what --patch accepts", async () => {
    const patch = file("patch.yaml", (await advise(...own(), "-o", "patch")).stdout);
    const snapshot = file("snapshot.json", measuredSnapshot(0, 1));
    const ran = await run(["decide", "allocatable", "--snapshot", snapshot, "--patch", patch, "-o", "json"]);
    expect(ran.stderr).toBe("");
    const advice = JSON.parse((await advise(...own(), "-o", "json")).stdout);
    const { change, after } = JSON.parse(ran.stdout);
    expect(change).toEqual(advice.patch);
    for (const { resource, to } of advice.allocatable) expect(after.decision.allocatable[resource]).toBe(to);
  });

  test.each([
    [["--node", "n2"], "--node n2: the history has no such node: did you mean n1?", EXIT.badInput],
    [
      ["--node", "n1", "--percentile", "101"],
      "--percentile: must be a number above 0 and at most 100, such as 99",
      EXIT.badInput,
    ],
    [["--node", "n1", "--margin", "-1"], "--margin: must be a whole number from 0 to 1000", EXIT.badInput],
    [["--node", "n1", "--since", "1d", "--until", "2d"], "--since 1d: is later than --until 2d", EXIT.badInput],
    [
      ["--node", "n1", "--since", "2000-01-01", "--until", "2001-01-01"],
      "nothing was measured: no snapshot has stats of its node",
      EXIT.cannotRun,
    ],
    [[], "give --node NAME of the history, or files with answers of the kubelet's /stats/summary", EXIT.badInput],
  ])("refuses %j", async (args, message, code) => {
    const ran = await advise("--data-dir", dataDir, ...args);
    expect(ran.code).toBe(code);
    expect(ran.stderr).toBe(`nodewise: ${message}\n`);
  });
});

describe.concurrent("nodewise advise reserves, from files", () => {
  test("recognises summaries, snapshots, the node and its configuration by their content", async () => {
    const node = file("node.json", {
      kind: "Node",
      metadata: { name: "n1" },
      status: { capacity: { cpu: "4", memory: "8Gi" } },
    });
    const config = file(
      "kubelet.yaml",
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nkubeReserved: {memory: 1Gi}\nmaxPod: 5\n",
    );
    const files = [0, 1, 2].map((hour) => file(`summary-${hour}.json`, summary(hour, WHOLE, CONTAINERS)));
    const ran = await advise(
      node,
      config,
      ...files,
      file("old.json", measuredSnapshot(-5, 100)),
      "--margin",
      "0",
      "-o",
      "json",
    );
    expect(ran.code).toBe(EXIT.ok);
    expect(ran.stderr).toMatch(/^nodewise: .*kubelet\.yaml:4:9: .*unknown field "maxPod" \(maxPods\?\).*\n$/);
    const { measurements, reserves, allocatable } = JSON.parse(ran.stdout);
    expect(measurements).toEqual({ count: 4, from: "2026-11-13T19:00:00.000Z", to: "2026-11-14T02:00:00.000Z" });
    expect(reserves[1]).toMatchObject({ field: "kubeReserved", resource: "memory", now: "1Gi", recommended: "250Mi" });
    expect(allocatable[1]).toEqual({ resource: "memory", from: "7068Mi", to: "7592Mi", change: "524Mi" });
  });

  test("reports missing system containers, and a patch that the kubelet would not start with", async () => {
    const ran = await advise(realNode("node.json"), realNode("configz.json"), realNode("stats-summary.json"));
    expect(ran).toMatchObject({ code: EXIT.refusesStart, stderr: "" });
    expect(ran.stdout).toMatch(/^systemReserved +memory +1 +776\.2 MiB +776\.2 MiB +776\.2 MiB +512Mi +342Mi$/m);
    expect(ran.stdout).toContain("- refuses-start reservedMemory: ");
    const files = [realNode("node.json"), realNode("configz.json"), realNode("stats-summary.json")];
    const patch = await advise(...files, "-o", "patch");
    expect(patch).toMatchObject({ code: EXIT.refusesStart, stdout: expect.stringMatching(/^systemReserved:/) });
    expect(patch.stderr).toMatch(/^nodewise: the kubelet would not start with it: .+\n$/);
    expect(ran.stdout).toContain(
      "- kubeReserved stays as it is, and systemReserved is what it leaves of the whole, which is measured\n",
    );
  });

  test("reads several documents from standard input", async () => {
    const input = [0, 1].map((hour) => JSON.stringify(summary(hour, WHOLE, CONTAINERS))).join("\n---\n");
    const ran = await run(["advise", "reserves", "-", "-o", "json"], { input });
    expect(JSON.parse(ran.stdout)).toMatchObject({ node: null, measurements: { count: 2 }, allocatable: [] });
  });

  test("refuses files of several nodes, duplicate kinds, unknown documents and flags of the history", async () => {
    const one = file("one.json", summary(0, WHOLE, CONTAINERS));
    const two = file("two.json", summary(0, WHOLE, CONTAINERS, { nodeName: "n2" }));
    const fails = async (message: string, ...args: string[]) => {
      const ran = await advise(...args);
      expect(ran).toMatchObject({ code: EXIT.badInput, stdout: "" });
      expect(ran.stderr).toContain(`nodewise: ${message}`);
    };
    await fails("the files are of the nodes n1 and n2: give those of one", one, two);
    await fails(
      `${realNode("node.json")}: is an object of kind \`Node\`, and ${realNode("node.json")} has the node already`,
      realNode("node.json"),
      realNode("node.json"),
    );
    await fails(`${realNode("pods.json")}: is `, one, realNode("pods.json"));
    await fails("--since belongs to the history: give it without files", one, "--since", "7d");
    const bad = file("bad.json", summary(0, { cpu: -1, memoryMi: 0 }, {}));
    await fails(`${bad}:1:`, bad);
  });
});
