import { describe, expect, test } from "vitest";
import type { Runtime } from "../../../actuator/containerd/cri.ts";
import type { GcDeps, LogFiles } from "../../../actuator/gc/dependencies.ts";
import type { Entry } from "../../../actuator/gc/journal.ts";
import { guard, isGone, type Removal, remove } from "../../../actuator/gc/remove.ts";
import { err, ok } from "../../../api/base/result.ts";
import { podsRead } from "../../kit/manifests.ts";
import { faultOf } from "../../sim/fake-runtime.ts";
import { lookWith, planned, surprise } from "./guarded.ts";

type Call = "imageNow" | "containerNow" | "sandboxNow";
const refuses = async () => err(faultOf("Remove", "UNKNOWN", "busy"));
const silent = async () => err(faultOf("Remove", "UNAVAILABLE", "broke"));
const REFUSED = { end: "failed", message: "rpc error: code = Unknown desc = busy" };

/** A runtime and log files that record each call and answer it with success. */
function world(runtime: Partial<Runtime> = {}, logs: Partial<LogFiles> = {}) {
  const asked: string[] = [];
  const noted =
    (name: string, answer: unknown) =>
    (...args: readonly unknown[]) => {
      asked.push([name, ...args].join(" "));
      return answer;
    };
  const calls = ["removeImage", "stopContainer", "removeContainer", "stopSandbox", "removeSandbox"];
  const done = Object.fromEntries(calls.map((name) => [name, noted(name, Promise.resolve(ok(null)))]));
  const now = Object.fromEntries(
    ["imageNow", "containerNow", "sandboxNow"].map((name) => [name, noted(name, Promise.resolve(ok(null)))]),
  );
  const files = {
    observe: () => ({ podLogDirectories: ["both", "a"], danglingLogLinks: ["both", "b"], missing: [] }),
    removePodLogs: noted("removePodLogs", ok("removed")),
    removeLogLink: noted("removeLogLink", ok("removed")),
    removeContainerLog: noted("removeContainerLog", ok(null)),
    ...logs,
  };
  const deps = { runtime: { ...done, ...now, ...runtime }, logs: files } as unknown as GcDeps;
  return { deps, asked };
}

describe("whether a removed object still exists", () => {
  const gone = (target: Entry["target"], id: string, deps: GcDeps) =>
    isGone({ target, id, runtimeHandler: "kata" }, deps);

  test.each([
    ["image", "imageNow x kata"],
    ["container", "containerNow x"],
    ["sandbox", "sandboxNow x"],
  ] as const)("is asked of the runtime for an %s, and of nobody else", async (target, question) => {
    const { deps, asked } = world();
    expect(await gone(target, "x", deps)).toEqual(ok(true));
    expect(asked).toEqual([question]);
    const call = question.split(" ")[0] as Call;
    expect(await gone(target, "x", world({ [call]: async () => ok({ id: "x" }) }).deps)).toEqual(ok(false));
    expect(await gone(target, "x", world({ [call]: silent }).deps)).toEqual(err("Remove: UNAVAILABLE: broke"));
  });

  test.each([
    ["pod-logs", ["a", "both"], "b"],
    ["log-link", ["b", "both"], "a"],
  ] as const)("is read from the log directories for %s", async (target, there, away) => {
    const { deps, asked } = world();
    for (const id of there) expect(await gone(target, id, deps), id).toEqual(ok(false));
    expect(await gone(target, away, deps)).toEqual(ok(true));
    expect(asked).toEqual([]);
    const missing = [
      { path: "/a", why: "EIO" },
      { path: "/b", why: "EACCES" },
    ];
    const blind = world(
      {},
      { observe: () => ({ podLogDirectories: undefined, danglingLogLinks: undefined, missing }) },
    );
    expect(await gone(target, "a", blind.deps)).toEqual(err("/a: EIO; /b: EACCES"));
  });
});

test.each(["image", "container", "sandbox", "pod-logs", "log-link"] as const)(
  "every target has a guard before its removal: %s",
  async (target) => {
    const readPods = async () => podsRead();
    const removal = { target, id: "x", runtimeHandler: "", image: { id: "x", names: [] }, container: { id: "x" } };
    const found = await guard(removal as unknown as Removal, lookWith(), { ...world().deps, readPods });
    const words = {
      image: "it is not there any more",
      container: "it is not there any more",
      sandbox: "it is not there any more",
      "pod-logs": "its name is not NAMESPACE_NAME_UID",
      "log-link": "its name is no log file's",
    };
    expect(found).toEqual(surprise(words[target]));
  },
);

describe("a removal", () => {
  const carriedOut = (target: Removal["target"], { deps }: ReturnType<typeof world>, more: object = {}) =>
    remove({ target, id: "x", runtimeHandler: "kata" } as Removal, planned(more) as Parameters<typeof remove>[1], deps);

  test.each([
    ["image", {}, ["removeImage x kata"]],
    ["container", {}, ["removeContainer x"]],
    ["container", { logPath: "/l" }, ["removeContainerLog /l", "removeContainer x"]],
    [
      "container",
      { stopFirst: true, logPath: "/l" },
      ["stopContainer x 2", "removeContainerLog /l", "removeContainer x"],
    ],
    ["sandbox", {}, ["stopSandbox x", "removeSandbox x"]],
    ["pod-logs", {}, ["removePodLogs x"]],
    ["log-link", {}, ["removeLogLink x"]],
  ] as const)("of a %s (%o) makes these calls in this order", async (target, more, calls) => {
    const { asked, ...rest } = world();
    expect(await carriedOut(target, { asked, ...rest }, more)).toEqual({ end: "removed" });
    expect(asked).toEqual(calls);
  });

  test.each([
    ["image", { removeImage: refuses }, []],
    ["container", { stopContainer: refuses }, []],
    ["container", { removeContainer: refuses }, ["stopContainer x 2", "removeContainerLog /l"]],
    ["sandbox", { stopSandbox: refuses }, []],
    ["sandbox", { removeSandbox: refuses }, ["stopSandbox x"]],
  ] as const)("of a %s that the runtime refuses (%o) fails without further calls", async (target, runtime, calls) => {
    const subject = world(runtime);
    expect(await carriedOut(target, subject, { stopFirst: true, logPath: "/l" })).toEqual(REFUSED);
    expect(subject.asked).toEqual(calls);
  });

  test("of a container whose log cannot be removed fails, and the container stays", async () => {
    const subject = world({}, { removeContainerLog: () => err("log /l: EROFS") });
    expect(await carriedOut("container", subject, { logPath: "/l" })).toEqual({
      end: "failed",
      message: "log /l: EROFS",
    });
    expect(subject.asked).toEqual([]);
  });

  test.each(["pod-logs", "log-link"] as const)(
    "of %s fails when they cannot be removed, and ends the pass when they were removed before",
    async (target) => {
      const answering = (answer: ReturnType<LogFiles["removeLogLink"]>) =>
        world({}, { removePodLogs: () => answer, removeLogLink: () => answer });
      expect(await carriedOut(target, answering(err("EBUSY")))).toEqual({ end: "failed", message: "EBUSY" });
      expect(await carriedOut(target, answering(ok("gone")))).toEqual({
        end: "stopped",
        message: "it is not there any more",
      });
    },
  );

  test.each([
    ["image", { removeImage: silent }, "imageNow"],
    ["container", { stopContainer: silent }, "containerNow"],
    ["container", { removeContainer: silent }, "containerNow"],
    ["sandbox", { stopSandbox: silent }, "sandboxNow"],
    ["sandbox", { removeSandbox: silent }, "sandboxNow"],
  ] as const)("of a %s without an answer (%o) ends by what the runtime then reports", async (target, runtime, call) => {
    const words = "rpc error: code = Unavailable desc = broke";
    const endAs = (found: unknown) =>
      carriedOut(target, world({ ...runtime, [call]: async () => found }), { stopFirst: true });
    expect(await endAs(ok(null))).toEqual({
      end: "removed",
      message: `it is gone, though its answer did not come in time: ${words}`,
    });
    expect(await endAs(ok({ id: "x" }))).toEqual({
      end: "stopped",
      message: `it is still there, and may go later: ${words}`,
    });
    expect(await endAs(err(faultOf("Status", "UNAVAILABLE", "still")))).toEqual({
      end: "stopped",
      message: `what became of it is not known: ${words}; then Status: UNAVAILABLE: still`,
    });
  });
});
