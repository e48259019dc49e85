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

describe("a pod's places", () => {
  test("are the kubelet's", () => {
    expect(placesOf(ROOTS, { namespace: "ns", name: "web", uid: "u" })).toEqual({ ok: true, value: places });
    expect(emptyDirAt(places, "v")).toEqual({ ok: true, value: "/pods/u/volumes/kubernetes.io~empty-dir/v" });
    expect(subPathAt(places, "v", "c", 2)).toEqual({ ok: true, value: "/pods/u/volume-subpaths/v/c/2" });
    expect(containerAt(places, "c")).toEqual({ ok: true, value: "/pods/u/containers/c" });
    expect(containerLogsAt(places, "c")).toEqual({ ok: true, value: "/logs/ns_web_u/c" });
    expect(etcHostsAt(places)).toBe("/pods/u/etc-hosts");
  });
  test.each(HOSTILE)("never lie outside: uid %j", (uid) => {
    expect(placesOf(ROOTS, { namespace: "ns", name: "web", uid }).ok).toBe(false);
  });
  test.each(["a/b", "../../x", "a\0b"])("nor with the name or the namespace %j", (name) => {
    expect(placesOf(ROOTS, { namespace: "ns", name, uid: "u" }).ok).toBe(false);
    expect(placesOf(ROOTS, { namespace: name, name: "web", uid: "u" }).ok).toBe(false);
  });
  test.each(HOSTILE)("nor with a volume or a container %j", (name) => {
    for (const at of [emptyDirAt(places, name), containerAt(places, name), subPathAt(places, name, "c", 0)])
      expect(at.ok).toBe(false);
    expect(below("/root", "a", name)).toMatchObject({ ok: false });
  });
});

test("within is by whole parts", () => {
  expect(isWithin("/a/b", "/a")).toBe(true);
  expect(isWithin("/a", "/a")).toBe(true);
  expect(isWithin("/ab", "/a")).toBe(false);
  expect(isWithin("/ab", "/")).toBe(true);
});
