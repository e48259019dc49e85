import { describe, expect, test } from "vitest";
import { countCpus, formatCpuSet, parseCpuSet } from "../../api/model/cpu-set.ts";

describe("a CPU list", () => {
  test.each([
    ["", []],
    ["0", [0]],
    ["0-3,8", [0, 1, 2, 3, 8]],
    ["8,0-3", [0, 1, 2, 3, 8]],
    ["1,1,1-2", [1, 2]],
    ["3-3", [3]],
    ["00,01", [0, 1]],
  ])("`%s` holds %j", (text, cpus) => expect(parseCpuSet(text)).toEqual(cpus));
  test.each([" 0", "0 ", "0,", ",0", "0-", "-1", "3-1", "a", "0--1", "0-1-2", "0;1", "65536", "0-65536", "9999999"])(
    "`%s` is refused",
    (text) => {
      expect(parseCpuSet(text)).toBeUndefined();
      expect(countCpus(text)).toBeUndefined();
    },
  );
  test("of any set of ten CPUs is written in its shortest form and parsed back", () => {
    for (let bits = 0; bits < 1024; bits++) {
      const cpus = Array.from({ length: 10 }, (_, cpu) => cpu).filter((cpu) => (bits >> cpu) & 1);
      const text = formatCpuSet(cpus);
      expect(parseCpuSet(text), text).toEqual(cpus);
      expect(countCpus(text)).toBe(cpus.length);
      const runs = cpus.filter((cpu) => !cpus.includes(cpu - 1)).length;
      expect(text === "" ? 0 : text.split(",").length, text).toBe(runs);
    }
  });
  test("counts the CPUs of the largest machine", () => expect(countCpus("0-4095")).toBe(4096));
});
