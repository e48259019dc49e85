import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { OWNER } from "../../../actuator/containerd/cri.ts";
import { OwnedRuntime } from "../../../actuator/pods/sync/owned-runtime.ts";
import { runnable } from "../../kit/runnable-pods.ts";
import { ME, upWith } from "./worker-kit.ts";

describe("a foreign container or sandbox", () => {
  /** A pod with an additional container and sandbox of another owner. */
  async function withForeign(owner: string | undefined) {
    const world = await upWith(runnable());
    const [sandbox] = world.runtime.sandboxes.values();
    const [app] = world.runtime.containers.values();
    if (sandbox === undefined || app === undefined) throw new Error("it is not up");
    const { [OWNER]: _, ...labels } = sandbox.config.labels ?? {};
    const others = owner === undefined ? labels : { ...labels, [OWNER]: owner };
    world.runtime.sandboxes.set("theirs", { ...sandbox, id: "theirs", config: { ...sandbox.config, labels: others } });
    world.runtime.containers.set("their-app", {
      ...app,
      id: "their-app",
      sandboxId: "theirs",
      config: { ...app.config, labels: { ...app.config.labels, [OWNER]: owner ?? "" } },
      onExit: [],
    });
    return world;
  }
  test.each([undefined, "nodewise-b"])(
    "is never stopped or removed by ending, forgetting or syncing the pod: owner %s",
    async (owner) => {
      const { end, forget, sync, calls, runtime, roots } = await withForeign(owner);
      expect((await end(runnable())).isEnded).toBe(true);
      const forgotten = await forget(runnable());
      expect(forgotten).toEqual({
        isGone: false,
        leftOvers: [
          { path: "their-app", why: "it is not this daemon's own" },
          { path: "theirs", why: "it is not this daemon's own" },
        ],
      });
      expect(existsSync(join(roots.podsDirectory, "uid-1"))).toBe(true);
      const toKill = [{ containerId: "their-app", name: "app", message: "x" }];
      expect((await sync(runnable(), { toKill })).error).toContain(
        "container `their-app` is not this daemon's own, of this pod",
      );
      await sync(runnable(), { toRemove: ["their-app"] });
      expect((await sync(runnable(), { sandboxId: "theirs", toStart: [{ name: "app", attempt: 1 }] })).error).toBe(
        "sandbox `theirs` is not this daemon's own",
      );
      await sync(runnable(), { killPod: true });
      expect(calls().filter((call) => call.includes("their"))).toEqual([]);
      expect([runtime.containers.get("their-app")?.state, runtime.sandboxes.get("theirs")?.isReady]).toEqual([
        "running",
        true,
      ]);
    },
  );
  test("is refused by OwnedRuntime in every call", async () => {
    const { runtime, seenOf, calls, time } = await withForeign("nodewise-b");
    const owned = new OwnedRuntime(runtime, ME, "uid-1", await seenOf());
    const config = runtime.containers.get("container-2")?.config;
    const sandbox = runtime.sandboxes.get("sandbox-1")?.config;
    if (config === undefined || sandbox === undefined) throw new Error("it is not up");
    const answers = await Promise.all([
      owned.stopContainer("their-app", 1),
      owned.removeContainer("their-app"),
      owned.startContainer("their-app"),
      owned.exec("their-app", [], 1),
      owned.stopSandbox("theirs"),
      owned.removeSandbox("theirs"),
      owned.createContainer("theirs", config, sandbox),
      owned.createContainer("sandbox-1", { ...config, labels: {} }, sandbox),
      owned.runSandbox({ ...sandbox, labels: {} }),
      new OwnedRuntime(runtime, ME, "uid-2", await seenOf()).stopContainer("container-2", 1),
      new OwnedRuntime(runtime, ME, "uid-1", null).stopSandbox("sandbox-1"),
    ]);
    expect(answers.map((answer) => (answer.ok ? "" : answer.error.code))).toEqual(answers.map(() => "NOT_OWN"));
    expect(calls()).toEqual([]);
    expect((await time.drive(owned.stopContainer("container-2", 1))).ok).toBe(true);
  });
});
