import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { passOnce } from "../../actuator/main.ts";
import { run } from "../cli/run.ts";
import { expectAsShown } from "../docs/shown.ts";
import { ground, openOwn, POD } from "./own-cgroups.ts";

const opened = openOwn("loop");
const why = opened.ok ? "" : ` (skipped: ${opened.error.message})`;

describe.skipIf(!opened.ok)(`the actuator on this machine's own cgroups${why}`, () => {
  const { root, inDir, options, pass, manifest, read } = ground(opened);

  test("manifests become cgroups with the kubelet's values, and a second pass writes nothing", async () => {
    manifest("web.yaml", POD("web", "250m", "64Mi"));
    const first = await pass();
    expect(first.applied?.complete).toBe(true);
    const pod = first.cgroups?.cgroups.find((c) => c.level === "pod");
    if (pod === undefined) throw new Error("no pod was decided");
    expect(read(pod.path, "memory.limit_in_bytes") || read(pod.path, "memory.max")).toBe(String(64 * 2 ** 20));
    for (const file of pod.files.filter((f) => f.path.startsWith("cpu.")))
      expect(read(pod.path, file.path)).toBe(file.value);
    const second = await pass();
    expect(second.applied?.results).toEqual([]);
    expect(second.drift).toEqual([]);
  });

  test("a removed pod loses its cgroups, and a changed pod's are changed", async () => {
    manifest("a.yaml", POD("a", "100m", "32Mi"));
    manifest("b.yaml", POD("b", "100m", "32Mi"));
    const first = await pass();
    const paths = first.cgroups?.cgroups.filter((c) => c.level === "pod").map((c) => c.path) ?? [];
    expect(paths.length).toBe(2);
    rmSync(inDir("manifests", "b.yaml"));
    const second = await pass();
    expect(second.applied?.results.filter((r) => r.step.op === "rmdir").length).toBeGreaterThan(0);
    expect(opened.ok && opened.value.paths().filter((p) => paths.includes(p)).length).toBe(1);
  });

  test("a foreign change is reported as drift by another writer, and corrected", async () => {
    manifest("web.yaml", POD("web", "250m", "64Mi"));
    await pass();
    const file = opened.ok && opened.value.version === 1 ? "cpu.shares" : "cpu.weight";
    if (opened.ok) await opened.value.write("/kubepods", file, "77");
    const after = await pass();
    expect(after.drift.map((d) => [d.path, d.file, d.cause])).toEqual([["/kubepods", file, "other_writer"]]);
    expect(after.applied?.results.map((r) => [r.status, r.before])).toEqual([["applied", "77"]]);
    expect((await pass()).drift).toEqual([]);
  });

  test.runIf(opened.ok && opened.value.version === 1)("the guide shows what its commands print", async () => {
    const places = ["--cgroup-root", root, "--state-dir", inDir("state"), "--kubelet-dir", inDir("no-kubelet")];
    const actuator = async (...args: readonly string[]): Promise<string> => {
      const all = ["actuator", "--manifests", "test/data/pods", "--containers", "create", "--once", ...args];
      const ran = await run([...all, "--node-name", "n1", ...places]);
      expect([ran.code, ran.stderr]).toEqual([0, ""]);
      return ran.stdout;
    };
    const GUIDE = "docs/guide/daemon.md";
    const ENFORCE = "nodewise actuator --manifests test/data/pods --containers create --once --mode enforce";
    expect(await actuator("--dry-run")).toMatch(/\/kubepods +\(create\) .* planned\n/);
    expect(opened.ok && opened.value.paths()).toEqual([]);
    const [first] = (await actuator("--mode", "enforce")).trimEnd().split("\n").slice(-1);
    expectAsShown(
      GUIDE,
      "nodewise actuator --manifests test/data/pods --containers create --once --mode enforce | tail -1",
      first as string,
    );
    if (opened.ok) await opened.value.write("/kubepods", "cpu.shares", "77");
    expectAsShown(GUIDE, ENFORCE, await actuator("--mode", "enforce"));
  });

  test("an observer writes nothing and reports what it would write", async () => {
    manifest("web.yaml", POD("web", "250m", "64Mi"));
    const seen = await pass({ mode: "observe" });
    expect(seen.applied?.dryRun).toBe(true);
    expect(seen.applied?.results.length).toBeGreaterThan(5);
    expect(opened.ok && opened.value.paths()).toEqual([]);
  });

  test("when the pods cannot be read all cgroups stay as they are", async () => {
    manifest("web.yaml", POD("web", "250m", "64Mi"));
    await pass();
    const before = opened.ok ? opened.value.paths() : [];
    rmSync(inDir("manifests"), { recursive: true });
    const blind = await passOnce(options());
    if (!blind.ok) throw new Error(blind.error);
    expect(blind.value.cgroups).toBeNull();
    expect(blind.value.problems[0]?.message).toContain("manifests");
    expect(opened.ok && opened.value.paths()).toEqual(before);
    expect(before.length).toBeGreaterThan(3);
  });

  test("a temporarily broken manifest leaves its pods' cgroups as they are", async () => {
    manifest("web.yaml", POD("web", "250m", "64Mi"));
    manifest("db.yaml", POD("db", "100m", "32Mi"));
    await pass();
    const before = opened.ok ? opened.value.paths() : [];
    manifest("web.yaml", "{half of it");
    const blind = await passOnce(options());
    if (!blind.ok) throw new Error(blind.error);
    expect(blind.value.problems.length).toBe(1);
    expect(opened.ok && opened.value.paths()).toEqual(before);
    rmSync(inDir("manifests", "web.yaml"));
    await pass();
    expect(opened.ok && opened.value.paths().length).toBeLessThan(before.length);
  });

  test("an interrupted plan is undone before anything else is done", async () => {
    manifest("web.yaml", POD("web", "250m", "64Mi"));
    const first = await pass();
    const journal = inDir("state", `journal${root.replaceAll("/", "+")}.jsonl`);
    // the journal of a daemon that died after writing to the journal and before its last step
    const lines = readFileSync(journal, "utf8").trimEnd().split("\n");
    expect(lines.length).toBe(2);
    writeFileSync(journal, `${lines[0]}\n`);
    const undone: string[] = [];
    const again = await passOnce({ ...options(), onRecovery: (r) => undone.push(r.outcome) });
    expect(undone).toEqual(["undone"]);
    expect(again.ok && again.value.applied?.complete).toBe(true);
    expect(again.ok && again.value.applied?.results.length).toBe(first.applied?.results.length);
  });
});
