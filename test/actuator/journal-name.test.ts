import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { Journal, journalFile } from "../../actuator/apply/journal.ts";
import { scratch } from "./manifests/scratch.ts";

const BEGUN = { planId: "p", decisionId: "d", bootId: "boot", version: 1, pageSize: 4096, steps: [] } as const;
function opened(stateDir: string, cgroupRoot: string, mode: "enforce" | "observe" = "enforce"): Journal {
  const file = journalFile({ stateDir, cgroupRoot, mode });
  if (!file.ok) throw new Error(file.error.message);
  const journal = Journal.open(file.value, "boot");
  if (!journal.ok) throw new Error(journal.error.message);
  return journal.value;
}
const nameOf = (cgroupRoot: string): string => {
  const file = journalFile({ stateDir: "/nowhere", cgroupRoot, mode: "enforce" });
  return file.ok ? basename(file.value) : file.error.message;
};

test("different cgroup roots have different journal names", () => {
  expect(["/r/x", "/r-x", "/r", "/"].map(nameOf)).toEqual([
    "journal+r+x.jsonl",
    "journal+r-x.jsonl",
    "journal+r.jsonl",
    "journal+.jsonl",
  ]);
});

describe("a journal under the name of an earlier version", () => {
  const earlier = (root: string): string => {
    const stateDir = scratch({ "journal-r-x.jsonl": "" });
    const journal = Journal.open(join(stateDir, "journal-r-x.jsonl"), "boot");
    expect(journal.ok && journal.value.begin({ ...BEGUN, root }).ok).toBe(true);
    return stateDir;
  };

  test("is taken over by the root of its unclosed plan", () => {
    const stateDir = earlier("/r/x");
    expect(opened(stateDir, "/r/x").unclosed?.root).toBe("/r/x");
    expect(existsSync(join(stateDir, "journal-r-x.jsonl"))).toBe(false);
    expect(opened(stateDir, "/r/x").unclosed?.root).toBe("/r/x");
  });
  test("is left to the other root with the same old name", () => {
    const stateDir = earlier("/r/x");
    expect(opened(stateDir, "/r-x").unclosed).toBeNull();
    expect(opened(stateDir, "/r/x").unclosed?.root).toBe("/r/x");
  });
  test("is read in place by an observer", () => {
    const stateDir = earlier("/r-x");
    expect(opened(stateDir, "/r-x", "observe").unclosed?.root).toBe("/r-x");
    expect(existsSync(join(stateDir, "journal-r-x.jsonl"))).toBe(true);
  });
});
