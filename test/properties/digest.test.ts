import fc from "fast-check";
import { expect, test } from "vitest";
import { webSha256 } from "../../api/http/auth/tokens.ts";
import { sha256 } from "../../api/server/digest.ts";

const piece = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.tuple(fc.constantFrom("a", "ü", "€", "😀"), fc.nat(40_000)).map(([letter, times]) => letter.repeat(times)),
);

test("a text in pieces has the sha256 of the whole text, however long the pieces are", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
      const whole = sha256(pieces.join(""));
      expect(sha256(pieces)).toBe(whole);
      expect(await webSha256(pieces)).toBe(whole);
    }),
  );
});
