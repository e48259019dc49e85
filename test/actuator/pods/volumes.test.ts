import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemMounter } from "../../../actuator/pods/volumes/mounter.ts";
import { checkHostPath, makePodDirectory, makeVolumes } from "../../../actuator/pods/volumes/volumes.ts";
import { runnable } from "../../kit/runnable-pods.ts";
import { FakeMounter } from "./fake-mounter.ts";
import { isRoot, mountsBelow, scratch } from "./scratch.ts";

const mode = (path: string): string => (statSync(path).mode & 0o7777).toString(8);
const ofDirectory = (dir: string) => ({ podDirectory: join(dir, "uid-1"), logDirectory: join(dir, "logs") });
const at = (dir: string, name: string): string => join(dir, "uid-1/volumes/kubernetes.io~empty-dir", name);
const empty = (medium: "" | "Memory", sizeLimitBytes: number | null = null) => ({
  emptyDir: { medium, sizeLimitBytes },
});
const withGroup = (fsGroup: number) => ({ ...runnable().spec.securityContext, fsGroup });

describe.skipIf(!isRoot)("an emptyDir", () => {
  test("is created with mode 0777, whatever the umask, and keeps its content", async () => {
    const dir = scratch();
    const asked = runnable({ volumes: [{ name: "data", ...empty("") }] });
    const old = process.umask(0o077);
    onTestFinished(() => void process.umask(old));
    expect(makePodDirectory(ofDirectory(dir), "me").ok).toBe(true);
    expect(await makeVolumes(asked, ofDirectory(dir), null, new FakeMounter())).toEqual([]);
    expect(mode(at(dir, "data"))).toBe("777");
    expect(mode(join(dir, "uid-1/volumes"))).toBe("700");
    writeFileSync(join(at(dir, "data"), "kept"), "kept");
    chmodSync(at(dir, "data"), 0o750);
    expect(await makeVolumes(asked, ofDirectory(dir), null, new FakeMounter())).toEqual([]);
    expect(readFileSync(join(at(dir, "data"), "kept"), "utf8")).toBe("kept");
    expect(mode(at(dir, "data"))).toBe("750");
  });
  test("belongs to the fsGroup, as do files created in it", async () => {
    const dir = scratch();
    const asked = runnable({ volumes: [{ name: "data", ...empty("") }], securityContext: withGroup(4711) });
    await makeVolumes(asked, ofDirectory(dir), null, new FakeMounter());
    expect([mode(at(dir, "data")), statSync(at(dir, "data")).gid]).toEqual(["2777", 4711]);
    mkdirSync(join(at(dir, "data"), "made"));
    expect(statSync(join(at(dir, "data"), "made")).gid).toBe(4711);
  });
  test("left half made by a crash is made again", async () => {
    const dir = scratch();
    mkdirSync(join(at(dir, ".data.new"), "deep"), { recursive: true });
    await makeVolumes(
      runnable({ volumes: [{ name: "data", ...empty("") }] }),
      ofDirectory(dir),
      null,
      new FakeMounter(),
    );
    expect(mode(at(dir, "data"))).toBe("777");
    expect(existsSync(at(dir, ".data.new"))).toBe(false);
    expect(existsSync(join(at(dir, "data"), "deep"))).toBe(false);
  });
  test("fails where a link or file is in its place, and other volumes are still made", async () => {
    const dir = scratch();
    mkdirSync(at(dir, ""), { recursive: true });
    symlinkSync("/etc", at(dir, "data"));
    const volumes = [
      { name: "data", ...empty("") },
      { name: "other", ...empty("") },
    ];
    expect(await makeVolumes(runnable({ volumes }), ofDirectory(dir), null, new FakeMounter())).toEqual([
      { volume: "data", message: `mkdir ${at(dir, "data")}: not a directory` },
    ]);
    expect(lstatSync(at(dir, "other")).isDirectory()).toBe(true);
  });
  test("in memory is a tmpfs of its size, mounted once", async () => {
    const dir = scratch();
    const volumes = [{ name: "fast", ...empty("Memory", 1 << 20) }];
    const asked = runnable({ volumes, securityContext: withGroup(99) });
    // the same when a symbolic link leads to the directory of all pods
    const links = scratch();
    symlinkSync(dir, join(links, "to"));
    for (const root of [dir, dir, join(links, "to")])
      expect(await makeVolumes(asked, ofDirectory(root), null, systemMounter)).toEqual([]);
    expect(mountsBelow(dir)).toEqual([at(dir, "fast")]);
    const { bsize, blocks } = statfsSync(at(dir, "fast"));
    expect(bsize * blocks).toBe(1 << 20);
    expect([mode(at(dir, "fast")), statSync(at(dir, "fast")).gid]).toEqual(["3777", 99]);
  });
  test.each([
    [null, null, "mode=1777,noswap"],
    [null, 500, "size=500,mode=1777,noswap"],
    [400, 500, "size=400,mode=1777,noswap"],
    [600, 500, "size=500,mode=1777,noswap"],
    [0, 500, "size=500,mode=1777,noswap"],
  ])("in memory with limit %s in a pod with memory %s is mounted with %s", async (limit, memory, options) => {
    const dir = scratch();
    const mounter = new FakeMounter();
    await makeVolumes(
      runnable({ volumes: [{ name: "fast", ...empty("Memory", limit) }] }),
      ofDirectory(dir),
      memory,
      mounter,
    );
    expect(mounter.asked).toEqual([`tmpfs ${at(dir, "fast")} ${options}`]);
  });
});

test.skipIf(!isRoot)("a failed mount is reported in the kubelet's words", async () => {
  const answer = await systemMounter.tmpfs("/nowhere/at all", ["size=5"]);
  expect(answer).toMatchObject({ ok: false });
  expect(answer.ok ? "" : answer.error).toMatch(
    /^mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t tmpfs -o size=5 tmpfs \/nowhere\/at all\nOutput: .+/,
  );
});

describe("a hostPath volume", () => {
  const failed = (message: string) => ({ ok: false, error: message });
  test("is checked to be of its type, following links", async () => {
    const dir = scratch();
    const [file, directory, link, socket] = ["f", "d", "l", "s"].map((name) => join(dir, name)) as [
      string,
      string,
      string,
      string,
    ];
    writeFileSync(file, "");
    mkdirSync(directory);
    symlinkSync(directory, link);
    const server = createServer().listen(socket);
    await new Promise((resolve) => server.once("listening", resolve));
    onTestFinished(() => void server.close());
    const right = {
      File: file,
      Directory: directory,
      Socket: socket,
      CharDevice: "/dev/null",
      "": "/nowhere",
    } as const;
    for (const [type, path] of Object.entries(right))
      expect(checkHostPath(path, type as keyof typeof right), path).toEqual({ ok: true, value: null });
    expect(checkHostPath(link, "Directory").ok).toBe(true);
    const no = "hostPath type check failed:";
    expect(checkHostPath(file, "Directory")).toEqual(failed(`${no} ${file} is not a directory`));
    expect(checkHostPath(directory, "File")).toEqual(failed(`${no} ${directory} is not a file`));
    expect(checkHostPath(file, "Socket")).toEqual(failed(`${no} ${file} is not a socket file`));
    expect(checkHostPath(file, "CharDevice")).toEqual(failed(`${no} ${file} is not a character device`));
    expect(checkHostPath("/dev/null", "BlockDevice")).toEqual(failed(`${no} /dev/null is not a block device`));
    expect(checkHostPath(file, "DirectoryOrCreate")).toEqual(failed(`${no} ${file} is not a directory`));
    expect(checkHostPath(directory, "FileOrCreate")).toEqual(failed(`${no} ${directory} is not a file`));
    expect(checkHostPath(`${dir}/../x`, "")).toEqual(failed(`invalid HostPath \`${dir}/../x\`: must not contain '..'`));
  });
  test("is created where its type says so", () => {
    const dir = scratch();
    expect(checkHostPath(join(dir, "a/b"), "DirectoryOrCreate").ok).toBe(true);
    expect(mode(join(dir, "a/b"))).toBe("755");
    expect(checkHostPath(join(dir, "a/f"), "FileOrCreate").ok).toBe(true);
    expect([mode(join(dir, "a/f")), statSync(join(dir, "a/f")).isFile()]).toEqual(["644", true]);
    const missing = join(dir, "no/f");
    expect(checkHostPath(missing, "FileOrCreate")).toEqual(failed(`open ${missing}: no such file or directory`));
    expect(checkHostPath(join(dir, "a/f/x"), "DirectoryOrCreate")).toEqual(
      failed(`mkdir ${join(dir, "a/f/x")}: not a directory`),
    );
    expect(checkHostPath(join(dir, "gone"), "Directory").ok).toBe(false);
    expect(existsSync(join(dir, "gone"))).toBe(false);
  });
});
