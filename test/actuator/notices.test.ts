import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Problem } from "../../actuator/core/interfaces.ts";
import { Notices } from "../../actuator/core/notices.ts";
import { fakeContainer, fakeSandbox, fullOfImages, gcFixture, put } from "./gc/gc-kit.ts";

const podsProblem = (message: string): Problem => ({ from: "pods", message });

test("a notice of both a pass and a turn is reported once, and again after both dropped it", () => {
  const messages: string[] = [];
  const notices = new Notices(({ message }) => void messages.push(message));
  const since = (): readonly string[] => messages.splice(0);
  notices.report("pass", [podsProblem("empty"), podsProblem("a directory"), podsProblem("empty")]);
  expect(since()).toEqual(["empty", "a directory"]);
  notices.report("gc", [podsProblem("empty"), podsProblem("no logs")]);
  expect(since()).toEqual(["no logs"]);
  notices.report("pass", []);
  notices.report("pass", [podsProblem("empty"), podsProblem("a directory")]);
  expect(since()).toEqual(["a directory"]);
  notices.report("pass", []);
  notices.report("gc", []);
  notices.report("gc", [podsProblem("empty")]);
  expect(since()).toEqual(["empty"]);
});

test("a message already reported as a problem is not reported as a notice", () => {
  const messages: string[] = [];
  const notices = new Notices(({ message }) => void messages.push(message));
  notices.report("pass", [podsProblem("half read")], [podsProblem("no answer")]);
  notices.report("gc", [podsProblem("no answer"), podsProblem("half read")], [podsProblem("no answer")]);
  notices.report("pass", [podsProblem("no answer")]);
  expect(messages).toEqual(["half read"]);
  notices.report("gc", []);
  notices.report("pass", []);
  notices.report("pass", [podsProblem("no answer")]);
  expect(messages).toEqual(["half read", "no answer"]);
});

test("a turn of several collections has the notices of all of them, each once", async () => {
  const world = gcFixture({ joinsEviction: true });
  const { node, dir } = world;
  put(node, fakeSandbox("s1", "u1"), fakeContainer("c1", "s1", "sha256:1"));
  node.kubeletConfiguration = { evictionHard: { "imagefs.available": "1%" } };
  await fullOfImages(world);
  node.kubeletConfiguration = { evictionHard: { "imagefs.available": "15%" } };
  node.podsReadable = false;
  // the time of the pass cannot be stored
  mkdirSync(join(dir, "clock-image-gc.json.new"));
  const lists = node.runtime.lists;
  let removals = 0;
  node.runtime.on = ({ call, phase }) => {
    if (call === "RemoveImage" && phase === "after" && ++removals === 1) node.podsReadable = true;
    return undefined;
  };
  const { notices } = await node.turn(["container-gc"]);
  expect(node.runtime.lists - lists).toBe(2);
  expect(notices.map(({ from }) => from)).toEqual(["pods", "memory"]);
  expect(notices[0]?.message).toBe("the kubelet does not answer");
  rmdirSync(join(dir, "clock-image-gc.json.new"));
  expect((await node.turn(["container-gc"])).notices).toEqual([]);
});
