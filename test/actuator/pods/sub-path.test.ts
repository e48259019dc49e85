import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemMounter } from "../../../actuator/pods/volumes/mounter.ts";
import { bindSubPath } from "../../../actuator/pods/volumes/mounts.ts";
import { isRoot, mountsBelow, scratch } from "./scratch.ts";

function world() {
  const dir = scratch();
  const volume = join(dir, "volume");
  const target = join(dir, "pod/volume-subpaths/v/c/0");
  mkdirSync(volume, { mode: 0o777 });
  mkdirSync(join(dir, "outside"));
  writeFileSync(join(dir, "outside/secret"), "secret");
  const bind = (subPath: string) =>
    bindSubPath({ volumePath: volume, subPath, target, volume: "v", container: "c" }, systemMounter);
  return { dir, volume, target, bind };
}
const failed = (error: string) => ({ ok: false, error });
const prepare = failed('failed to prepare subPath for volumeMount "v" of container "c"');
const create = failed('failed to create subPath directory for volumeMount "v" of container "c"');

describe.skipIf(!isRoot)("a sub-path", () => {
  test("stays mounted on its directory, even after a link has taken the directory's place", async () => {
    const { dir, volume, target, bind } = world();
    mkdirSync(join(volume, "a"));
    writeFileSync(join(volume, "a/file"), "mine");
    expect(await bind("a")).toEqual({ ok: true, value: target });
    renameSync(join(volume, "a"), join(volume, "moved"));
    symlinkSync(join(dir, "outside"), join(volume, "a"));
    expect(readdirSync(target)).toEqual(["file"]);
  });
  test("may be a file", async () => {
    const { volume, target, bind } = world();
    writeFileSync(join(volume, "f"), "text");
    expect(await bind("f")).toEqual({ ok: true, value: target });
    expect(readFileSync(target, "utf8")).toBe("text");
  });
  test("is mounted once, and again when its directory was replaced", async () => {
    const { dir, volume, target, bind } = world();
    mkdirSync(join(volume, "a"));
    await bind("a");
    await bind("a");
    expect(mountsBelow(dir)).toEqual([target]);
    renameSync(join(volume, "a"), join(volume, "old"));
    mkdirSync(join(volume, "a"));
    writeFileSync(join(volume, "a/new"), "");
    await bind("a");
    expect([mountsBelow(dir), readdirSync(target)]).toEqual([[target], ["new"]]);
  });
  test("that is missing is created with the volume's mode", async () => {
    const { volume, target, bind } = world();
    const mode = (path: string) => statSync(path).mode & 0o7777;
    chmodSync(volume, 0o2775);
    expect(await bind("x/y/z")).toEqual({ ok: true, value: target });
    expect(["x", "x/y", "x/y/z"].map((path) => mode(join(volume, path)))).toEqual([0o2775, 0o2775, 0o2775]);
  });
  test("may go through a link that stays inside the volume", async () => {
    const { volume, target, bind } = world();
    mkdirSync(join(volume, "real"));
    writeFileSync(join(volume, "real/in"), "");
    symlinkSync("real", join(volume, "link"));
    expect(await bind("link")).toEqual({ ok: true, value: target });
    expect(readdirSync(target)).toEqual(["in"]);
    expect(await bind("link/made")).toEqual({ ok: true, value: target });
    expect(readdirSync(join(volume, "real")).sort()).toEqual(["in", "made"]);
  });
  test("is refused when it leads out by a link, to what exists or is to be created", async () => {
    const { dir, volume, bind } = world();
    symlinkSync(join(dir, "outside"), join(volume, "out"));
    symlinkSync("../outside", join(volume, "up"));
    symlinkSync("/nowhere", join(volume, "dangling"));
    expect(await bind("out")).toEqual(prepare);
    expect(await bind("out/secret")).toEqual(prepare);
    expect(await bind("up")).toEqual(prepare);
    expect(await bind("out/made")).toEqual(create);
    expect(await bind("dangling")).toEqual(create);
    expect(readdirSync(join(dir, "outside"))).toEqual(["secret"]);
    expect(mountsBelow(dir)).toEqual([]);
  });
  test("is refused when it is absolute or contains ..", async () => {
    const { bind } = world();
    expect(await bind("/etc")).toEqual(failed("error SubPath `/etc` must not be an absolute path"));
    expect(await bind("a/../../b")).toEqual(failed("unable to provision SubPath `a/../../b`: must not contain '..'"));
  });
});
