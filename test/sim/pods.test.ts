import { expect, test } from "vitest";
import { play } from "./pods-play.ts";
import { EVENTS } from "./pods-story.ts";

/** PODS_STORIES=500 plays more of them, PODS_SEED=17 that one alone. */
const ONLY = process.env["PODS_SEED"];
const FIRST = Number(ONLY ?? 1);
const LAST = ONLY === undefined ? Number(process.env["PODS_STORIES"] ?? 20) : FIRST;

test("whatever happens: nothing runs twice, CPUs stay alone, nothing foreign is touched, and all comes right", {
  timeout: 300_000,
}, async () => {
  const met = new Map<string, number>();
  for (let seed = FIRST; seed <= LAST; seed++) expect(await play(seed, met)).toEqual([]);
  if (ONLY !== undefined) return;
  // everything was met, or this proves nothing
  expect(Object.keys(EVENTS).filter((what) => (met.get(what) ?? 0) < 5)).toEqual([]);
});
