import { describe, expect, test } from "vitest";
import {
  below,
  containerAt,
  containerLogsAt,
  emptyDirAt,
  etcHostsAt,
  isWithin,
  placesOf,
  subPathAt,
} from "../../../actuator/pods/volumes/places.ts";

const ROOTS = { podsDirectory: "/pods", podLogsDirectory: "/logs" };
const places = { podDirectory: "/pods/u", logDirectory: "/logs/ns_web_u" };
const HOSTILE = ["", ".", "..", "../x", "a/b", "/etc", "a\0b"];

describe("placesOf", () => {
  test("gives the kubelet's directories", () => {
    expect(placesOf(ROOTS, { namespace: "ns", name: "web", uid: "u" })).toEqual({ ok: true, value: places });
    expect(emptyDirAt(places, "v")).toEqual({ ok: true, value: "/pods/u/volumes/kubernetes.io~empty-dir/v" });
    expect(subPathAt(places, "v", "c", 2)).toEqual({ ok: true, value: "/pods/u/volume-subpaths/v/c/2" });
    expect(containerAt(places, "c")).toEqual({ ok: true, value: "/pods/u/containers/c" });
    expect(containerLogsAt(places, "c")).toEqual({ ok: true, value: "/logs/ns_web_u/c" });
    expect(etcHostsAt(places)).toBe("/pods/u/etc-hosts");
  });
  test.each(HOSTILE)("refuses the uid %j, which would lead outside", (uid) => {
    expect(placesOf(ROOTS, { namespace: "ns", name: "web", uid }).ok).toBe(false);
  });
  test.each(["a/b", "../../x", "a\0b"])("refuses %j as name or namespace", (name) => {
    expect(placesOf(ROOTS, { namespace: "ns", name, uid: "u" }).ok).toBe(false);
    expect(placesOf(ROOTS, { namespace: name, name: "web", uid: "u" }).ok).toBe(false);
  });
  test.each(HOSTILE)("refuses %j as the name of a volume or container", (name) => {
    for (const at of [emptyDirAt(places, name), containerAt(places, name), subPathAt(places, name, "c", 0)])
      expect(at.ok).toBe(false);
    expect(below("/root", "a", name)).toMatchObject({ ok: false });
  });
});

test("isWithin compares whole path segments", () => {
  expect(isWithin("/a/b", "/a")).toBe(true);
  expect(isWithin("/a", "/a")).toBe(true);
  expect(isWithin("/ab", "/a")).toBe(false);
  expect(isWithin("/ab", "/")).toBe(true);
});
