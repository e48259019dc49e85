import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FEATURE_GATES, isGateOn } from "../../../api/decide/gate-table.ts";
import { FIELD_TYPES } from "../../../api/decide/lint/field-types.ts";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";
import { KUBELET_CONFIGURATION_FIELDS, NESTED_FIELDS } from "../../../api/model/kubelet-configuration-fields.ts";

describe("the tables of the lint", () => {
  test("every field of the kubelet has its type, and no other", () => {
    const own = [...FIELD_TYPES.keys()].filter((path) => !path.includes("."));
    const known = KUBELET_CONFIGURATION_FIELDS.filter((name) => name !== "apiVersion" && name !== "kind");
    expect(own.sort()).toEqual([...known].sort());
    for (const path of FIELD_TYPES.keys()) {
      const above = path.split(".").slice(0, -1).join(".");
      if (above !== "") expect(NESTED_FIELDS.get(above), path).toContain(path.split(".").at(-1));
    }
  });

  test("a gate that is not named follows AllAlpha and AllBeta, whichever it is, then its default", () => {
    expect(isGateOn({}, "MemoryQoS")).toBe(false);
    expect(isGateOn({ AllAlpha: true }, "MemoryQoS")).toBe(true);
    expect(isGateOn({ AllAlpha: true, MemoryQoS: false }, "MemoryQoS")).toBe(false);
    expect(isGateOn({ AllBeta: false }, "PodLevelResources")).toBe(false);
    // deprecated, so neither of both
    expect(isGateOn({ AllBeta: false, AllAlpha: false }, "DisableCPUQuotaWithExclusiveCPUs")).toBe(true);
  });
  test("what a gate wants is a gate, and the defaults want nothing that is off", () => {
    expect(FEATURE_GATES.size).toBeGreaterThan(200);
    for (const { wants } of FEATURE_GATES.values())
      for (const name of wants) expect(FEATURE_GATES.has(name)).toBe(true);
    const isOn = (gate: string): boolean => isGateOn({}, gate);
    for (const [name, { wants }] of FEATURE_GATES)
      if (isOn(name)) expect([name, wants.every(isOn)]).toEqual([name, true]);
  });
});

test("a kubelet that runs is not told that it does not start", () => {
  const file = join(import.meta.dirname, "../../data/real-node/configz.json");
  const found = lintConfiguration(JSON.parse(readFileSync(file, "utf8")));
  expect(found.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
    "warning eviction-defaults-dropped",
    "note reserve-not-enforced",
    "note reserved-cpu-rounded",
    "note reserve-not-enforced",
  ]);
});
