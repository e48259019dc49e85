import { describe, expect, test } from "vitest";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { Kind } from "../../api/model/decision.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { counterfactualSentences } from "../../api/text/sentences/counterfactual.ts";
import { listed, ordinal } from "../../api/text/sentences/words.ts";
import { amountText, boundText, quantityText } from "../../api/text/size.ts";
import { colorPaint, plainPaint } from "../../api/text/style.ts";
import { legendText } from "../../api/text/table.ts";
import { answerText } from "../../api/text/tables/index.ts";
import { durationText, soonText, timeText } from "../../api/text/time-text.ts";
import { boundPod, CRITICAL, readyNode } from "../decide/admission/admission-kit.ts";
import { decoded, type Json } from "../kit/snapshots.ts";

function shown(kind: Kind, snapshot: Json, pod: unknown, columns: number, paint = plainPaint): string {
  const ask = decodeAsk(kind, { pod });
  if (!ask.ok) throw new Error(ask.error[0]?.message);
  const decision = { snapshot: decoded({ pods: [], ...snapshot }), facts: {}, ask: ask.value, explain: "off" } as const;
  const answer = decideKind(kind, decision);
  if (!answer.ok) throw new Error(answer.error.message);
  const terminal = { columns, paint, write: () => {}, warn: () => {} };
  const { policyVersion } = NEWEST;
  return answerText({ kind, node: "n", policyVersion, decided: answer.value, explain: "off" }, terminal);
}
const many = (count: number, cpu: string): readonly Json[] =>
  Array.from({ length: count }, (_, i) => boundPod(`p${i}`, { cpu }));
const full = readyNode({ pods: many(300, "100m") }, { allocatable: { cpu: "30", memory: "8Gi", pods: "500" } });
const WANTED = boundPod("crit", { cpu: "2" }, CRITICAL);

describe("the first line of an admission", () => {
  const esc = String.fromCharCode(27);
  test("is bold green for an admitted pod, and bold red for a refused one", () => {
    const yes = shown("admission", readyNode(), boundPod("a"), 200, colorPaint);
    expect(yes).toContain(`${esc}[1m${esc}[32mADMITTED${esc}[39m${esc}[22m  default/a\n`);
    const no = shown("admission", readyNode(), boundPod("a", { cpu: "5" }), 200, colorPaint);
    expect(no).toContain(`${esc}[1m${esc}[31mREFUSED${esc}[39m${esc}[22m  default/a: ${esc}[31mOutOfcpu${esc}[39m\n`);
  });
});

describe("a preemption on a large node", () => {
  test("names the first choices and nearest candidates, and how many others there are", () => {
    const text = shown("preemption", full, WANTED, Number.POSITIVE_INFINITY);
    expect(text).toContain("ADMITTED  default/crit: 20 pods preempted for it\n");
    expect(text.match(/^20 {2}default\/p\d+ +Burstable/m)).not.toBeNull();
    expect(text.match(/ preempted {2}default\/p/g)).toHaveLength(4);
    expect(text).toMatch(/^ +\(16 more choices\)$/m);
    expect(text).toMatch(/^ +\(295 more, up to 0\.902\)$/m);
  });
  test.each([100, 60, 52])("keeps within %d columns", (columns) => {
    const text = shown("preemption", full, WANTED, columns);
    const rows = text.split("\n").filter((line) => /^(ROUND|Burstable|Guaranteed| {8,}|\d+ {2}|SET|fewest)/.test(line));
    expect(rows.length).toBeGreaterThan(25);
    expect(Math.max(...rows.map((row) => row.length))).toBeLessThanOrEqual(columns);
  });
});

describe("the advice on what would change an admission", () => {
  const short = { resource: "cpu", requested: 300, overhead: 0, otherReasons: 0 };
  test("is one sentence when several requests must be lowered together", () => {
    const memory = { ...short, resource: "memory", requested: 2 ** 30, atMost: 0, less: 2 ** 30, overhead: 2 ** 20 };
    const lower = [
      { code: "lower_request_admits", numbers: { ...short, atMost: 100, less: 200 } },
      { code: "lower_request_admits", numbers: memory },
    ] as const;
    expect(counterfactualSentences(lower)).toEqual([
      "with at most 100m cpu (200m less) and no memory (1 GiB less) requested, its overhead included, it would be admitted",
    ]);
    expect(
      counterfactualSentences([{ code: "no_request_helps", numbers: { ...short, atMost: 5, overhead: 250 } }]),
    ).toEqual(["no lower request for cpu helps: the pod's overhead alone is 250m, and 5m would have to be enough"]);
    const pods = { code: "no_request_helps", numbers: { ...short, resource: "pods" } } as const;
    expect(counterfactualSentences([...lower, pods])).toEqual([
      "no lower request helps: every pod counts as one of the node's pods",
    ]);
  });
  test("says what else refuses, and that a search was cut short", () => {
    const numbers = { ...short, atMost: 100, less: 200, otherReasons: 2 };
    const better = { pods: "a/b c/d", count: 2, kubelet: "a/b c/d e/f", kubeletCount: 3, exact: false };
    const freed = { "cpu needed": 300, "cpu freed": 400, "cpu freed by the kubelet": 900 };
    expect(
      counterfactualSentences([
        { code: "fewer_pods_would_do", numbers: { ...better, ...freed } },
        { code: "lower_request_spares_all", numbers },
      ]),
    ).toEqual([
      "2 pods would be enough: a/b and c/d (400m cpu for the 300m needed); the kubelet preempts 3: a/b, c/d and e/f (900m cpu); perhaps even fewer would be enough",
      "with at most 100m cpu (200m less) requested it would fit; 2 other reasons would be checked again: ask again with that request",
    ]);
  });
});

describe("texts for display", () => {
  test("print durations with their two largest units", () => {
    const durations = [0, 0.4, 850, 1000, 42_999, 60_000, 312_000, 3_600_000, 12_000_000, 367_200_000, 1e15, -90_000];
    expect(durations.map(durationText)).toEqual([
      "0s",
      "0s",
      "850ms",
      "1s",
      "42s",
      "1m",
      "5m12s",
      "1h",
      "3h20m",
      "4d6h",
      "11574074d1h",
      "-1m30s",
    ]);
  });
  test("print times in Kubernetes' format, and as a number beyond the calendar", () => {
    expect([0, 1500, 8.65e15].map(timeText)).toEqual([
      "1970-01-01T00:00:00Z",
      "1970-01-01T00:00:01.500Z",
      "8650000000000000",
    ]);
  });
  test("print amounts in the resource's unit, and exactly on request", () => {
    const resources = ["cpu", "cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "vendor.com/gpu", "pods"];
    const units = [1500, 2000, 432013312, 1, 2 ** 21, 4, 3];
    expect(resources.map((name, i) => amountText(name, units[i] as number))).toEqual([
      "1500m",
      "2",
      "412 MiB",
      "1 B",
      "2 MiB",
      "4",
      "3",
    ]);
    expect(amountText("memory", 432013312, true)).toBe("432013312");
    expect(quantityText("memory", "23123516Ki")).toBe("22.1 GiB");
    expect(quantityText("memory", "23123516Ki", true)).toBe("23123516Ki");
    expect([quantityText("memory", "10%"), quantityText("cpu", "1800m"), quantityText("memory", "0")]).toEqual([
      ...["10%", "1800m", "0"],
    ]);
  });
  test("round a bound to the side that still holds", () => {
    expect(boundText("memory", "least", 729_089)).toBe("712.1 KiB");
    expect(boundText("memory", "most", 622_591)).toBe("607.9 KiB");
    expect(boundText("memory", "least", 432013313)).toBe("412.1 MiB");
    expect(boundText("memory", "most", 432013312)).toBe("412 MiB");
    // the text never exceeds a bound that the amount must stay below
    expect(boundText("memory", "most", 16_383)).toBe("15.9 KiB");
    expect(boundText("pid", "most", 16_383)).toBe("16,383");
    expect([boundText("memory", "least", 1), boundText("cpu", "most", 1500)]).toEqual(["1 B", "1500m"]);
    expect(boundText("memory", "least", 729_089, true)).toBe("729089");
  });
  test("print less than a second away as now", () => {
    expect([0, 999, 1000, 90_000].map(soonText)).toEqual(["now", "now", "in 1s", "in 1m30s"]);
  });
  test("print lists and ordinals in English", () => {
    expect([[], ["a"], ["a", "b"], ["a", "b", "c"]].map(listed)).toEqual(["", "a", "a and b", "a, b and c"]);
    expect([1, 2, 3, 4, 11, 12, 21, 102].map(ordinal)).toEqual([
      "1st",
      "2nd",
      "3rd",
      "4th",
      "11th",
      "12th",
      "21st",
      "102nd",
    ]);
  });
  test("print a legend of the drawn symbols only", () => {
    const glyphs = [
      ["red", "×", "short"],
      ["dim", "·", "left"],
    ] as const;
    expect(legendText(glyphs, "a ···", plainPaint)).toBe("· left\n");
    expect(legendText(glyphs, "a", plainPaint)).toBe("");
  });
});
