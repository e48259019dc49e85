import { expect, test } from "vitest";
import { ok } from "../../api/base/result.ts";
import { decisionNamed, notFoundText } from "../../api/service/decision-named.ts";
import type { DecisionRow } from "../../db/rows.ts";

const rows = ["abcdef0123", "abcdef0124"].map(
  (digits, i) => ({ id: digits.padEnd(32, "0"), node: `n${i}` }) as DecisionRow,
);
const store = {
  getDecision: async (id: string) => ok(rows.find((row) => row.id === id) ?? null),
  decisionsBeginning: async (digits: string) => ok(rows.filter(({ id }) => id.startsWith(digits))),
};
const named = async (id: string, isSeen?: (node: string) => boolean) => {
  const found = await decisionNamed(store, id, isSeen);
  if (!found.ok) throw new Error(found.error.message);
  return found.value.row?.id ?? notFoundText(id, "ids" in found.value ? found.value.ids : []);
};

test("a decision is found by its id, or by a unique prefix of it", async () => {
  expect(await named("abcdef0124")).toBe(rows[1]?.id);
  expect(await named("abcdef012")).toBe(
    `several decisions begin with \`abcdef012\`: ${rows.map(({ id }) => id).join(", ")}; give more of the id`,
  );
  expect(await named("abcdef0")).toBe("there is no decision `abcdef0`");
  expect(await named("abcdef09")).toBe("there is no decision `abcdef09`");
});

test("decisions of nodes that the caller may not see are not found, and do not make a prefix ambiguous", async () => {
  expect(await named("abcdef012", (node) => node === "n1")).toBe(rows[1]?.id);
  expect(await named("abcdef0124", (node) => node === "n0")).toBe("there is no decision `abcdef0124`");
  expect(await named(rows[1]?.id ?? "", (node) => node === "n0")).toBe(`there is no decision \`${rows[1]?.id}\``);
});
