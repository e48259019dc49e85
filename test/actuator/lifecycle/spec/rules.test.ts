import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { RULES } from "../../../../actuator/lifecycle/spec/rules.ts";

/** JSON names of the fields of Kubernetes 1.36's Go types, from its core/v1/types.go and meta/v1/types.go. */
const FIELDS: Readonly<Record<string, readonly string[]>> = JSON.parse(
  readFileSync(new URL("../../../data/v1-pod-fields.json", import.meta.url), "utf8"),
);

test("every field of v1 is done, accepted or refused, and no other is known", () => {
  expect(Object.keys(RULES).sort()).toEqual(Object.keys(FIELDS).sort());
  for (const [type, rules] of Object.entries(RULES)) {
    expect(Object.keys(rules).sort(), type).toEqual([...(FIELDS[type] ?? [])].sort());
  }
});

test("who accepts a field says why nothing is done, and who refuses one what to do", () => {
  const rules = Object.values(RULES).flatMap((type) => Object.values(type));
  expect(rules.filter((r) => r.kind === "accepted").length).toBeGreaterThan(20);
  for (const rule of rules) {
    if (rule.kind === "accepted") expect(rule.why.length).toBeGreaterThan(10);
    if (rule.kind === "refused") expect(rule.advice).toMatch(/remove|use |write |set |leave|mount|clone|copy/);
  }
});
