import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { beforeAll, describe, expect, test } from "vitest";
import { SNAPSHOT } from "../../api/documents/kind-examples.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { decisionRow, snapshotRow, T0, value } from "../contract/store-rows.ts";
import { sharedApi } from "../kit/api.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { interrupted, interrupting } from "./interrupting.ts";
import { ended, run, start } from "./run.ts";

/** The number of decisions without a snapshot, three pages, after the decisions that can be replayed. */
const GONE = 2500;
const scratch = scratchFolder();
const dataDir = join(scratch, "history");
const api = sharedApi({ dataDir, retention: { maxRowsPerNode: 1e6, maxAgeMs: 1e15 } });
const file = (name: string, text: string): string => {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
};

beforeAll(async () => {
  for (const name of ["n1", "n2"]) {
    for (const kind of ["allocatable", "cgroups"]) {
      const snapshot = exampleSnapshot(name);
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ snapshot });
      const response = await fetch(`${api.url}/v1/decisions/${kind}`, { method: "POST", headers, body });
      expect(response.status).toBe(200);
    }
  }
  const store = value(openNode({ file: historyFile(dataDir) }));
  const late = Date.now() + 1000;
  const rows = Array.from({ length: GONE }, (_, i) => decisionRow({ node: "n3", decidedAtMs: late + i }));
  for (const row of await Promise.all(rows.map((decision) => store.record({ decision })))) value(row);
  await store.close();
});

const until = ["--until", "2999-01-01T00:00:00Z"];
const replay = (...args: string[]) => run(["replay", "--data-dir", dataDir, ...until, ...args]);
const linesOf = (stdout: string): Record<string, never>[] =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
/** The lines without the progress of intermediate pages, whose ends depend on the machine's speed. */
const answersOf = (stdout: string) => linesOf(stdout).filter((line) => !("going" in line));

describe("nodewise replay", () => {
  test("without a change reports all decisions as the same, and exits with 0", async () => {
    const ran = await replay("--node", "n1");
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toMatch(/^cgroups +1 +1 +0 +0 +0$/m);
    expect(ran.stdout).toMatch(/^n1 +2 +2 +0 +0 +0$/m);
  });

  test("with a patch counts and lists the decisions that differ, and exits with 1", async () => {
    const patch = file("patch.yaml", "kubeReserved: {cpu: 500m, memory: 1Gi}\n");
    const ran = await replay("--patch", patch, "--limit", "1");
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(ran.stdout).toMatch(
      /^\S+Z {2}n1 {2}allocatable {2}kubelet 1\.37 {2}decided {2}[0-9a-f]{32}\n {2}allocatable.cpu: 3900m -> 3500m, and/,
    );
    expect(ran.stdout).toContain("\nand 3 more: --all lists them\n");
    expect(ran.stdout).toMatch(/^all +4 +0 +4 +0 +2,500$/m);
    expect(ran.stdout).toContain(
      "\n2,500 of 2,504 decisions could not be decided again: 2,500 have no snapshot any more\n",
    );
    expect(ran.stdout).toMatch(/^allocatable +decided +2$/m);
    expect(ran.stdout).toMatch(/^1\.37 +4 +0 +4 +0 +0$/m);
    const all = await replay("--patch", patch, "--all");
    expect(all.stdout.match(/^\S+Z {2}/gm)).toHaveLength(4);
  });

  test("for another kubelet version prints both versions, for each decision and in total", async () => {
    const ran = await replay("--kubelet", "1.36", "--node", "n1");
    expect(ran).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^nodewise: a recorded configuration that .*\n$/),
    });
    expect(ran.stderr).toContain("they count as left out of the kubelet's own file, as in `nodewise upgrade`");
    expect(ran.stdout).toMatch(/^\S+Z {2}n1 {2}cgroups {2}(\S+\/\S+.* {2})?kubelet 1\.37 -> 1\.36 {2}decided/m);
    expect(ran.stdout).toMatch(/^1\.37 -> 1\.36 +2 +1 +1 +0 +0$/m);
  });

  test("of decisions without snapshots exits with 3", async () => {
    const ran = await replay("--node", "n3");
    expect(ran).toMatchObject({ code: 3, stderr: "" });
    expect(ran.stdout).toMatch(/^n3 +0 +0 +0 +0 +2,500$/m);
    expect(ran.stdout).toContain("2,500 of 2,500 decisions could not be decided again");
  });

  test("names and skips broken records, and exits with 4", async () => {
    const broken = join(scratch, "broken");
    const store = value(openNode({ file: historyFile(broken) }));
    const snapshot = snapshotRow({ node: "n1", body: JSON.stringify(SNAPSHOT) });
    const id = (i: number) => `${i}`.padStart(32, "0");
    for (let i = 0; i < 4; i++) {
      const body = i === 3 ? "{}" : '{"broken';
      const row = { id: id(i), node: "n1", snapshotId: i === 1 ? null : snapshot.id, decidedAtMs: T0 + i, body };
      value(await store.record({ decision: decisionRow(row), snapshot }));
    }
    await store.close();
    const ran = await run(["replay", "--data-dir", broken, "--limit", "2"]);
    expect(ran).toMatchObject({ code: 4, stderr: "" });
    for (const i of [0, 2]) {
      const line = `n1  cgroups  (unreadable)  ${id(i)}\n  decision \`${id(i)}\`: what is stored of it is not JSON`;
      expect(ran.stdout).toContain(line);
    }
    expect(ran.stdout).toContain("\nand 1 more: --all lists them\n");
    expect(ran.stdout).toMatch(/REFUSED +GONE +UNREADABLE$/m);
    expect(ran.stdout).toMatch(/^cgroups +0 +0 +0 +0 +1 +3$/m);
    expect(ran.stdout).toContain(
      "4 of 4 decisions could not be decided again: 1 has no snapshot any more, 3 cannot be read",
    );
    const { stdout } = await run(["replay", "--data-dir", broken, "--json"]);
    expect(answersOf(stdout)).toMatchObject([
      { id: id(0), unreadable: expect.stringContaining("not JSON") },
      { id: id(2) },
      { id: id(3), unreadable: expect.stringContaining("no answer") },
      { summary: { counts: { replayed: 0, gone: 1, unreadable: 3 } } },
    ]);
  });

  test("names and skips decisions this version cannot read, while history lists and shows them", async () => {
    const newer = join(scratch, "newer");
    const store = value(openNode({ file: historyFile(newer) }));
    const snapshot = snapshotRow({ node: "n1", body: JSON.stringify(SNAPSHOT) });
    const id = (i: number) => `${i}`.padStart(32, "0");
    const body = '{"decision":{"conditions":[]},"reasons":[],"needs":[],"next":null}';
    for (const [i, kind] of (["cgroups", "eviction"] as const).entries()) {
      const row = { id: id(i), kind, node: "n1", snapshotId: snapshot.id, decidedAtMs: T0 + i, body };
      value(await store.record({ decision: decisionRow(row), snapshot }));
    }
    await store.close();
    const rows = new Database(historyFile(newer));
    expect(rows.prepare("UPDATE decisions SET kind = 'foo' WHERE id = ?").run(id(0)).changes).toBe(1);
    rows.close();
    const ran = await run(["replay", "--data-dir", newer]);
    expect(ran).toMatchObject({ code: 4, stderr: "" });
    expect(ran.stdout).toContain(
      `n1  foo  (unreadable)  ${id(0)}\n  decision \`${id(0)}\` is of a kind that this version does not know`,
    );
    expect(ran.stdout).toMatch(/^foo +0 +0 +0 +0 +0 +1$/m);
    expect(ran.stdout).toMatch(/^eviction +1 /m);
    const listed = await run(["history", "--data-dir", newer]);
    expect(listed.code, listed.stderr).toBe(0);
    expect(listed.stdout).toMatch(/ foo /);
    for (const [i, why] of ["is of a kind that this version does not know", "does not have the form"].entries()) {
      const shown = await run(["history", "show", id(i), "--data-dir", newer]);
      expect(shown.code, shown.stderr).toBe(0);
      expect(shown.stdout).toContain(`what is recorded ${why}`);
      expect(shown.stdout).toContain('{\n  "conditions": []\n}');
    }
  });

  test("`history show` shows a decision of an earlier policy with that policy's version", async () => {
    const earlier = join(scratch, "earlier");
    const posted = { method: "POST", headers: { "content-type": "application/json" } };
    const asked = JSON.stringify({ snapshot: exampleSnapshot("n1") });
    const answer = await (await fetch(`${api.url}/v1/decisions/allocatable`, { ...posted, body: asked })).json();
    const { decision, reasons, needs } = answer as Record<string, unknown>;
    const body = JSON.stringify({ decision, reasons, needs, next: null });
    const store = value(openNode({ file: historyFile(earlier) }));
    const row = { kind: "allocatable", node: "n1", snapshotId: null, policyVersion: "kubelet-1.36.3+1", body } as const;
    value(await store.record({ decision: decisionRow({ ...row, id: "e".repeat(32) }) }));
    await store.close();
    const shown = await run(["history", "show", "e".repeat(32), "--data-dir", earlier]);
    expect(shown.stdout).toMatch(/^n1 · allocatable · kubelet-1\.36\.3\+1\n/);
    expect(shown.stdout).toMatch(/ as kubelet-1\.36\.3\+1, id e{32}\n$/);
  });

  test("prints the same JSON lines from a data directory and a running API, page after page", async () => {
    const patch = file("patch.json", '{"kubeletconfig":{"kubeReserved":{"cpu":"500m","memory":"1Gi"}}}');
    const own = await replay("--patch", patch, "--json");
    const asked = await run(["replay", "--api", api.url, ...until, "--patch", patch, "--json"]);
    expect([own.code, own.stderr, asked.code, asked.stderr]).toEqual([1, "", 1, ""]);
    const lines = answersOf(own.stdout);
    expect(answersOf(asked.stdout)).toEqual(lines);
    expect(lines).toHaveLength(5);
    expect(lines.at(-1)).toMatchObject({
      summary: { counts: { replayed: 4, differs: 4, gone: GONE, unreadable: 0 }, nextPageToken: null },
    });
  });

  test("replaces the recorded configuration with --config, and merges --patch over it", async () => {
    const config = file(
      "config.yaml",
      "kubeReserved: {cpu: 100m, memory: 256Mi}\nevictionHard: {memory.available: 100Mi}\n",
    );
    expect((await replay("--kind", "allocatable", "--node", "n2", "--config", config)).code).toBe(0);
    const patch = file("both.yaml", "kubeReserved: {cpu: null}\n");
    const ran = await replay("--kind", "allocatable", "--node", "n2", "--config", config, "--patch", patch, "--json");
    const cpu = { path: "allocatable.cpu", recorded: "3900m", replayed: "4" };
    expect(answersOf(ran.stdout)[0]?.["differences"]).toContainEqual(cpu);
  });

  test("says that --config replaces everything, and suggests the closest name for unknown fields", async () => {
    const config = file("misspelt.yaml", "maxPods: 20\nkubeReservedd: {cpu: 500m}\n");
    const same = ["--kind", "cgroups", "--node", "n3"];
    const whole = await replay(...same, "--config", config);
    expect(whole.code).toBe(3);
    expect(whole.stderr).toMatch(/^nodewise: --config replaces the whole recorded kubeletConfiguration: /);
    expect(whole.stderr.split("\n")[1]).toMatch(
      /^nodewise: .*misspelt\.yaml:2:\d+: .*unknown field "kubeReservedd" \(kubeReserved\?\): left out/,
    );
    const patch = await replay(...same, "--patch", config);
    expect(patch.code).toBe(3);
    expect(patch.stderr).toMatch(/^nodewise: [^\n]*unknown field "kubeReservedd" \(kubeReserved\?\)[^\n]*\n$/);
    // a patch may remove a field that was recorded
    const away = await replay(...same, "--patch", file("away.yaml", "kubeReservedd: null\nmaxPods: 20\n"));
    expect(away).toMatchObject({ code: 3, stderr: "" });
  });

  test("reports invalid arguments and replays nothing", async () => {
    const bad = file("bad.yaml", "kubeReserved: {cpu: 500m}\nmaxPods: -1\n");
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [["--config", bad], /bad\.yaml:2:10: kubeletConfiguration\.maxPods: /],
      [["--patch", bad], /bad\.yaml:2:10: kubeletConfiguration\.maxPods: /],
      [["--patch", file("pod.yaml", "kind: Pod\napiVersion: v1\n")], /pod\.yaml: is .*--patch needs fields/],
      [["--config", join(scratch, "none.yaml")], /none\.yaml/],
      [["--node", "n33"], /--node n33: the history has no such node: did you mean n[123]/],
      [["--since", "2999-01-02T00:00:00Z"], /--since 2999-01-02T00:00:00Z: is later than --until/],
      [["--since", "soon"], /--since: `soon` is neither a time/],
      [["--since", "1dd"], /--since: `1dd` is neither a time/],
      [["--page-token", "MTIz"], /--page-token: the page token is not one/],
      [["--kind", "x"], /--kind/],
    ];
    for (const [args, said] of cases) {
      const ran = await replay(...args);
      expect([ran.code, ran.stdout], args.join(" ")).toEqual([2, ""]);
      expect(ran.stderr).toMatch(said);
    }
    const empty = join(scratch, "empty");
    mkdirSync(empty);
    expect((await run(["replay", "--data-dir", empty])).code).toBe(4);
    const missing = await run(["replay", "--api", api.url, "--node", "n33"]);
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringMatching(/404 unknown_node: .*n[123]/) });
    const quiet = await replay("--since", "2998-01-01T00:00:00Z");
    expect(quiet).toMatchObject({ code: 3, stdout: "", stderr: "no such decisions\n" });
    const days = await run(["replay", "--data-dir", dataDir, "--since", "7d", "--node", "n1"]);
    expect(days.stdout).toMatch(/^n1 +2 /m);
    expect((await replay("--since", new Date(T0).toISOString(), "--node", "n1")).code).toBe(0);
  });
});

test("an interrupted replay prints its counts and a token, with which it continues", async () => {
  const patch = file("on.yaml", "kubeReserved: {cpu: 500m}\n");
  let child: ReturnType<typeof start> | undefined;
  const { url, close } = await interrupting(api.url, 2, () => interrupted(child?.pid as number));
  child = start(["replay", "--api", url, ...until, "--patch", patch, "--json"]);
  const ran = await ended(child);
  await close();
  expect(ran.code, ran.stderr).toBe(130);
  const token = /decisions are counted, .*; continue with .*--page-token ([\w-]+)\n$/.exec(ran.stderr)?.[1] ?? "";
  const first = linesOf(ran.stdout);
  expect(first.at(-1)).toMatchObject({
    summary: { nextPageToken: token, counts: { replayed: 4, differs: 4, gone: 1996 } },
  });
  const args = ["--data-dir", dataDir, "--patch", patch, "--json", "--page-token", token];
  const rest = linesOf((await run(["replay", ...args])).stdout);
  expect(rest).toMatchObject([
    { summary: { nextPageToken: null, counts: { replayed: 0, differs: 0, gone: GONE - 1996 } } },
  ]);
  const wrong = await run(["replay", "--data-dir", dataDir, "--page-token", token]);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/belongs to another replay/) });
});

test("a killed replay has left the token of its last complete page", async () => {
  const patch = file("killed.yaml", "kubeReserved: {cpu: 600m}\n");
  let child: ReturnType<typeof start> | undefined;
  const { url, close } = await interrupting(api.url, 2, () => child?.kill("SIGKILL"));
  child = start(["replay", "--api", url, ...until, "--patch", patch, "--json"]);
  const ran = await ended(child);
  await close();
  expect(ran.signal).toBe("SIGKILL");
  const { going } = linesOf(ran.stdout).at(-1) as unknown as {
    going: { nextPageToken: string; counts: { gone: number } };
  };
  expect(going.counts).toMatchObject({ replayed: 4, differs: 4 });
  const args = ["--data-dir", dataDir, "--patch", patch, "--json", "--page-token", going.nextPageToken];
  const { summary } = linesOf((await run(["replay", ...args])).stdout).at(-1) as unknown as {
    summary: { counts: { gone: number } };
  };
  expect(going.counts.gone + summary.counts.gone).toBe(GONE);
});
