import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { canonicalInSegments, type Segmented, textsOf } from "../../api/service/canonical.ts";
import { asKeyframe, type Keyframe, piecesOf } from "../../api/service/node-turn/keyframe.ts";
import { decodeShared } from "../../api/service/node-turn/shared-parts.ts";
import type { BodyPiece } from "../../db/rows.ts";
import { realSnapshot } from "../kit/real-node.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const textOf = ({ segments }: Segmented): string => textsOf(segments).join("");
const texts = new Map<string, string>();
/** The text that the history puts together of the pieces. */
const joined = (pieces: readonly BodyPiece[]): string =>
  pieces
    .map((piece) => {
      if (typeof piece === "string") return piece;
      if ("text" in piece) texts.set(piece.id, piece.text);
      const whole = texts.get(piece.id) ?? "";
      if ("text" in piece) return whole;
      const range = whole.slice(piece.from, piece.to);
      expect(piece.bytes).toBe(Buffer.byteLength(range));
      return range;
    })
    .join("");

async function begun(): Promise<{ readonly snapshot: Snapshot; readonly keyframe: Keyframe }> {
  const decoded = decodeShared(realSnapshot(), "snapshot");
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  const form = canonicalInSegments(decoded.value);
  const { pieces, keyframe } = await asKeyframe(form, sha256);
  expect(joined(pieces)).toBe(textOf(form));
  return { snapshot: decoded.value, keyframe };
}
const withPod = (snapshot: Snapshot, i: number, restarts: number): Snapshot => {
  const pods = [...(snapshot.pods ?? [])];
  const pod = pods[i] as (typeof pods)[number];
  pods[i] = { ...pod, metadata: { ...pod.metadata, labels: { restarts: `ü${restarts}` } } };
  return { ...snapshot, pods };
};

test("a snapshot of which only the stats are new has all other parts as at most two ranges", async () => {
  const { snapshot, keyframe } = await begun();
  const form = canonicalInSegments({ ...snapshot, sequence: 7, stats: structuredClone(snapshot.stats) } as Snapshot);
  const found = piecesOf(form, keyframe);
  expect(joined(found?.pieces ?? [])).toBe(textOf(form));
  expect(found?.pieces.filter((piece) => typeof piece === "object").length).toBeLessThanOrEqual(2);
  expect(found?.keyframe.changed).toBe(0);
});

test("a changed pod is the only part of a list that is written again", async () => {
  const { snapshot, keyframe } = await begun();
  for (let i = 0; i < (snapshot.pods?.length ?? 0); i++) {
    const form = canonicalInSegments(withPod(snapshot, i, 1));
    const found = piecesOf(form, keyframe);
    expect(joined(found?.pieces ?? [])).toBe(textOf(form));
    expect(found?.keyframe.changed).toBe(JSON.stringify(withPod(snapshot, i, 1).pods?.[i]).length);
  }
});

test("a pod that changed and is stored again and again makes a new keyframe when that has cost a whole snapshot", async () => {
  const { snapshot, keyframe } = await begun();
  const changed = withPod(snapshot, 0, 1);
  const form = canonicalInSegments(changed);
  const times = form.length / JSON.stringify(changed.pods?.[0]).length;
  let last: Keyframe | undefined = keyframe;
  let stored = 0;
  for (; last !== undefined; stored++) last = piecesOf(form, last)?.keyframe;
  expect(stored - 1).toBe(Math.floor(times));
});
