import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Hierarchy } from "../../actuator/cgroupfs/hierarchy.ts";
import type { PassReport } from "../../actuator/pass/loop.ts";
import { removeAll } from "../actuator/cgroups/contract-kit.ts";
import { LAUNCHER, NODE } from "../cli/run.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { cgroupsBelow, removeCgroups } from "./containerd/leftovers.ts";
import { openOwn, POD } from "./own-cgroups.ts";

const AT = "/sys/fs/cgroup";
const opened = openOwn("mounts");
const { root } = opened;
const NAMED = ["systemd", "unified"].filter((name) => existsSync(join(AT, name, "cgroup.procs")));
const isV1 = existsSync(`${AT}/memory/memory.limit_in_bytes`) && NAMED.length > 0 && process.getuid?.() === 0;
if (!isV1) console.warn("skipped mounts of cgroup v1: no v1 with a hierarchy without controllers, or this is not root");

const POD_AT = "/kubepods/burstable/pod1";
const inNamed = (path: string): readonly string[] => NAMED.map((name) => join(AT, name, root, path));
const isThere = (path: string): readonly boolean[] => inNamed(path).map(existsSync);
const all = (is: boolean): readonly boolean[] => NAMED.map(() => is);

describe.skipIf(!isV1 || !opened.ok)(
  "hierarchies without a controller, which runtimes join",
  { timeout: 180_000 },
  () => {
    let hierarchy: Hierarchy;
    beforeEach(async () => {
      if (opened.ok) hierarchy = opened.value;
      for (const path of ["/", "/kubepods", "/kubepods/burstable", POD_AT])
        await hierarchy.create(path, hierarchy.support().controllers);
      for (const dir of inNamed(`${POD_AT}/c1/nested`)) mkdirSync(dir, { recursive: true });
    });
    afterEach(async () => {
      await removeAll(hierarchy);
      expect(cgroupsBelow(root.slice(1))).toEqual([]);
    });

    test("cgroups that a runtime made there for a pod are removed with the pod's cgroup, and no others", async () => {
      for (const dir of inNamed("/kubepods/burstable/pod2")) mkdirSync(dir);
      expect(await hierarchy.remove(POD_AT, ["cpu"])).toMatchObject({ ok: true });
      expect(isThere(POD_AT)).toEqual(all(true));
      expect(await hierarchy.remove(POD_AT)).toMatchObject({ ok: true });
      expect([isThere(POD_AT), isThere("/kubepods/burstable/pod2")]).toEqual([all(false), all(true)]);
    });

    test("cgroups of deleted pods are swept; other pods', other roots' and those with processes stay", async () => {
      const paths = ["/kubepods/burstable/pod2/c1", "/kubepods/pod3", "/kubepods/pod4/c1", "/system/other"];
      for (const path of paths) for (const dir of inNamed(path)) mkdirSync(dir, { recursive: true });
      const other = NAMED.map((name) => join(AT, name, `${root}-other`, "kubepods/pod5"));
      for (const dir of other) mkdirSync(dir, { recursive: true });
      const child = spawn("sleep", ["60"], { stdio: "ignore" });
      try {
        for (const dir of inNamed("/kubepods/pod4/c1")) writeFileSync(join(dir, "cgroup.procs"), `${child.pid}`);
        await hierarchy.sweep();
        expect([...paths.slice(0, 2), "/kubepods/burstable/pod2"].map(isThere)).toEqual([
          all(false),
          all(false),
          all(false),
        ]);
        expect([`${POD_AT}/c1/nested`, "/kubepods/pod4/c1", "/kubepods/burstable"].map(isThere)).toEqual([
          all(true),
          all(true),
          all(true),
        ]);
        expect(other.map(existsSync)).toEqual(all(true));
      } finally {
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
        removeCgroups(`${root.slice(1)}-other`);
      }
      await hierarchy.sweep();
      expect(isThere("/kubepods/pod4")).toEqual(all(false));
      expect(isThere("/system/other")).toEqual(all(true));
    });
  },
);

describe.skipIf(!isV1)("a read-only cgroup v1 hierarchy, or one with a read-only file,", { timeout: 180_000 }, () => {
  let dir: string;
  beforeEach(() => {
    dir = scratchFolder();
    mkdirSync(join(dir, "manifests"));
    put("16Mi");
  });
  afterEach(() => removeCgroups(root.slice(1)));

  function put(memory: string): void {
    const pod = POD("web", "100m", memory).replace("name: web", "name: web, uid: u1");
    writeFileSync(join(dir, "manifests/web.yaml"), pod);
  }
  /** Runs one pass in its own mount namespace. */
  function pass(readOnly: readonly string[], { mode = "enforce", by = "exec" } = {}) {
    const mounts = readOnly.map((name) => `mount -o remount,bind,ro ${AT}/${name}`);
    const own = ["--state-dir", join(dir, "state"), "--manifests", join(dir, "manifests"), "--cgroup-root", root];
    const args = ["actuator", "--once", "-o", "json", "--mode", mode, "--containers", "create", ...own];
    const script = [...mounts, `${by} "$@"`].join(" && ");
    const ran = spawnSync("unshare", ["-m", "sh", "-c", script, "sh", NODE, LAUNCHER, ...args], { encoding: "utf8" });
    return { code: ran.status, stderr: ran.stderr, report: JSON.parse(ran.stdout) as PassReport };
  }
  const actualOf = ({ differs }: PassReport, file: string) =>
    differs?.filter((one) => one.file === file && /\/pod[^/]*$/.test(one.path)).map(({ actual }) => actual);

  test.each([[["memory"]], [["cpu", "cpuset", "memory", "pids"]]])(
    "(%s) is reported once with what to do, and no cgroup is left half made",
    (names) => {
      const { code, stderr, report } = pass(names);
      expect(code).not.toBe(0);
      const lines = stderr.split("\n").filter((line) => line.includes("EROFS"));
      expect(lines).toHaveLength(names.length);
      for (const name of names)
        expect(stderr).toContain(
          `controller ${name} cannot be written (EROFS): ${AT}/${name} is mounted read-only here`,
        );
      expect(report.applied?.results.filter(({ status }) => status === "applied")).toEqual([]);
      expect(actualOf(report, "memory.limit_in_bytes")).toEqual([null]);
      expect(cgroupsBelow(root.slice(1))).toEqual([]);
    },
  );

  test("is no fault while the values are right, and a wrong one is reported with the actual value", () => {
    expect(pass([]).code).toBe(0);
    const again = pass(["memory"]);
    expect([again.code, again.stderr]).toEqual([0, ""]);
    put("32Mi");
    const { report, stderr } = pass(["memory"]);
    expect(actualOf(report, "memory.limit_in_bytes")).toEqual([String(16 * 2 ** 20)]);
    expect(stderr.match(/controller memory cannot be written/g)).toHaveLength(1);
  });

  test("does not matter to an observer", () => {
    expect(pass([]).code).toBe(0);
    const { code, stderr, report } = pass(["cpu", "cpuset", "memory", "pids"], { mode: "observe" });
    expect([code, stderr, report.applied?.results]).toEqual([0, "", []]);
  });

  test("is reported with path, value and errno when a right to a file is missing", () => {
    expect(pass([]).code).toBe(0);
    const file = join(AT, "cpu", root, "kubepods/podu1/cpu.shares");
    writeFileSync(file, "77");
    chmodSync(file, 0o444);
    const { code, stderr, report } = pass([], {
      by: "exec setpriv --bounding-set -dac_override,-dac_read_search,-fowner",
    });
    expect(code).not.toBe(0);
    const said = "cgroupfs: write /kubepods/podu1 cpu.shares: tried `102`, got EACCES; this daemon lacks the right";
    expect(stderr.split("\n").filter((line) => line.includes(said))).toHaveLength(1);
    expect(actualOf(report, "cpu.shares")).toEqual(["77"]);
  });
});
