import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newRecord } from "../../../actuator/lifecycle/pod-state.ts";
import { PodRecords } from "../../../actuator/pods/records/records.ts";
import { runnable } from "../../kit/runnable-pods.ts";
import { scratch } from "./scratch.ts";

const record = newRecord(runnable(), 5);
function open(directory: string) {
  const messages: string[] = [];
  const opened = PodRecords.open(directory, (message) => messages.push(message));
  if (!opened.ok) throw new Error(opened.error);
  return { records: opened.value, messages };
}

test("persisted records survive a restart; records in memory and deleted records do not", () => {
  const directory = scratch();
  const { records } = open(directory);
  expect(records.persist("uid-1", record).ok).toBe(true);
  expect(records.persist("../odd", { ...record, seenAtMs: 6 }).ok).toBe(true);
  records.persist("uid-2", record, "memory");
  expect(records.size).toBe(3);
  const again = open(directory);
  expect([...again.records.entries()].sort()).toEqual([
    ["../odd", { ...record, seenAtMs: 6 }],
    ["uid-1", record],
  ]);
  expect(again.records.delete("uid-1").ok).toBe(true);
  expect(again.records.delete("uid-1").ok).toBe(true);
  expect(open(directory).records.get("uid-1")).toBeUndefined();
});

test("an unreadable or misnamed record is reported and ignored; an unfinished one is removed", () => {
  const directory = scratch();
  writeFileSync(join(directory, "uid-1.pod.json"), "{");
  writeFileSync(join(directory, "uid-2.pod.json"), JSON.stringify({ uid: "uid-3", record }));
  writeFileSync(join(directory, "uid-4.pod.json.new"), "{");
  const { records, messages } = open(directory);
  expect(records.size).toBe(0);
  expect(messages).toHaveLength(2);
  expect(readdirSync(directory).sort()).toEqual(["uid-1.pod.json", "uid-2.pod.json"]);
});

test.each([
  ["waits", "pending"],
  ["lives", "active"],
  ["ends", "terminating"],
  ["ended", "terminated"],
] as const)("the state is `%s` on disk, as former versions read and wrote it", (word, state) => {
  const directory = scratch();
  const file = join(directory, "uid-1.pod.json");
  writeFileSync(file, JSON.stringify({ uid: "uid-1", record: { ...record, state: word } }));
  const { records, messages } = open(directory);
  expect([records.get("uid-1"), messages]).toEqual([{ ...record, state }, []]);
  expect(records.persist("uid-1", { ...record, state, seenAtMs: 7 }).ok).toBe(true);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
    uid: "uid-1",
    record: { ...record, state: word, seenAtMs: 7 },
  });
  writeFileSync(file, JSON.stringify({ uid: "uid-1", record: { ...record, state } }));
  expect(open(directory).records.get("uid-1")?.state).toBe(state);
});

test("a record with an unknown state is reported and ignored", () => {
  const directory = scratch();
  writeFileSync(join(directory, "uid-1.pod.json"), JSON.stringify({ uid: "uid-1", record: { ...record, state: "x" } }));
  const { records, messages } = open(directory);
  expect([records.size, messages.length]).toEqual([0, 1]);
});

test("a record that becomes active and cannot be written stays as it was", () => {
  const directory = scratch();
  const { records } = open(directory);
  records.persist("uid-1", record);
  mkdirSync(join(directory, "uid-1.pod.json.new"));
  expect(records.persist("uid-1", { ...record, state: "active" }).ok).toBe(false);
  expect(records.get("uid-1")?.state).toBe("pending");
  expect(existsSync(join(directory, "uid-1.pod.json"))).toBe(true);
});

test.each(["terminating", "terminated", "pending"] as const)(
  "a record that becomes %s holds although it cannot be written, and is written later",
  (state) => {
    const directory = scratch();
    const { records } = open(directory);
    records.persist("uid-1", { ...record, state: "active" });
    const inTheWay = join(directory, "uid-1.pod.json.new");
    mkdirSync(inTheWay);
    expect(records.persist("uid-1", { ...record, state }).ok).toBe(true);
    expect(records.get("uid-1")?.state).toBe(state);
    expect(records.writeLate()).toEqual([
      "the record of pod uid-1 cannot be written yet (EISDIR): it is ended all the same",
    ]);
    expect(JSON.parse(readFileSync(join(directory, "uid-1.pod.json"), "utf8"))).toMatchObject({
      record: { state: "lives" },
    });
    rmdirSync(inTheWay);
    expect(records.writeLate()).toEqual([]);
    expect(open(directory).records.get("uid-1")?.state).toBe(state);
  },
);

test("a record deleted before it could be written is not written later", () => {
  const directory = scratch();
  const { records } = open(directory);
  mkdirSync(join(directory, "uid-1.pod.json.new"));
  records.persist("uid-1", { ...record, state: "terminating" });
  expect(records.delete("uid-1").ok).toBe(true);
  rmdirSync(join(directory, "uid-1.pod.json.new"));
  expect(records.writeLate()).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
});
