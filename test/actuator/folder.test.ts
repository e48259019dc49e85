import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Journal } from "../../actuator/apply/journal.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import { ownFolder } from "../../actuator/core/record-file.ts";
import { openState } from "../../actuator/daemon/own-state.ts";
import { makeFolder } from "../../api/base/make-folder.ts";
import { scratch } from "./manifests/scratch.ts";

// Node's own recursive mkdir never returns for this path
describe.runIf(existsSync("/proc/self"))("where the system cannot create a directory", () => {
  const NOWHERE = "/proc/nodewise-test/deep";

  test("opening the state fails with the state directory's name", async () => {
    const config = { stateDir: NOWHERE, cgroupRoot: "/nodewise-test", mode: "observe" } as const;
    const opened = await openState({ config, onRecovery() {} }, null, "boot");
    expect(opened.ok ? "" : opened.error).toMatch(/^state directory \/proc\/nodewise-test\/deep: ENOENT.*--state-dir$/);
  });
  test("opening an outbox or a journal fails", () => {
    expect(() => Outbox.open(join(NOWHERE, "outbox.jsonl"))).toThrow(/ENOENT/);
    const journal = Journal.open(join(NOWHERE, "journal.jsonl"), "boot");
    expect(journal.ok ? "" : journal.error.message).toMatch(/ENOENT; nothing is changed without it/);
  });
});

test("ownFolder creates every level for its user only, and leaves existing ones as they are", () => {
  const top = scratch({});
  ownFolder(join(top, "a/b"));
  ownFolder(join(top, "a/b"));
  for (const path of ["a", "a/b"]) expect(statSync(join(top, path)).mode & 0o777).toBe(0o700);
});

test("makeFolder accepts a level that another process creates at the same moment", () => {
  const there = new Set(["/"]);
  const disk = {
    exists: (path: string) => there.has(path),
    parentOf: () => "/",
    make: (path: string) => {
      there.add(path);
      throw new Error("EEXIST");
    },
  };
  expect(() => makeFolder("/a", disk)).not.toThrow();
  expect(() => makeFolder("/b", { ...disk, make: () => expect.fail("EACCES") })).toThrow("EACCES");
});
