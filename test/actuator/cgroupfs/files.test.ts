import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CgroupFs, openCgroupFs } from "../../../actuator/cgroupfs/files.ts";
import { ROOT } from "../cgroups/hierarchy-kit.ts";
import { type TempTree, tempTree } from "../cgroups/temp-tree.ts";

let tree: TempTree;
let fs: CgroupFs;
/** A directory and a file outside the hierarchy's root, which no operation may reach. */
let secret: string;

beforeEach(() => {
  tree = tempTree(1, ROOT);
  const door = openCgroupFs(tree.mountRoot, ROOT);
  if (!door.ok) throw new Error(door.error.message);
  fs = door.value;
  mkdirSync(join(tree.mountRoot, "cpu", ROOT));
  mkdirSync(join(tree.mountRoot, "cpu/other"));
  secret = join(tree.mountRoot, "cpu/other/cpu.shares");
  writeFileSync(secret, "1024\n");
});
afterEach(() => tree.remove());

const own = (name: string): string => join(tree.mountRoot, "cpu", ROOT, name);
const codeOf = (answer: { ok: boolean; error?: { code: string } }): string => answer.error?.code ?? "ok";

describe("openCgroupFs", () => {
  test.each(["/", "", "nodewise", "/a/../b", "/..", "/a/", "//a", "/cpu.shares", `/${"x".repeat(256)}`, "/a\u007f"])(
    "refuses %j as the root",
    (root) => expect(codeOf(openCgroupFs(tree.mountRoot, root))).toBe("outside_root"),
  );

  test("reports which mount root is missing", () => {
    const opened = openCgroupFs(join(tree.mountRoot, "none"), ROOT);
    expect(opened).toMatchObject({ ok: false, error: { code: "not_found", errno: "ENOENT" } });
  });

  test.each(["/../other", "/a/../../other", "..", "/./a", "/a\0", "relative", ""])(
    "refuses every access to the path %j",
    async (path) => {
      const place = { mount: "cpu", path, file: "cpu.shares" };
      expect(codeOf(await fs.write(place, "2"))).toBe("outside_root");
      expect(codeOf(fs.read(place))).toBe("outside_root");
      expect(codeOf(fs.mkdir(place))).toBe("outside_root");
      expect(codeOf(fs.rmdir(place))).toBe("outside_root");
      expect(codeOf(fs.list(place))).toBe("outside_root");
      expect(readFileSync(secret, "utf8")).toBe("1024\n");
    },
  );

  test.each(["..", "../..", "cpu/other", ".", "/etc", "cpu\0"])("refuses the mount %j", async (mount) => {
    expect(codeOf(await fs.write({ mount, path: "/", file: "cpu.shares" }, "2"))).toBe("outside_root");
    expect(codeOf(fs.list({ mount, path: "/" }))).toBe("outside_root");
  });

  test("follows no symbolic link: not as a directory, not in a path, not as a file", async () => {
    symlinkSync(join(tree.mountRoot, "cpu/other"), own("link"));
    mkdirSync(own("real"));
    symlinkSync(secret, own("real/cpu.shares"));
    const answers = [
      await fs.write({ mount: "cpu", path: "/link", file: "cpu.shares" }, "2"),
      fs.read({ mount: "cpu", path: "/link", file: "cpu.shares" }),
      fs.list({ mount: "cpu", path: "/link" }),
      fs.mkdir({ mount: "cpu", path: "/link/made" }),
      await fs.write({ mount: "cpu", path: "/real", file: "cpu.shares" }, "2"),
      fs.read({ mount: "cpu", path: "/real", file: "cpu.shares" }),
    ];
    expect(answers.map(codeOf)).toEqual(answers.map(() => "outside_root"));
    expect(readFileSync(secret, "utf8")).toBe("1024\n");
  });

  test("does not follow a root that is a symbolic link", () => {
    symlinkSync(join(tree.mountRoot, "cpu/other"), join(tree.mountRoot, "cpu/linked"));
    const door = openCgroupFs(tree.mountRoot, "/linked");
    expect(door.ok && codeOf(door.value.read({ mount: "cpu", path: "/", file: "cpu.shares" }))).toBe("outside_root");
  });
});

describe("access to cgroup files inside the root", () => {
  test.each([
    "release_agent",
    "notify_on_release",
    "cgroup.kill",
    "cgroup.procs",
    "cgroup.freeze",
    "tasks",
    "cpu.stat",
    "../cpu.shares",
    "cpu.shares/..",
    "memory.force_empty",
    "",
  ])("does not write %j", async (file) => {
    writeFileSync(own("release_agent"), "");
    expect(codeOf(await fs.write({ mount: "cpu", path: "/", file }, "1"))).toBe("bad_name");
  });

  test.each(["../../../etc/passwd", "/etc/passwd", "release_agent", "", "cpu.shares/../../x", "cpu."])(
    "does not read %j",
    (file) => expect(codeOf(fs.read({ mount: "cpu", path: "/", file }))).toBe("bad_name"),
  );

  test.each(["1\n2", "a\0", "x".repeat(4096), "ü"])("writes only one line of plain text, not %j", async (value) => {
    writeFileSync(own("cpu.shares"), "1024\n");
    expect(codeOf(await fs.write({ mount: "cpu", path: "/", file: "cpu.shares" }, value))).toBe("bad_value");
    expect(readFileSync(own("cpu.shares"), "utf8")).toBe("1024\n");
  });

  test("reads above the root only its ancestors", () => {
    expect(fs.readAbove("cpuset", "/", "cpuset.cpus")).toEqual({ ok: true, value: "0-1" });
    expect(codeOf(fs.readAbove("cpu", "/other", "cpu.shares"))).toBe("outside_root");
    expect(codeOf(fs.readAbove("cpu", ROOT, "cpu.shares"))).toBe("outside_root");
    expect(codeOf(fs.readAbove("cpu", "/", "release_agent"))).toBe("bad_name");
  });

  test("creates no file: a missing one is reported with path, file and errno", async () => {
    const written = await fs.write({ mount: "cpu", path: "/", file: "cpu.shares" }, "2");
    expect(written).toEqual({
      ok: false,
      error: {
        code: "not_found",
        message: "write / cpu.shares: tried `2`, got ENOENT",
        path: "/",
        file: "cpu.shares",
        value: "2",
        errno: "ENOENT",
        found: {},
      },
    });
  });

  test("reports system errors: an existing name, a missing parent, a busy directory", () => {
    expect(codeOf(fs.mkdir({ mount: "cpu", path: "/a" }))).toBe("ok");
    expect(codeOf(fs.mkdir({ mount: "cpu", path: "/a" }))).toBe("exists");
    expect(codeOf(fs.mkdir({ mount: "cpu", path: "/b/c" }))).toBe("not_found");
    expect(codeOf(fs.mkdir({ mount: "cpu", path: "/a/c" }))).toBe("ok");
    expect(codeOf(fs.rmdir({ mount: "cpu", path: "/a" }))).toBe("busy");
    expect(codeOf(fs.list({ mount: "cpu", path: "/b" }))).toBe("not_found");
  });

  test("distinguishes directories by their identity", () => {
    fs.mkdir({ mount: "cpu", path: "/a" });
    fs.mkdir({ mount: "cpu", path: "/b" });
    const [a, b] = [fs.identity({ mount: "cpu", path: "/a" }), fs.identity({ mount: "cpu", path: "/b" })];
    expect(a.ok && b.ok && a.value !== b.value).toBe(true);
  });
});

describe("read-only access to cgroup files", () => {
  const everything = (): string[] => readdirSync(tree.mountRoot, { recursive: true, encoding: "utf8" }).sort();

  test.each(["/", ROOT])("changes nothing in any call, with %j as its root", async (root) => {
    const door = openCgroupFs(tree.mountRoot, root, "read");
    if (!door.ok) throw new Error(door.error.message);
    writeFileSync(own("cpu.shares"), "1024\n");
    mkdirSync(own("empty"));
    const before = everything();
    for (const path of ["/", ROOT, "/other", "/empty", `${ROOT}/empty`, "/fresh"]) {
      expect(codeOf(await door.value.write({ mount: "cpu", path, file: "cpu.shares" }, "2"))).toBe("denied");
      expect(codeOf(door.value.mkdir({ mount: "cpu", path }))).toBe("denied");
      expect(codeOf(door.value.rmdir({ mount: "cpu", path }))).toBe("denied");
    }
    expect(everything()).toEqual(before);
    expect([secret, own("cpu.shares")].map((file) => readFileSync(file, "utf8"))).toEqual(["1024\n", "1024\n"]);
  });

  test("reads others' cgroups from the top, but no links or other files", () => {
    const door = openCgroupFs(tree.mountRoot, "/", "read");
    if (!door.ok) throw new Error(door.error.message);
    expect(door.value.read({ mount: "cpu", path: "/other", file: "cpu.shares" })).toEqual({ ok: true, value: "1024" });
    const listed = door.value.list({ mount: "cpu", path: "/" });
    expect(listed.ok && listed.value.dirs).toEqual([ROOT.slice(1), "other"].sort());
    expect(door.value.readAbove("cpuset", "/", "cpuset.cpus")).toEqual({ ok: true, value: "0-1" });
    expect(codeOf(door.value.read({ mount: "cpu", path: "/other", file: "release_agent" }))).toBe("bad_name");
    expect(codeOf(door.value.read({ mount: "cpu", path: "/../other", file: "cpu.shares" }))).toBe("outside_root");
    symlinkSync("/etc", join(tree.mountRoot, "cpu/linked"));
    expect(codeOf(door.value.list({ mount: "cpu", path: "/linked" }))).toBe("outside_root");
  });
});
