import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ManagerFiles } from "../../../actuator/pods/manager-files.ts";
import { scratch } from "./pod-kit.ts";

const next = (text: string) => ({ assignments: { cpu_manager_state: text, "../other": "x" } });

test("what a decision hands on is on the disk, once, and read again at the next start", () => {
  const directory = join(scratch(), "managers");
  const files = new ManagerFiles(directory);
  expect(files.read().assignments).toBeUndefined();
  expect(files.keep(null)).toEqual({ ok: true, value: false });
  expect(files.keep(next("one"))).toEqual({ ok: true, value: true });
  expect(files.keep(next("one"))).toEqual({ ok: true, value: false });
  expect(files.version).toBe(2);
  expect(readFileSync(join(directory, "cpu_manager_state"), "utf8")).toBe("one");
  expect(new ManagerFiles(directory).read().assignments).toEqual({ cpu_manager_state: "one" });
});

test("what cannot be written is not taken for kept", () => {
  const directory = scratch();
  const files = new ManagerFiles(directory);
  files.keep(next("one"));
  mkdirSync(join(directory, "cpu_manager_state.new"));
  expect(files.keep(next("two")).ok).toBe(false);
  expect(files.read().assignments).toEqual({ cpu_manager_state: "one" });
  expect(files.version).toBe(2);
});
