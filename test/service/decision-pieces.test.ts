import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { PerOwnerCache } from "../../api/base/cache.ts";
import type { Explain } from "../../api/model/decision.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { PROFILES } from "../../api/profiles/index.ts";
import { answerTo, withVersion } from "../../api/service/evaluate.ts";
import type { AnswerParts } from "../../api/service/evaluation.ts";
import { decisionKeyframe, decisionPieces, encodedAnswer } from "../../api/service/node-turn/decision-pieces.ts";
import { decodeShared } from "../../api/service/node-turn/shared-parts.ts";
import type { BodyPiece } from "../../db/rows.ts";
import { realSnapshot } from "../kit/real-node.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const bodyOf = (parts: AnswerParts, version: string | null): string => withVersion(JSON.stringify(parts), version);

/** Decides cgroups of the captured node with other names of pods' priority classes or other memory limits, one pod at a time. */
function deciding(explain: Explain) {
  const decoded = decodeShared(realSnapshot(), "snapshot");
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  const kept = new PerOwnerCache();
  const [profile] = PROFILES;
  return (changed: number | null, limit: number): AnswerParts => {
    const pods = (decoded.value.pods ?? []).map((pod, i) => {
      if (i !== changed) return pod;
      const containers = pod.spec.containers.map((one) => ({
        ...one,
        resources: { limits: { memory: `${limit}Mi` } },
      }));
      return { ...pod, spec: { ...pod.spec, containers } };
    });
    const snapshot = { ...decoded.value, pods } as Snapshot;
    const asked = { kind: "cgroups", explain, ask: undefined, facts: {} } as never;
    const { outcome } = answerTo(asked, snapshot, { profile } as never, kept);
    if (!outcome.ok) throw new Error(outcome.error.message);
    return outcome.value.parts;
  };
}
/** The text that the history puts together of the pieces. */
const joined = (pieces: readonly BodyPiece[], base: string): string =>
  pieces
    .map((piece) => {
      if (typeof piece === "string") return piece;
      if ("text" in piece) throw new Error("a decision stores no text of its own");
      expect(piece.bytes).toBe(piece.to - piece.from);
      return base.slice(piece.from, piece.to);
    })
    .join("");

for (const [explain, version] of [
  ["off", null],
  ["full", null],
  ["off", "1.36.3"],
] as const)
  test(`a decision (explain ${explain}, version ${version}) of which one pod changed is its text and few ranges`, async () => {
    const decide = deciding(explain);
    const before = decide(null, 0);
    const base = bodyOf(before, version);
    const keyframe = await decisionKeyframe({ parts: before, kubeletVersion: version }, sha256);
    if (keyframe === null) throw new Error("no keyframe");
    expect(keyframe.id).toBe(sha256(base).slice(0, 32));
    for (const [i, limit] of [
      [null, 0],
      [1, 50],
      [4, 60],
    ] as const) {
      const parts = decide(i, limit);
      const found = decisionPieces({ parts, kubeletVersion: version }, keyframe);
      const body = bodyOf(parts, version);
      expect(joined(found?.pieces ?? [], base)).toBe(body);
      expect(found?.length).toBe(body.length);
      expect(found?.keyframe.changed).toBeGreaterThan(i === null ? 0 : 100);
      expect(found?.keyframe.changed).toBeLessThan(body.length / 2);
    }
  });

test("the bytes of an answer are those of its text", () => {
  const parts = deciding("full")(4, 60);
  const named = { ...parts, needs: ["ü€😀".repeat(9000), "x".repeat(200_000)] };
  for (const [answer, version] of [
    [parts, null],
    [named, "1.36.3"],
  ] as const) {
    const text = `{"id":"1",${bodyOf(answer, version).slice(1)}`;
    const bytes = encodedAnswer('{"id":"1"}', { parts: answer, kubeletVersion: version });
    expect(new TextDecoder().decode(bytes)).toBe(text);
    expect(bytes.buffer.byteLength).toBe(bytes.length);
  }
});

test("a decision is stored as a whole again when its changes add up to that", async () => {
  const decide = deciding("off");
  const answer = (parts: AnswerParts) => ({ parts, kubeletVersion: null });
  let keyframe = await decisionKeyframe(answer(decide(null, 0)), sha256);
  let times = 0;
  for (; keyframe !== null; times++)
    keyframe = decisionPieces(answer(decide(4, 60 + times)), keyframe)?.keyframe ?? null;
  expect(times).toBeGreaterThan(3);
  expect(times).toBeLessThan(40);
});

test("a short text, and one with characters of several bytes, is no keyframe", async () => {
  const answer = (text: string) => ({
    parts: { decision: { cgroups: [{ path: text }] } } as never,
    kubeletVersion: null,
  });
  expect(await decisionKeyframe(answer("p"), sha256)).toBeNull();
  expect(await decisionKeyframe(answer("p".repeat(2000)), sha256)).not.toBeNull();
  expect(await decisionKeyframe(answer("ü".repeat(2000)), sha256)).toBeNull();
});
