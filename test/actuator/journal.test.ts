import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { Journal } from "../../actuator/apply/journal.ts";
import type { StepResult } from "../../actuator/apply/steps.ts";
import type { WriteStep } from "../../actuator/plan/step.ts";
import { scratchFolder } from "../kit/scratch.ts";

const BOOT = "boot-1";
let directory: string;
let file: string;
beforeEach(() => {
  directory = scratchFolder();
  file = join(directory, "state/journal");
});

function open(bootId = BOOT): Journal {
  const journal = Journal.open(file, bootId);
  if (!journal.ok) throw new Error(journal.error.message);
  return journal.value;
}

const step = (path: string, to: string): WriteStep => ({
  id: 0,
  op: "write",
  path,
  file: "cpu.shares",
  from: "2",
  to,
  why: "set",
  identity: "7",
  group: null,
  needs: [],
});
const applied = (path: string, to: string): StepResult => ({
  step: step(path, to),
  status: "applied",
  code: null,
  errno: null,
  before: "2",
  readBack: to,
  message: "",
});
const begin = (journal: Journal, planId: string, steps: readonly WriteStep[], bootId = BOOT) =>
  journal.begin({ planId, decisionId: `decision-${planId}`, bootId, root: "/r", version: 1, pageSize: 4096, steps });

describe("the journal", () => {
  test("is readable by its owner only, with its directory, even if its mode was wider before", () => {
    open();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(file, "..")).mode & 0o777).toBe(0o700);
    chmodSync(file, 0o644);
    open();
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("has a plan on disk when begin returns, and still after a restart until it is ended", () => {
    const journal = open();
    expect(begin(journal, "p1", [step("/a", "5")]).ok).toBe(true);
    expect(open().unclosed).toMatchObject({ planId: "p1", steps: [{ path: "/a", from: "2", to: "5" }] });
    expect(journal.end("p1", [applied("/a", "5")]).ok).toBe(true);
    expect(open().unclosed).toBeNull();
  });

  test("refuses a second plan while one is unclosed", () => {
    const journal = open();
    begin(journal, "p1", []);
    expect(begin(journal, "p2", [])).toMatchObject({ ok: false, error: { code: "plan_unclosed" } });
    journal.discard("p1", "undone");
    expect(begin(journal, "p2", []).ok).toBe(true);
  });

  test("remembers the last value of each file with its decision, across restarts, but not across boots", () => {
    const journal = open();
    begin(journal, "p1", []);
    journal.end("p1", [applied("/a", "5"), applied("/b", "6"), { ...applied("/c", "7"), status: "failed" }]);
    begin(journal, "p2", []);
    journal.end("p2", [applied("/a", "8")]);
    for (const one of [journal, open()]) {
      expect(one.written("/a", "cpu.shares")).toMatchObject({ value: "8", decisionId: "decision-p2" });
      expect(one.written("/b", "cpu.shares")).toMatchObject({ value: "6", decisionId: "decision-p1" });
      expect(one.written("/c", "cpu.shares")).toBeNull();
    }
    expect(open("boot-2").written("/a", "cpu.shares")).toBeNull();
  });

  test("forgets the files of a cgroup that was removed", () => {
    const journal = open();
    begin(journal, "p1", []);
    journal.end("p1", [applied("/a", "5"), applied("/ab", "6")]);
    begin(journal, "p2", []);
    const removed = {
      ...applied("/a", ""),
      step: { id: 0, op: "rmdir", path: "/a", why: "orphan", identities: {}, needs: [] },
    } as const;
    journal.end("p2", [removed]);
    expect(open().written("/a", "cpu.shares")).toBeNull();
    expect(open().written("/ab", "cpu.shares")?.value).toBe("6");
  });

  test("keeps the value read back, not the value requested", () => {
    const journal = open();
    begin(journal, "p1", []);
    journal.end("p1", [{ ...applied("/a", "1000001"), readBack: "999424" }]);
    expect(journal.written("/a", "cpu.shares")?.value).toBe("999424");
  });
});

describe("the journal's file", () => {
  test.each([1, 10, 40, 80])(
    "drops a last line cut off by a crash, and continues behind it (%i bytes short)",
    (missing) => {
      const journal = open();
      begin(journal, "p1", [step("/a", "5")]);
      const whole = readFileSync(file);
      begin(open(), "x", []);
      journal.end("p1", [applied("/a", "5")]);
      const torn = readFileSync(file);
      writeFileSync(file, torn.subarray(0, torn.length - missing));
      const reopened = open();
      expect(reopened.unclosed?.planId).toBe("p1");
      expect(readFileSync(file)).toEqual(whole);
      reopened.discard("p1", "undone");
      expect(begin(reopened, "p2", []).ok).toBe(true);
      expect(open().unclosed?.planId).toBe("p2");
    },
  );

  test("ignores lines that are no records, and counts them", () => {
    const journal = open();
    begin(journal, "p1", [step("/a", "5")]);
    const odd = [
      "not json",
      "[]",
      '{"type":"begin"}',
      '{"type":"begin","planId":"x","steps":[{"op":"write"}]}',
      '{"type":"what"}',
      "null",
    ];
    appendFileSync(file, `${odd.join("\n")}\n`);
    const reopened = open();
    expect(reopened.damaged).toBe(odd.length);
    expect(reopened.unclosed?.planId).toBe("p1");
  });

  test("is compacted to the values in force, and stays below twice its size limit", () => {
    let journal = open();
    const steps = Array.from({ length: 200 }, (_, i) => step(`/pod${i}/${"x".repeat(80)}`, "5"));
    for (let i = 0; i < 60; i++) {
      begin(journal, `p${i}`, steps);
      journal.end(
        `p${i}`,
        steps.slice(0, 3).map((s) => applied(s.path, String(i))),
      );
      if (i % 20 === 19) journal = open();
    }
    const size = statSync(file).size;
    expect(size).toBeGreaterThan(100);
    expect(size).toBeLessThan(2 * 2 ** 20);
    expect(open().written(steps[0]?.path ?? "", "cpu.shares")).toMatchObject({
      value: "59",
      decisionId: "decision-p59",
    });
    expect(open().damaged).toBe(0);
  });

  test("is not read through a link, which is an error", () => {
    mkdirSync(join(directory, "state"));
    const elsewhere = join(directory, "elsewhere");
    writeFileSync(elsewhere, "");
    symlinkSync(elsewhere, file);
    expect(Journal.open(file, BOOT)).toMatchObject({
      ok: false,
      error: { code: "journal_unreadable", message: expect.stringContaining("ELOOP") },
    });
  });

  test("gives an error, not a crash, when it cannot be written", () => {
    const journal = open();
    rmSync(file);
    mkdirSync(file);
    expect(begin(journal, "p1", [])).toMatchObject({
      ok: false,
      error: { code: "journal_unwritable", message: `journal ${file}: EISDIR; nothing is changed without it` },
    });
  });

  test("reports the consequence for a plan whose end cannot be written", () => {
    const journal = open();
    expect(begin(journal, "p1", []).ok).toBe(true);
    rmSync(file);
    mkdirSync(file);
    const effect = "the next start takes its plan for one that was interrupted, and undoes it";
    expect(journal.end("p1", [])).toMatchObject({
      ok: false,
      error: { message: `journal ${file}: EISDIR; ${effect}` },
    });
    expect(journal.unclosed?.planId).toBe("p1");
  });
});
