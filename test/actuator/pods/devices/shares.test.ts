import { describe, expect, test } from "vitest";
import {
  bytesOf,
  ENTRIES_BYTES,
  shareFault,
  withinShare,
} from "../../../../actuator/pods/devices/device-assignments.ts";
import { LIMITS } from "../../../../api/base/limits.ts";
import { entryText, type PodDevicesEntry, writeCheckpoint } from "../../../../api/decide/devices/checkpoint.ts";
import { entry } from "./manager-kit.ts";

const answer = (bytes: number): string => "A".repeat(Math.floor(bytes / 4) * 4);
/** The entry of pod `uid`, with an answer of `bytes` bytes. */
const of = (resource: string, uid: string, bytes: number) => entry(uid, ["a"], answer(bytes), "app", resource);
/** Adds as many entries of each size as there is room for, one size after the other. */
function filled(resource: string, before: readonly PodDevicesEntry[], sizes: readonly number[]): PodDevicesEntry[] {
  const entries = [...before];
  for (const size of sizes) {
    for (let i = 0; i < 20_000; i++) {
      const one = of(resource, `${size} ${i}`, size);
      if (shareFault(entries, one) !== undefined) break;
      entries.push(one);
    }
  }
  return entries;
}

describe("shares of the device checkpoint", () => {
  test("are counted in bytes as the file has them", () => {
    for (const one of [entry("p", ["a", "<é>"], null), entry("p", ["a"], ""), of("a/b", "p", 400)])
      expect(bytesOf(one)).toBe(Buffer.byteLength(entryText(one)) + 1);
  });

  test("leave room for other plugins' pods, however much one plugin answers", () => {
    const entries = filled("hog.io/h", [], [300_000, 8_000, 400]);
    expect(shareFault(entries, of("hog.io/h", "one", 100))).toMatch(
      /^ids and answers of hog.io\/h would take \d+ bytes/,
    );
    for (const size of [100, 4_000, 200_000]) expect(shareFault(entries, of("acme.io/gpu", "p", size))).toBeUndefined();
  });

  test("leave room for 512 pods with usual answers when many plugins answer at length", () => {
    let entries: readonly PodDevicesEntry[] = [];
    for (let i = 0; i < 40; i++) entries = filled(`hog.io/h${i}`, entries, [300_000, 100_000, 10_000]);
    for (let i = 0; i < 512; i++) {
      const one = of("acme.io/gpu", `p${i}`, 1_000);
      expect(shareFault(entries, one)).toBeUndefined();
      entries = [...entries, one];
    }
    for (let i = 0; i < 40; i++) entries = filled(`hog.io/h${i}`, entries, [100_000, 4_000, 400]);
    expect(entries.reduce((sum, one) => sum + bytesOf(one), 0)).toBeLessThanOrEqual(ENTRIES_BYTES);
    const name = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}/`;
    const registered = new Map(
      Array.from({ length: LIMITS.deviceResources }, (_, i) => [
        `${name}${`${i}`.padStart(63, "r")}`,
        Array.from({ length: 20 }, (_, k) => `${i}-${k}-${"x".repeat(60)}`),
      ]),
    );
    const kept = withinShare({ entries, registered });
    expect(Buffer.byteLength(writeCheckpoint(kept))).toBeLessThanOrEqual(LIMITS.stateText);
    expect(kept.entries).toBe(entries);
    expect(kept.registered?.size).toBe(LIMITS.deviceResources);
  });

  test("count an entry that replaces another only once", () => {
    const entries = filled("acme.io/gpu", [], [300_000]);
    const [first] = entries as [PodDevicesEntry];
    expect(shareFault(entries, { ...first, allocResp: answer(250_000) })).toBeUndefined();
  });

  test("drop only the longest lists of registered device ids", () => {
    const usual = Array.from({ length: 4_096 }, (_, i) => `${i}`.padStart(63, "d"));
    const long = Array.from({ length: 400 }, (_, i) => `${i}`.padStart(4_000, "d"));
    const checkpoint = {
      entries: null,
      registered: new Map([
        ["hog.io/h", long],
        ["acme.io/gpu", usual],
      ]),
    };
    expect(withinShare(checkpoint).registered).toEqual(
      new Map([
        ["hog.io/h", []],
        ["acme.io/gpu", usual],
      ]),
    );
    const well = { entries: null, registered: new Map([["acme.io/gpu", usual]]) };
    expect(withinShare(well)).toBe(well);
  });
});
