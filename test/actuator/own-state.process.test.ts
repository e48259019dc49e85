import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { unwritable } from "../../actuator/core/record-file.ts";
import { StateFileCheck } from "../../actuator/daemon/own-state.ts";
import { answer } from "../../actuator/status/server.ts";
import { smallFileSystem } from "../e2e/containerd/small-file-system.ts";
import { nodeStatus } from "../kit/node-status.ts";
import { scratch } from "./manifests/scratch.ts";

test("writable files and directories are no fault, and the check leaves nothing behind", () => {
  const dir = scratch({ "journal.jsonl": "" });
  expect(unwritable([dir], [join(dir, "journal.jsonl"), join(dir, "none-yet.jsonl")])).toEqual([]);
  expect(readdirSync(dir)).toEqual(["journal.jsonl"]);
});

test("what keeps a file or directory from being written is reported with its path", () => {
  const dir = scratch({ records: "no directory" });
  mkdirSync(join(dir, "journal.jsonl"));
  expect(unwritable([join(dir, "records"), join(dir, "gone")], [join(dir, "journal.jsonl")])).toEqual([
    expect.stringMatching(`^${join(dir, "records")}: ENOTDIR: `),
    expect.stringMatching(`^${join(dir, "gone")}: ENOENT: `),
    expect.stringMatching(`^${join(dir, "journal.jsonl")}: EISDIR: `),
  ]);
});

test("all paths that fail for one cause are one problem, with their number", () => {
  const dir = scratch({ state: "no directory" });
  const state = join(dir, "state");
  const look = new StateFileCheck([state, join(state, "pods")], { file: join(state, "journal.jsonl") });
  expect(look.faults()).toHaveLength(3);
  expect(look.problems()).toEqual([
    {
      from: "state",
      message: expect.stringMatching(
        `^${state}: ENOTDIR: .* \\(/readyz names 2 more of its files and directories\\): .*the daemon is not ready`,
      ),
    },
  ]);
  expect(new StateFileCheck([dir], null).problems()).toEqual([]);
});

const mayMount = process.getuid?.() === 0 && spawnSync("unshare", ["-m", "true"]).status === 0;
describe.skipIf(!mayMount)("a state directory on a disk of its own (needs root that may mount)", () => {
  test("is a fault while the disk is full", () => {
    const disk = smallFileSystem(64 * 1024);
    onTestFinished(() => disk.release());
    const filler = join(disk.path, "filler");
    expect(unwritable([disk.path], [])).toEqual([]);
    expect(() => writeFileSync(filler, Buffer.alloc(1 << 20))).toThrow(/ENOSPC/);
    expect(unwritable([disk.path], [])).toEqual([expect.stringMatching(/: ENOSPC: /)]);
    expect(readdirSync(disk.path)).toEqual(["filler"]);
    rmSync(filler);
    expect(unwritable([disk.path], [])).toEqual([]);
  });
});

test("a daemon whose state files cannot be written is not ready, and says which", async () => {
  const sources = (unwritable: readonly string[]) => ({
    status: () => nodeStatus({ unwritable }),
    metrics: { render: async () => ({ type: "", text: "" }) },
  });
  expect(await answer("/readyz", sources([]))).toMatchObject({ status: 200 });
  const { status, text } = await answer(
    "/readyz",
    sources(["/s/journal.jsonl: ENOSPC: no space left on device, write"]),
  );
  expect([status, JSON.parse(text)]).toEqual([
    503,
    {
      ready: false,
      reasons: ["its own files cannot be written: /s/journal.jsonl: ENOSPC: no space left on device, write"],
    },
  ]);
});
