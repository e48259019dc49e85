import { expect, test } from "vitest";
import { LIMITS } from "../../api/base/limits.ts";
import { decodeImageGcFacts, imageGcFacts } from "../../api/model/image-gc.ts";

const facts = (records: unknown): Record<string, unknown> => ({
  atMs: 2,
  beganAtMs: 1,
  failed: false,
  records,
  removed: [],
});
const WHOLE = ["sha256:a", 1, null];

test.each([
  [WHOLE],
  [["sha256:a", 1, 2, "runsc", "other"]],
  [["sha256:a", 8.64e15, 0]],
  [["", 1, 2]],
  [["sha256:a", 1]],
  [["sha256:a", 1, undefined]],
  [["sha256:a", null, 1]],
  [["sha256:a", -1, 1]],
  [["sha256:a", 1.5, 1]],
  [["sha256:a", 8.64e15 + 2, 1]],
  [["sha256:a", 1, Number.NaN]],
  [["sha256:a", 1, "2"]],
  [["sha256:a", 1, 2, 3]],
  [["x".repeat(LIMITS.textLength + 1), 1, 2]],
  [[7, 1, 2]],
  [{ 0: "sha256:a", 1: 1, 2: 2, length: 3 }],
  ["sha256:a"],
  [null],
])("the fast check of an image record agrees with the schema: %j", (record) => {
  const posted = facts([WHOLE, record]);
  const parsed = imageGcFacts.safeParse(posted);
  const decoded = decodeImageGcFacts(posted);
  expect(decoded.ok).toBe(parsed.success);
  if (decoded.ok) expect(decoded.value).toEqual(parsed.data);
  else expect(decoded.error[0]?.path).toMatch(/^facts\["image-gc"\]\.records\[1\]/);
});

test("too many image records, and faults beside valid ones, are refused with their paths", () => {
  const many = decodeImageGcFacts(facts(Array.from({ length: LIMITS.images + 1 }, () => WHOLE)), "facts");
  expect(many).toMatchObject({ ok: false, error: [{ path: "facts.records" }] });
  const beside = decodeImageGcFacts({ ...facts([WHOLE]), failed: "no" }, "facts");
  expect(beside).toMatchObject({ ok: false, error: [{ path: "facts.failed" }] });
  expect(decodeImageGcFacts(facts({}), "facts")).toMatchObject({ ok: false, error: [{ path: "facts.records" }] });
  expect(decodeImageGcFacts(null)).toEqual({ ok: true, value: undefined });
});
