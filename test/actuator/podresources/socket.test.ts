import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { servePodResources } from "../../../actuator/podresources/server.ts";
import { ok } from "../../../api/base/result.ts";
import { clientOf, FULL, scratch, serving } from "./served.ts";

/**
 * Leaves a dead socket file at `path`. Closing a server removes only the name that it has bound, so the socket is bound
 * under another name and renamed.
 */
async function leaveDead(path: string): Promise<void> {
  const bound = `${path}.dead`;
  const dead = createServer().listen(bound);
  await new Promise((done) => dead.once("listening", done));
  renameSync(bound, path);
  await new Promise((done) => dead.close(done));
}

describe("the socket", () => {
  const refusal = async (directory: string): Promise<string> => {
    const served = await servePodResources({ directory, source: () => ok(FULL) });
    if (served.ok) throw new Error("it serves");
    return served.error;
  };

  test("is made in a directory for its user and group", async () => {
    const directory = join(scratch(), "kubelet/pod-resources");
    const { path } = await serving({ directory });
    expect(path).toBe(join(directory, "kubelet.sock"));
    expect(statSync(directory).mode & 0o777).toBe(0o750 & ~process.umask());
    expect(readdirSync(directory)).toEqual(["kubelet.sock"]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test.each(["nothing", "a dead socket"])(
    "belongs to exactly one of several servers that start at once over %s",
    async (before) => {
      const directory = scratch();
      const path = join(directory, "kubelet.sock");
      if (before === "a dead socket") await leaveDead(path);
      const begun = await Promise.all(
        Array.from({ length: 4 }, () => servePodResources({ directory, source: () => ok(FULL) })),
      );
      for (const one of begun) if (one.ok) onTestFinished(one.value.close);
      expect(begun.filter((one) => one.ok)).toHaveLength(1);
      expect(readdirSync(directory)).toEqual(["kubelet.sock"]);
      expect(await clientOf(path)("List")).toHaveProperty("ok");
    },
  );

  test("replaces one on which no process listens any more", async () => {
    const directory = scratch();
    const path = join(directory, "kubelet.sock");
    await leaveDead(path);
    expect(lstatSync(path).isSocket()).toBe(true);
    await serving({ directory });
    expect(await clientOf(path)("List")).toHaveProperty("ok");
  });

  test("is refused where another process answers on it", async () => {
    const directory = scratch();
    const { path } = await serving({ directory });
    const before = lstatSync(path).ino;
    expect(await refusal(directory)).toBe(
      `${path}: another process answers there, such as a kubelet: end it, or choose another directory`,
    );
    expect(lstatSync(path).ino).toBe(before);
    expect(await clientOf(path)("List")).toHaveProperty("ok");
  });

  test.each([
    ["a file", (path: string) => writeFileSync(path, "kept")],
    ["a directory", (path: string) => mkdirSync(path)],
    ["a link", (path: string) => symlinkSync("/nowhere/kubelet.sock", path)],
  ])("does not replace %s", async (_, put) => {
    const directory = scratch();
    const path = join(directory, "kubelet.sock");
    put(path);
    expect(await refusal(directory)).toBe(
      `${path} is no socket and is left alone: remove it, or choose another directory`,
    );
    expect(lstatSync(path).isSocket()).toBe(false);
  });

  test("is refused where the parent is not a directory, and for a path that is too long", async () => {
    const directory = scratch();
    writeFileSync(join(directory, "file"), "");
    expect(await refusal(join(directory, "file"))).toMatch(/kubelet\.sock: .*ENOTDIR/);
    const long = join(directory, "x".repeat(100));
    expect(await refusal(long)).toMatch(/a socket's path has at most 107 bytes, this has \d+$/);
    expect(existsSync(long)).toBe(false);
  });

  test("is refused where its directory cannot be created", async () => {
    expect(await refusal("/proc/none/pod-resources")).toMatch(/^\/proc\/none\/pod-resources\/kubelet\.sock: ENOENT/);
  });

  test("of another process that took the path meanwhile is not removed on close", async () => {
    const directory = scratch();
    const first = await serving({ directory });
    rmSync(first.path);
    await serving({ directory });
    await first.close();
    expect(await clientOf(first.path)("List")).toHaveProperty("ok");
  });
});
