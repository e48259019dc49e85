import { rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { passOnce, startActuator } from "../../actuator/main.ts";
import type { PassReport } from "../../actuator/pass/loop.ts";
import { expectPublished } from "../cli/published.ts";
import { run } from "../cli/run.ts";
import { ground, openOwn, POD } from "./own-cgroups.ts";

const opened = openOwn("turns");
const why = opened.ok ? "" : ` (skipped: ${opened.error.message})`;

const BURSTABLE = (name: string, cpu: string) => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec: {containers: [{name: app, image: app, resources: {requests: {cpu: ${cpu}}}}]}
`;

describe.skipIf(!opened.ok)(`successive passes and daemons on one cgroup root${why}`, () => {
  const { root, inDir, options, pass, manifest, read } = ground(opened);

  test("a broken manifest leaves its pod's QoS cgroup its CPU shares, and a corrected one may lower them", async () => {
    const file = opened.ok && opened.value.version === 1 ? "cpu.shares" : "cpu.weight";
    const tier = "/kubepods/burstable";
    manifest("web.yaml", BURSTABLE("web", "900m"));
    await pass();
    const before = read(tier, file);
    manifest("web.yaml", "{half of it");
    // another process, which has never seen the pod
    const blind = await passOnce(options());
    if (!blind.ok) throw new Error(blind.error);
    expect(blind.value.applied?.results).toEqual([]);
    expect(blind.value.drift).toEqual([]);
    expect(blind.value.notices.map((n) => n.message)).toContain(
      `not all pods could be read, left as they are: ${tier} ${file}`,
    );
    expect(read(tier, file)).toBe(before);
    manifest("web.yaml", BURSTABLE("web", "100m"));
    await pass();
    expect(Number(read(tier, file))).toBeLessThan(Number(before));
  });

  test("a daemon keeps a broken manifest's last valid version in force, and restores removed cgroups", async () => {
    manifest("web.yaml", BURSTABLE("web", "900m"));
    manifest("db.yaml", BURSTABLE("db", "100m"));
    const pods = (report: PassReport) => report.cgroups?.cgroups.filter((c) => c.level === "pod").length;
    const reports: PassReport[] = [];
    const passed = Promise.withResolvers<void>();
    const { config, ...rest } = options();
    const daemon = await startActuator({
      ...rest,
      config: { ...config, intervalSeconds: 0 },
      onPass: (report) => {
        reports.push(report);
        if (reports.length === 1) {
          manifest("web.yaml", "{half of it");
          rmSync(inDir("manifests", "db.yaml"));
        }
        if (reports.length === 2) rmSync(inDir("manifests", "web.yaml"));
        if (reports.length === 3) passed.resolve();
      },
    });
    if (!daemon.ok) throw new Error(daemon.error);
    await passed.promise;
    await daemon.value.stop();
    expect(reports.slice(0, 3).map(pods)).toEqual([2, 1, 0]);
    expect(reports[1]?.notices.map((n) => n.message)).toEqual([
      `${inDir("manifests", "web.yaml")}: its last good version is in force`,
    ]);
  });

  test("a run on a cgroup root inside a daemon's is refused with the daemon's process id", async () => {
    const first = await startActuator(options());
    if (!first.ok) throw new Error(first.error);
    const inner = await passOnce(options({ cgroupRoot: `${root}/inner`, stateDir: inDir("another") }));
    await first.value.stop();
    expect(inner.ok ? "" : inner.error).toContain(`process ${process.pid} already writes below cgroup root ${root},`);
  });

  test("a second daemon with another state directory is refused as well", async () => {
    manifest("web.yaml", POD("web", "250m", "64Mi"));
    const passed = Promise.withResolvers<PassReport>();
    const first = await startActuator({ ...options(), onPass: passed.resolve });
    if (!first.ok) throw new Error(first.error);
    await passed.promise;
    const second = await startActuator(options({ stateDir: inDir("another") }));
    await first.value.stop();
    expect(second.ok ? "" : second.error).toContain("already writes here");
  });

  test("a second daemon on the same root is refused, and may start when the first has ended", async () => {
    manifest("web.yaml", POD("web", "250m", "64Mi"));
    const passed = Promise.withResolvers<PassReport>();
    const first = await startActuator({ ...options(), onPass: passed.resolve });
    if (!first.ok) throw new Error(first.error);
    await passed.promise;
    const second = await startActuator(options());
    expect(second.ok ? "" : second.error).toContain("already writes here");
    await first.value.stop();
    const third = await startActuator(options());
    if (!third.ok) throw new Error(third.error);
    await third.value.stop();
  });

  describe("nodewise actuator --once", () => {
    const once = (...more: readonly string[]) => {
      const places = ["--manifests", inDir("manifests"), "--state-dir", inDir("state"), "--kubelet-dir", inDir("none")];
      return run(["actuator", "--cgroup-root", root, "--containers", "create", "--once", ...places, ...more]);
    };
    const enforce = ["--mode", "enforce"];

    test("a pass after a manifest changed reports its steps, and no wrong values", async () => {
      manifest("web.yaml", BURSTABLE("web", "900m"));
      await once(...enforce);
      manifest("web.yaml", BURSTABLE("web", "100m"));
      const changed = await once(...enforce);
      expect(changed).toMatchObject({ code: 0, stderr: "" });
      expect(changed.stdout).toMatch(/ cgroups decided; \d+ steps applied\n$/);
      expect(changed.stdout).not.toMatch("ours");
      manifest("web.yaml", BURSTABLE("web", "200m"));
      const seen = await once("--fail-on-drift");
      expect(seen).toMatchObject({ code: 0, stderr: "" });
      const message = (await once("-o", "json")).stdout;
      await expectPublished("actuator", message);
      await expectPublished("actuator", (await once(...enforce, "-o", "json")).stdout);
      const report = JSON.parse(message) as PassReport;
      expect(new Set(report.drift.map((d) => d.cause))).toEqual(new Set(["ours"]));
    });

    test("a foreign change is reported, and exits with 1 with --fail-on-drift", async () => {
      manifest("web.yaml", BURSTABLE("web", "900m"));
      await pass();
      expect((await once("--fail-on-drift")).code).toBe(0);
      const file = opened.ok && opened.value.version === 1 ? "cpu.shares" : "cpu.weight";
      if (opened.ok) await opened.value.write("/kubepods", file, "77");
      expect((await once()).code).toBe(0);
      const failed = await once("--fail-on-drift");
      expect(failed.code).toBe(1);
      expect(failed.stdout).toMatch(/other_writer[\s\S]*; 1 file with a wrong value\n$/);
    });
  });
});
