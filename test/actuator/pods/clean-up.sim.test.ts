import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { removePodDirectory, removePodVolumes } from "../../../actuator/pods/volumes/clean-up.ts";
import { systemMounter } from "../../../actuator/pods/volumes/mounter.ts";
import { bindSubPath } from "../../../actuator/pods/volumes/mounts.ts";
import { makePodDirectory, makeVolumes } from "../../../actuator/pods/volumes/volumes.ts";
import { runnable } from "../../kit/runnable-pods.ts";
import { isRoot, mountsBelow, scratch } from "./scratch.ts";
import { ME } from "./worker-kit.ts";

function world() {
  const dir = scratch();
  const places = { podDirectory: join(dir, "pods/uid-1"), logDirectory: join(dir, "logs/x") };
  mkdirSync(join(dir, "pods"));
  mkdirSync(join(dir, "outside"));
  writeFileSync(join(dir, "outside/kept"), "kept");
  makePodDirectory(places, ME);
  const remove = () => removePodDirectory(places, systemMounter);
  const mount = (...args: string[]) => execFileSync("/bin/mount", args);
  return { dir, places, remove, mount, outside: join(dir, "outside") };
}
const volumesOf = (podDirectory: string) => join(podDirectory, "volumes/kubernetes.io~empty-dir");

describe.skipIf(!isRoot)("removing a pod's directory", () => {
  test("removes memory volumes and sub-path mounts, and leaves alone what links point to outside", async () => {
    const { dir, places, remove, outside } = world();
    const volumes = [{ name: "fast", emptyDir: { medium: "Memory" as const, sizeLimitBytes: 1 << 16 } }];
    await makeVolumes(runnable({ volumes }), places, null, systemMounter);
    const target = join(places.podDirectory, "volume-subpaths/host/c/0");
    await bindSubPath({ volumePath: dir, subPath: "outside", target, volume: "host", container: "c" }, systemMounter);
    symlinkSync(outside, join(places.podDirectory, "volumes/link"));
    expect(mountsBelow(dir).length).toBe(2);
    expect(await remove()).toEqual([]);
    expect(existsSync(places.podDirectory)).toBe(false);
    expect([mountsBelow(dir), readdirSync(outside)]).toEqual([[], ["kept"]]);
  });
  test("succeeds a second time, when the directory is already removed", async () => {
    const { remove } = world();
    expect([await remove(), await remove()]).toEqual([[], []]);
  });
  test("removes directories nested deeper than the longest path", async () => {
    const { places, remove } = world();
    const data = join(volumesOf(places.podDirectory), "data");
    mkdirSync(data, { recursive: true });
    const name = "n".repeat(200);
    for (let i = 0; i < 40; i++) {
      mkdirSync(join(data, "inner", name), { recursive: true });
      if (i > 0) renameSync(join(data, "chain"), join(data, "inner", name, "chain"));
      renameSync(join(data, "inner"), join(data, "chain"));
    }
    expect(await remove()).toEqual([]);
    expect(existsSync(places.podDirectory)).toBe(false);
  });
});

describe.skipIf(!isRoot)("removing a pod's volumes", () => {
  test("unmounts and removes the volumes, and nothing else in the pod's directory", async () => {
    const { dir, places, mount, outside } = world();
    const volumes = ["fast", "disk"].map((name) => {
      return {
        name,
        emptyDir: { medium: name === "fast" ? ("Memory" as const) : ("" as const), sizeLimitBytes: null },
      };
    });
    await makeVolumes(runnable({ volumes }), places, null, systemMounter);
    const target = join(places.podDirectory, "volume-subpaths/host/c/0");
    await bindSubPath({ volumePath: dir, subPath: "outside", target, volume: "host", container: "c" }, systemMounter);
    for (const name of ["fast", "disk"]) writeFileSync(join(volumesOf(places.podDirectory), name, "file"), "");
    symlinkSync(outside, join(volumesOf(places.podDirectory), "disk/link"));
    writeFileSync(join(places.podDirectory, "containers/words"), "");
    expect(mountsBelow(dir).length).toBe(2);
    expect(await removePodVolumes(places, systemMounter)).toEqual([]);
    expect([mountsBelow(dir), readdirSync(outside)]).toEqual([[], ["kept"]]);
    expect(readdirSync(places.podDirectory, { recursive: true }).toSorted()).toEqual([
      ".nodewise-pod.json",
      "containers",
      "containers/words",
    ]);
    expect(await removePodVolumes(places, systemMounter)).toEqual([]);
    mkdirSync(join(volumesOf(places.podDirectory), "disk/foreign"), { recursive: true });
    mount("--bind", outside, join(volumesOf(places.podDirectory), "disk/foreign"));
    expect((await removePodVolumes(places, systemMounter)).map(({ why }) => why)).toEqual([
      "something is mounted there",
    ]);
    expect(readdirSync(outside)).toEqual(["kept"]);
  });
  test("does not follow a link in place of the volumes directory", async () => {
    const { places, outside } = world();
    mkdirSync(join(outside, "kubernetes.io~empty-dir/data"), { recursive: true });
    renameSync(join(places.podDirectory, "volumes"), join(places.podDirectory, "plugins"));
    symlinkSync(outside, join(places.podDirectory, "volumes"));
    expect(await removePodVolumes(places, systemMounter)).toEqual([]);
    expect(readdirSync(outside)).toEqual(["kept", "kubernetes.io~empty-dir"]);
    expect(readdirSync(places.podDirectory).toSorted()).toEqual([".nodewise-pod.json", "containers", "plugins"]);
  });
});

describe.skipIf(!isRoot)("removing a pod's directory reports the remaining files", () => {
  test("when a foreign mount is below it: the mount stays with everything behind it", async () => {
    const { dir, places, remove, mount, outside } = world();
    const inside = join(volumesOf(places.podDirectory), "data/mounted");
    mkdirSync(inside, { recursive: true });
    writeFileSync(join(volumesOf(places.podDirectory), "data/file"), "");
    mount("--bind", outside, inside);
    expect(await remove()).toEqual([{ path: inside, why: "something is mounted there" }]);
    expect(readdirSync(outside)).toEqual(["kept"]);
    expect(readdirSync(join(volumesOf(places.podDirectory), "data"))).toEqual(["mounted"]);
    expect(mountsBelow(dir)).toEqual([inside]);
  });
  test("when a memory volume is busy", async () => {
    const { places, remove, mount } = world();
    const fast = join(volumesOf(places.podDirectory), "fast");
    mkdirSync(fast, { recursive: true });
    mount("-t", "tmpfs", "tmpfs", fast);
    mkdirSync(join(fast, "x"));
    mount("-t", "tmpfs", "tmpfs", join(fast, "x"));
    const left = await remove();
    expect(left.map(({ path }) => path)).toEqual([fast]);
    expect(left[0]?.why).toContain("busy");
    expect(existsSync(join(fast, "x"))).toBe(true);
  });
  test("when the directory itself is a link, which is not followed", async () => {
    const { dir, places, outside } = world();
    const linked = { ...places, podDirectory: join(dir, "pods/linked") };
    symlinkSync(outside, linked.podDirectory);
    expect(await removePodDirectory(linked, systemMounter)).toEqual([
      { path: linked.podDirectory, why: "it is not a directory" },
    ]);
    expect(readdirSync(outside)).toEqual(["kept"]);
  });
});
