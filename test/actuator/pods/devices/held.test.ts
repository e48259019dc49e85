import { expect, test } from "vitest";
import {
  changesBetween,
  entriesOf,
  withoutPods,
  withoutResponses,
  withRegistered,
  withResponse,
  withResponsesOf,
} from "../../../../actuator/pods/devices/checkpoint-entries.ts";
import { type DeviceCheckpoint, idsOf, type PodDevicesEntry } from "../../../../api/decide/devices/checkpoint.ts";
import { entry, GPU, NIC } from "./manager-kit.ts";

const of = (...entries: readonly PodDevicesEntry[]): DeviceCheckpoint => ({ entries, registered: null });
const responses = ({ entries }: DeviceCheckpoint) => entries?.map(({ allocResp }) => allocResp) ?? null;

test("idsOf lists each device id once, even if several NUMA nodes have it", () => {
  const spread = {
    ...entry("p", []),
    deviceIds: new Map([
      [0, ["a", "b"]],
      [1, ["b"]],
      [2, null],
    ]),
  };
  expect(idsOf(spread)).toEqual(["a", "b"]);
  expect(idsOf({ ...spread, deviceIds: null })).toEqual([]);
});

test("withResponse sets a response only on an entry with the same devices and no response yet", () => {
  const asked = entry("p", ["a", "b"]);
  const now = of(entry("q", ["c"]), asked, entry("p", ["n"], null, "app", NIC), entry("p", ["x"], null, "side"));
  expect(responses(withResponse(now, asked, "QQ=="))).toEqual([null, "QQ==", null, null]);
  expect(responses(withResponse(now, entry("p", ["b", "a"]), "QQ=="))).toEqual([null, "QQ==", null, null]);
  for (const other of [
    of(),
    of(entry("p", ["a"])),
    of(entry("p", ["a", "b"], "")),
    { entries: null, registered: null },
  ])
    expect(withResponse(other, asked, "QQ==")).toBe(other);
});

test("withoutPods removes a pod's entries, and leaves null instead of an empty list, as Go writes it", () => {
  const now = of(entry("p", ["a"]), entry("q", ["b"]), entry("p", ["n"], null, "app", NIC));
  expect(entriesOf(now, "p").map(({ resourceName }) => resourceName)).toEqual([GPU, NIC]);
  expect(withoutPods(now, new Set(["p"])).entries).toEqual([entry("q", ["b"])]);
  expect(withoutPods(now, new Set(["p", "q"])).entries).toBeNull();
  expect(withoutPods(now, new Set(["z"]))).toBe(now);
});

test("withoutResponses drops every response and keeps every device", () => {
  const now = of(entry("p", ["a"], "QQ=="), entry("q", ["b"], ""), entry("r", ["c"]));
  expect(responses(withoutResponses(now))).toEqual([null, null, null]);
  expect(withoutResponses(now).entries?.flatMap(idsOf)).toEqual(["a", "b", "c"]);
  const asked = of(entry("r", ["c"]));
  expect(withoutResponses(asked)).toBe(asked);
});

test("withResponsesOf takes over later responses for entries that hold the same devices", () => {
  const next = of(
    entry("p", ["a"]),
    entry("q", ["b"]),
    entry("r", ["c"]),
    entry("s", ["d"], ""),
    entry("t", ["e"], ""),
  );
  const current = of(entry("q", ["b"], "TkVX"), entry("r", ["z"], "TkVX"), entry("s", ["d"], "TkVX"));
  expect(responses(withResponsesOf(next, current))).toEqual([null, "TkVX", null, "TkVX", null]);
  const pending = of(entry("p", ["a"]), entry("q", ["b"]));
  expect(withResponsesOf(pending, of(entry("p", ["a"])))).toBe(pending);
});

test("changesBetween lists allocated and released devices, and ignores responses", () => {
  const before = of(entry("p", ["a"]), entry("q", ["b"]), entry("r", ["c"]));
  const after = of(entry("p", ["a"], "QQ=="), entry("q", ["x"]), entry("s", ["d"]));
  expect(changesBetween(before, after)).toEqual({
    allocated: [entry("q", ["x"]), entry("s", ["d"])],
    givenBack: [entry("q", ["b"]), entry("r", ["c"])],
  });
  expect(changesBetween(after, after)).toEqual({ allocated: [], givenBack: [] });
});

test("withRegistered changes the registered resources only when their names change, not their devices' health", () => {
  const now: DeviceCheckpoint = { entries: null, registered: new Map([[GPU, ["a"]]]) };
  expect(withRegistered(now, new Set([GPU]), () => [])).toBe(now);
  const nothing: DeviceCheckpoint = { entries: null, registered: null };
  expect(withRegistered(nothing, new Set(), () => [])).toBe(nothing);
  expect(withRegistered(now, new Set([GPU, NIC]), () => ["b"]).registered).toEqual(
    new Map([
      [GPU, ["b"]],
      [NIC, ["b"]],
    ]),
  );
  expect(withRegistered(now, new Set([NIC]), () => ["b"]).registered).toEqual(new Map([[NIC, ["b"]]]));
  expect(withRegistered(now, new Set(), () => []).registered).toEqual(new Map());
});
