import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { claimDirectories } from "../../../actuator/pods/volumes/claims.ts";
import { isRoot, scratch } from "./scratch.ts";

/** Daemons of one machine, each with its own directories unless `settings` names others. */
function machine() {
  const dir = scratch();
  const claims = join(dir, "run");
  mkdirSync(claims);
  const configOf = (name: string, settings: object) => {
    const at = (what: string): string => join(dir, name, what);
    mkdirSync(at("state"), { recursive: true });
    const own = { podLogsDirectory: at("logs"), containerLogsDirectory: at("links") };
    return { stateDir: at("state"), podsDirectory: at("pods"), ...own, ...settings };
  };
  const claim = async (name: string, settings: object = {}) => {
    const claimed = await claimDirectories(configOf(name, settings), "boot", claims);
    return claimed.ok ? { why: "", release: claimed.value.release } : { why: claimed.error, release: () => {} };
  };
  return { dir, claims, claim };
}

describe("a second daemon", () => {
  test("starts when its directories are its own", async () => {
    const { claim, claims } = machine();
    const [a, b] = [await claim("a"), await claim("b")];
    expect([a.why, b.why]).toEqual(["", ""]);
    for (const { release } of [a, b]) release();
    expect(readdirSync(claims)).toEqual([]);
  });

  test.each([
    ["podsDirectory", "pods"],
    ["stateDir", "state"],
    ["podLogsDirectory", "logs"],
    ["containerLogsDirectory", "links"],
  ])("with the same %s is refused with what to do, and leaves no claim behind", async (setting, name) => {
    const { dir, claim, claims } = machine();
    const first = await claim("a");
    const before = readdirSync(claims);
    const at = join(dir, "a", name);
    const { why } = await claim("b", { [setting]: at });
    expect(why).toContain(`${setting} ${at}: process ${process.pid}, another daemon, keeps it (`);
    expect(why).toContain("give each daemon its own stateDir, podsDirectory, podLogsDirectory, containerLogsDirectory");
    expect(readdirSync(claims)).toEqual(before);
    first.release();
    expect((await claim("b", { [setting]: at })).why).toBe("");
  });

  test.each([
    ["above", "a"],
    ["below", "a/pods/x"],
    ["at the end of a link of", "link"],
  ])("may not use a directory that lies %s the other daemon's", async (_, path) => {
    const { dir, claim } = machine();
    await claim("a");
    symlinkSync(join(dir, "a/pods"), join(dir, "link"));
    expect((await claim("b", { podsDirectory: join(dir, path) })).why).toContain("another daemon, keeps");
  });

  test("is refused the same directory also when the path contains a space", async () => {
    const { dir, claim } = machine();
    const podsDirectory = join(dir, "my pods");
    await claim("a", { podsDirectory });
    expect((await claim("b", { podsDirectory })).why).toContain(`podsDirectory ${podsDirectory}: process`);
  });

  test.skipIf(!isRoot)("is refused the same directory under a bind mount's path", async () => {
    const { dir, claim } = machine();
    await claim("a");
    const mounted = join(dir, "mounted");
    mkdirSync(mounted);
    execFileSync("/bin/mount", ["--bind", join(dir, "a/pods"), mounted]);
    onTestFinished(() => void execFileSync("/bin/umount", [mounted]));
    expect((await claim("b", { podsDirectory: mounted })).why).toContain(`podsDirectory ${mounted}: process`);
  });
});

test("a directory that cannot be created is an error", async () => {
  const { claim } = machine();
  expect((await claim("a", { podsDirectory: "/dev/null/pods" })).why).toContain("directories of pods: ");
});
