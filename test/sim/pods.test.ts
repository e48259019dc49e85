import { expect, test } from "vitest";
import { HAPPENINGS, play } from "./pods-play.ts";

/** PODS_STORIES=500 plays more stories, PODS_SEED=17 plays only the story of this seed. */
const ONLY = process.env["PODS_SEED"];
const FIRST = Number(ONLY ?? 1);
const LAST = ONLY === undefined ? Number(process.env["PODS_STORIES"] ?? 20) : FIRST;

test("pods under random events never run twice or share exclusive CPUs, nothing foreign is touched, and all recovers", {
  timeout: 3_000_000,
}, async () => {
  const met = new Map<string, number>();
  const wrong: string[] = [];
  for (let seed = FIRST; seed <= LAST; seed++) wrong.push(...(await play(seed, met)));
  expect(wrong).toEqual([]);
  if (ONLY !== undefined) return;
  // the test proves nothing unless every event happened
  expect(met.get("resizes put off")).toBeGreaterThan(0);
  const counted = ["pods resized", "pods evicted", "pods preempted", "pods drained"];
  expect([...Object.keys(HAPPENINGS), ...counted].filter((what) => (met.get(what) ?? 0) < 5)).toEqual([]);
});
