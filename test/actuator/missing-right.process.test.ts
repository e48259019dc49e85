import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { missingRight } from "../../actuator/core/error-text.ts";
import { LAUNCHER, NODE } from "../cli/run.ts";
import { scratch } from "./manifests/scratch.ts";

const NOBODY = { uid: 65534, gid: 65534 };
const MODULE = join(import.meta.dirname, "../../actuator/core/error-text.ts");
/** The output of a process of user nobody that makes a call for which it lacks a permission. */
function reportOf(act: string, wants: string, ...path: readonly string[]): string {
  const script = `
    import * as fs from "node:fs";
    import { missingRight } from ${JSON.stringify(MODULE)};
    const path = ${JSON.stringify(join(...path))};
    try { ${act}; console.log("done"); } catch (e) { console.log(missingRight(e, "${wants}")); }`;
  const { stdout, stderr } = spawnSync(NODE, ["--input-type=module", "-e", script], { ...NOBODY, encoding: "utf8" });
  return stdout.trim() || stderr;
}
const isRoot = process.getuid?.() === 0;
const isAble = isRoot && spawnSync(NODE, [LAUNCHER, "--version"], { ...NOBODY, env: {} }).status === 0;

describe.skipIf(!isAble)("missingRight for EACCES of user nobody (needs root, and a project that all may read)", () => {
  function ground(): string {
    const dir = scratch({ "file.yaml": "x", "closed/inner/file.yaml": "x" });
    chmodSync(dir, 0o755);
    chmodSync(join(dir, "file.yaml"), 0o600);
    chmodSync(join(dir, "closed"), 0o700);
    mkdirSync(join(dir, "own"));
    chownSync(join(dir, "own"), NOBODY.uid, NOBODY.gid);
    return dir;
  }

  test("names the missing right, the file or directory, and its owner and mode", () => {
    const dir = ground();
    const root = "of user 0 and group 0)";
    expect(reportOf("fs.readFileSync(path)", "read", dir, "file.yaml")).toBe(
      `: user 65534 lacks the right to read ${join(dir, "file.yaml")} (mode 600, ${root}`,
    );
    expect(reportOf("fs.readFileSync(path)", "read", dir, "closed/inner/file.yaml")).toBe(
      `: user 65534 lacks the right to search ${join(dir, "closed")} (mode 700, ${root}`,
    );
    expect(reportOf("fs.appendFileSync(path, '')", "write", dir, "file.yaml")).toBe(
      `: user 65534 lacks the right to write ${join(dir, "file.yaml")} (mode 600, ${root}`,
    );
    expect(reportOf("fs.mkdirSync(path)", "write", dir, "new")).toBe(
      `: user 65534 lacks the right to write ${dir} (mode 755, ${root}`,
    );
    expect(reportOf("fs.mkdirSync(path)", "write", dir, "own/new")).toBe("done");
  });

  test("is part of the daemon's messages where it reads and writes", () => {
    const dir = ground();
    const ran = (...args: readonly string[]) =>
      spawnSync(NODE, [LAUNCHER, "actuator", "--once", "--cgroup-mount", join(dir, "none"), ...args], {
        ...NOBODY,
        env: {},
        encoding: "utf8",
      }).stderr;
    expect(ran("--state-dir", join(dir, "state"))).toContain(
      `lacks the right to write ${dir} (mode 755, of user 0 and group 0): name another with --state-dir`,
    );
    const files = ["--kubelet-configuration", join(dir, "file.yaml"), "--pods-token-file", join(dir, "closed/token")];
    const message = ran("--state-dir", join(dir, "own/state"), "--pods-url", "http://127.0.0.1:1/pods", ...files);
    expect(message).toContain(
      `cannot be read (EACCES): user 65534 lacks the right to read ${join(dir, "file.yaml")} (mode 600`,
    );
    expect(message).toContain(`lacks the right to search ${join(dir, "closed")} (mode 700`);
  });
});

test("missingRight is empty for other errors", () => {
  expect(missingRight(Object.assign(new Error("gone"), { code: "ENOENT", path: "/x" }), "read")).toBe("");
  expect(missingRight(Object.assign(new Error("no path"), { code: "EACCES" }), "read")).toBe("");
  expect(missingRight(new Error("none"), "write")).toBe("");
});
