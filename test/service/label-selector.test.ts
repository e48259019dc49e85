import { describe, expect, test } from "vitest";
import { parseLabelSelector, selects } from "../../api/service/label-selector.ts";

const LABELS = {
  pool: "web",
  "topology.kubernetes.io/zone": "a-1",
  gpus: "4",
  empty: "",
  old: "-3",
};

/** The answers of Kubernetes' own `labels.Parse` and `Matches` (apimachinery 0.36.3). */
const MATCHES: readonly (readonly [selector: string, matches: boolean])[] = [
  ["", true],
  ["pool=web", true],
  ["pool==web", true],
  ["pool = web , gpus=4", true],
  ["pool=db", false],
  ["pool!=db", true],
  ["pool!=web", false],
  ["absent!=x", true],
  ["pool in (web,db)", true],
  ["pool in(db , web)", true],
  ["pool in (db)", false],
  ["pool notin (db)", true],
  ["pool notin (web)", false],
  ["absent notin (web)", true],
  ["absent in (web)", false],
  ["empty=", true],
  ["empty in ()", true],
  ["pool=", false],
  ["pool", true],
  ["!pool", false],
  ["absent", false],
  ["! absent", true],
  ["topology.kubernetes.io/zone in (a-1,a-2),pool=web,!absent", true],
  ["gpus>3", true],
  ["gpus > 4", false],
  ["gpus<5", true],
  ["old<0", true],
  ["pool>1", false],
  ["absent>1", false],
];
const REFUSED = [
  ...["=b", "a=b=c", "a b", "a in b", "a in (b", "a in (b))", "a in (b) c", "(a)", "!a=b", "a!", "a,", ",a", "a,,b"],
  ...[
    "a = = b",
    "a>x",
    "a>-3",
    "a=(b)",
    "a=x y",
    "-x=1",
    "a/b/c=1",
    "a/=1",
    "/a=1",
    "ä=1",
    "a~b",
    `${"x".repeat(64)}=1`,
  ],
];

describe("a label selector", () => {
  test.each(MATCHES)("`%s` selects the example node: %s", (selector, matches) => {
    const parsed = parseLabelSelector(selector);
    expect(parsed.ok && selects(parsed.value, LABELS)).toBe(matches);
    expect(parsed.ok).toBe(true);
  });
  test.each(REFUSED)("`%s` is refused with the faulty part", (selector) => {
    const parsed = parseLabelSelector(selector);
    expect(parsed.ok).toBe(false);
    if (!parsed.ok) expect(parsed.error).toMatch(/^`/);
  });
  test("does not match members of Object.prototype", () => {
    const parsed = parseLabelSelector("constructor,toString");
    expect(parsed.ok && selects(parsed.value, {})).toBe(false);
  });
  test("with more requirements than the limit is refused", () => {
    expect(parseLabelSelector(Array.from({ length: 65 }, (_, i) => `a${i}`).join(",")).ok).toBe(false);
    expect(parseLabelSelector(Array.from({ length: 64 }, (_, i) => `a${i}`).join(",")).ok).toBe(true);
  });
});
