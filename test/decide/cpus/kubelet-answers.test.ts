import { describe, expect, test } from "vitest";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { CPU_SUITES } from "../../conformance/cpu-suites.ts";
import { difference } from "../../conformance/run.ts";
import type { Suite } from "../../conformance/suite.ts";
import { linesOf } from "./kit.ts";

/**
 * Random cases on unevenly built machines (cores of two sizes, offline CPUs, sockets and NUMA nodes that overlap), with
 * the answers of the static policy of k8s.io/kubernetes v1.36.3, run as a library.
 */
interface Case {
  readonly name: string;
  readonly in: unknown;
  readonly out:
    | {
        readonly steps: readonly { readonly error?: string }[];
        readonly containerHints: object;
        readonly podHints: object | null;
      }
    /** The call did not return. */
    | { readonly hang: true };
}
const cases = linesOf<Case>("kubelet-answers.jsonl.gz");
function answer(suite: "cpu-manager" | "cpu-hints", input: unknown): object {
  const { read, decide, show } = CPU_SUITES[suite] as Suite;
  return JSON.parse(JSON.stringify(show(decide(read(input, v1_36), v1_36)))) as object;
}

describe("the static CPU manager policy on uneven machines", () => {
  test(`answers ${cases.length} recorded cases as the kubelet did`, () => {
    let accounting = 0;
    let endless = 0;
    for (const { name, in: input, out } of cases) {
      const steps = answer("cpu-manager", input);
      if ("hang" in out) {
        expect(JSON.stringify(steps), name).toContain("the kubelet would not come back: it looks for");
        endless++;
        continue;
      }
      expect(difference({ steps: out.steps }, steps), name).toBeUndefined();
      const { containerHints, podHints } = answer("cpu-hints", input) as typeof out;
      expect(
        difference({ hints: out.containerHints, pod: out.podHints }, { hints: containerHints, pod: podHints }),
        name,
      ).toBeUndefined();
      if (out.steps.some(({ error }) => error?.startsWith("accounting error"))) accounting++;
    }
    expect({ accounting: accounting > 5, endless }).toEqual({ accounting: true, endless: 1 });
  });
});
