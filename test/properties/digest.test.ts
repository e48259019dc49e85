import { expect, test } from "vitest";
import { webSha256 } from "../../api/http/auth/tokens.ts";
import { sha256 } from "../../api/server/digest.ts";
import { draws, Met } from "./draws.ts";

const LETTERS = ["a", "ü", "€", "😀"];
/** The number of characters above which a piece is hashed by itself. */
const LONG = 22_000;

test("a text in pieces has the sha256 of the whole text, however long the pieces are", async () => {
  const d = draws(47);
  const met = new Met();
  for (let i = 0; i < 200; i++) {
    const pieces = Array.from({ length: d.below(12) }, () => d.pick(LETTERS).repeat(d.spread(70_000)));
    met.note("no pieces", pieces.length === 0);
    met.note(
      "a piece that is hashed by itself",
      pieces.some(({ length }) => length > LONG),
    );
    met.note(
      "a piece after such a piece",
      pieces.slice(0, -1).some(({ length }) => length > LONG),
    );
    const whole = sha256(pieces.join(""));
    expect(sha256(pieces)).toBe(whole);
    expect(await webSha256(pieces)).toBe(whole);
  }
  expect(met.hardly(5)).toEqual([]);
});
