import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { reasonText } from "../../api/cli/reason-text.ts";
import { decideKind } from "../../api/decide/index.ts";
import { KINDS } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { realNode } from "./run.ts";

const json = (file: string) => JSON.parse(readFileSync(realNode(file), "utf8"));

describe("a reason", () => {
  test("is a sentence, for every reason of the captured node in both cgroup versions", () => {
    let seen = 0;
    for (const version of [1, 2]) {
      const snapshot = decodeSnapshot({
        node: json("node.json"),
        pods: json("pods.json"),
        kubeletConfiguration: json("configz.json"),
        cgroup: { version },
        assignments: { cpu_manager_state: json("cpu_manager_state") },
      });
      if (!snapshot.ok) throw new Error(snapshot.error[0]?.message);
      for (const kind of KINDS) {
        const answer = decideKind(kind, { snapshot: snapshot.value, facts: {}, ask: { pod: null }, explain: "full" });
        if (!answer.ok) throw new Error(answer.error.message);
        for (const reason of answer.value.reasons.flatMap(({ because }) => because)) {
          const text = reasonText(reason, false);
          expect(text).not.toMatch(new RegExp(`: ${reason.code}( |$)`));
          expect(text).not.toMatch(/undefined|NaN|null/);
          expect(reasonText(reason, true)).toMatch(new RegExp(` \\[${reason.code}[^\\]]*\\]$`));
          seen++;
        }
      }
    }
    expect(seen).toBeGreaterThan(300);
  });

  test("without a sentence shows its code and numbers", () => {
    const reason = { code: "brand_new", field: "memory", numbers: { bytes: 1, why: undefined } };
    expect(reasonText(reason, false)).toBe("memory: brand_new bytes=1");
    expect(reasonText({ code: "toString", field: "memory" }, false)).toBe("memory: toString");
  });
});
