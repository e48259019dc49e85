import { describe, expect, test } from "vitest";
import type { InputIssue } from "../../api/base/input-issue.ts";
import { LIMITS } from "../../api/base/limits.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { KINDS, type Kind } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { fromJson, type Json, stored } from "../kit/snapshots.ts";
import { changed, drawn, type Path, places } from "./changes.ts";
import { draws, Met } from "./draws.ts";

const SEED = 99;
const ROUNDS = 5000;
/** Allows for a loaded machine; the test does not measure speed. */
const PATIENT = { timeout: 120_000 };
const withParsedStates = (): Json => {
  const real = realSnapshot();
  const states = Object.entries(real["assignments"] as Record<string, string>).map(([k, text]) => [k, fromJson(text)]);
  return { ...real, assignments: Object.fromEntries(states) as Json };
};
const soundIssues = (issues: readonly InputIssue[]): boolean =>
  issues.length > 0 &&
  issues.length <= LIMITS.issues &&
  issues.every((i) => typeof i.path === "string" && i.path.length < 1000 && i.message.length < 10_000);

/** The message of the refusal, or undefined. */
function refused(kind: Kind, snapshot: Snapshot, at: string): string | undefined {
  const ask = decodeAsk(kind, null);
  if (!ask.ok) return expect.fail(`${kind} needs an ask`);
  try {
    const answer = decideKind(kind, { snapshot, facts: {}, ask: ask.value, explain: "reasons" });
    return answer.ok ? undefined : answer.error.message;
  } catch (e) {
    return expect.fail(`${at}: ${kind} threw ${(e as Error).message}`);
  }
}

describe(`${ROUNDS} changes of the captured node from seed ${SEED}`, PATIENT, () => {
  const raw = withParsedStates();
  // the node as posted, and as stored: the stored form contains only fields that are read
  const bases = [raw, fromJson(stored(raw))].map((base) => ({ base, all: places(base) }));
  test("are decoded or refused with issues, and never throw", () => {
    const d = draws(SEED);
    const met = new Met();
    for (let round = 0; round < ROUNDS; round++) {
      const { base, all } = d.pick(bases);
      let input: unknown = base;
      const paths: Path[] = [];
      for (let n = 1 + d.below(3); n > 0; n--) {
        const place = d.pick(all);
        const path = d.chance(4) ? place.slice(0, 1 + d.below(4)) : place;
        paths.push(path);
        try {
          input = changed(input, path, drawn(d));
        } catch {
          // an earlier change removed this place
        }
      }
      const at = `round ${round}: ${JSON.stringify(paths)}`;
      let result: ReturnType<typeof decodeSnapshot>;
      try {
        result = decodeSnapshot(input);
      } catch (e) {
        return expect.fail(`${at} threw ${(e as Error).message}`);
      }
      met.note(result.ok ? "taken" : "refused");
      if (!result.ok) {
        if (!soundIssues(result.error)) expect.fail(`${at}: ${JSON.stringify(result.error).slice(0, 500)}`);
        continue;
      }
      if (round % 4 !== 0) continue; // deciding takes longer than decoding
      for (const kind of KINDS) {
        const refusal = refused(kind, result.value, at);
        met.note(refusal === undefined ? `${kind} answered` : "no answer");
        if (refusal?.includes("\n")) expect.fail(`${at}: ${refusal}`);
      }
    }
    for (const { all } of bases) expect(all.length).toBeGreaterThan(400);
    expect(met.hardly(3)).toEqual([]);
  });
  test("start from a captured node that is accepted itself", () => {
    for (const { base } of bases) expect(decodeSnapshot(base).ok).toBe(true);
  });
});
