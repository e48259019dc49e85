import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { observeLogs, removeLogLink, removePodLogs } from "../../../actuator/containerd/logs.ts";
import { scratchFolder } from "../../kit/scratch.ts";

let dir: string;
let podLogs: string;
let containerLogs: string;
const observe = () => observeLogs({ podLogs, containerLogs });
const outside = (): string => join(dir, "outside");

beforeEach(() => {
  dir = scratchFolder();
  podLogs = join(dir, "pods");
  containerLogs = join(dir, "containers");
  for (const made of [podLogs, containerLogs, outside()]) mkdirSync(made);
  writeFileSync(join(outside(), "kept"), "kept");
  mkdirSync(join(podLogs, "ns_b_2", "app"), { recursive: true });
  mkdirSync(join(podLogs, "ns_a_1"));
  writeFileSync(join(podLogs, "ns_b_2", "app", "0.log"), "text");
  symlinkSync(outside(), join(podLogs, "ns_b_2", "app", "link"));
  symlinkSync(outside(), join(podLogs, "ns_link_3"));
  writeFileSync(join(podLogs, "file"), "");
  symlinkSync(join(podLogs, "ns_b_2", "app", "0.log"), join(containerLogs, "b_ns_app-1.log"));
  symlinkSync(join(podLogs, "ns_gone_9", "app", "0.log"), join(containerLogs, "gone_ns_app-9.log"));
  symlinkSync("/nowhere", join(containerLogs, "gone.txt"));
  writeFileSync(join(containerLogs, "plain.log"), "");
});

describe("observeLogs", () => {
  test("lists pod log directories and dangling log links", () => {
    expect(observe()).toEqual({
      podLogDirectories: ["ns_a_1", "ns_b_2"],
      danglingLogLinks: ["gone_ns_app-9.log"],
      missing: [],
    });
  });
  test("counts a chain of links that ends dangling, but not a circular link", () => {
    symlinkSync(join(containerLogs, "gone_ns_app-9.log"), join(containerLogs, "chain.log"));
    symlinkSync("circle.log", join(containerLogs, "circle.log"));
    expect(observe().danglingLogLinks).toEqual(["chain.log", "gone_ns_app-9.log"]);
  });
  test("is empty on a machine without pods, and undefined where a directory cannot be read", () => {
    rmSync(podLogs, { recursive: true });
    rmSync(containerLogs, { recursive: true });
    writeFileSync(containerLogs, "");
    expect(observe()).toEqual({
      podLogDirectories: [],
      danglingLogLinks: undefined,
      missing: [{ path: containerLogs, why: "not readable (ENOTDIR)" }],
    });
  });
});

const NAMES = ["", ".", "..", "../outside", "ns_a_1/..", "/etc", "a\0b"];

describe("removePodLogs and removeLogLink", () => {
  test("removes a pod's directory with its content, but not the targets of links", () => {
    expect(removePodLogs(podLogs, "ns_b_2")).toEqual({ ok: true, value: "removed" });
    expect(existsSync(join(podLogs, "ns_b_2"))).toBe(false);
    expect(readdirSync(outside())).toEqual(["kept"]);
    expect(removePodLogs(podLogs, "ns_b_2")).toEqual({ ok: true, value: "gone" });
  });
  test.each(["ns_link_3", "file"])("refuses %s, which is no directory", (name) => {
    const removed = removePodLogs(podLogs, name);
    expect(removed).toEqual({ ok: false, error: `remove ${join(podLogs, name)}: it is not a directory` });
    expect(readdirSync(podLogs)).toContain(name);
    expect(readdirSync(outside())).toEqual(["kept"]);
  });
  test.each(NAMES)("refuses %j, which is no single name", (name) => {
    for (const removed of [removePodLogs(podLogs, name), removeLogLink(podLogs, name)]) {
      expect(removed.ok ? "removed" : removed.error).toMatch(/it is not the name of one entry$/);
    }
    expect(readdirSync(dir).sort()).toEqual(["containers", "outside", "pods"]);
    expect(readdirSync(podLogs)).toHaveLength(4);
  });
  test("removes a dangling link, keeps one whose log is back, and refuses anything else", () => {
    expect(removeLogLink(containerLogs, "gone_ns_app-9.log")).toEqual({ ok: true, value: "removed" });
    expect(removeLogLink(containerLogs, "gone_ns_app-9.log")).toEqual({ ok: true, value: "gone" });
    expect(removeLogLink(containerLogs, "b_ns_app-1.log")).toEqual({ ok: true, value: "gone" });
    expect(removeLogLink(containerLogs, "plain.log")).toMatchObject({ ok: false });
    expect(readdirSync(containerLogs).sort()).toEqual(["b_ns_app-1.log", "gone.txt", "plain.log"]);
  });
});
