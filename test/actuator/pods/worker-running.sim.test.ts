import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { runnable, runnableContainer } from "../../kit/runnable-pods.ts";
import { SERVES } from "../../sim/fake-pod-parts.ts";
import { workerWorld } from "./worker-kit.ts";

describe("a postStart hook", () => {
  test("that fails kills its container, and its output appears in the status only", async () => {
    const { runtime, up, takeMessages, calls } = workerWorld();
    runtime.programOf = () => ({ ...SERVES, exec: () => ({ exitCode: 3, stdout: "secret\n", stderr: "bad" }) });
    const turn = await up(runnable({ containers: [runnableContainer("app", { postStart: { exec: ["sh", "-c"] } })] }));
    expect(turn.faults["app"]).toEqual({
      reason: "PostStartHookError",
      message:
        'Exec lifecycle hook ([sh -c]) for Container "app" in Pod "web_default(uid-1)" failed - error: command \'sh -c\' exited with 3: bad, message: "secret\\nbad"',
    });
    expect(takeMessages().slice(3)).toEqual([
      "FailedPostStartHook app: PostStartHook failed",
      "Killing app: FailedPostStartHook",
    ]);
    expect(calls().slice(-2)).toEqual(["ExecSync container-2", "StopContainer container-2"]);
    expect(runtime.running("app")).toEqual([]);
  });
  test("over HTTP is sent to the pod's address or another host, and any status code succeeds", async () => {
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers["x-a"]} ${request.headers["user-agent"]}`);
      response.writeHead(500).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const http = {
      scheme: "http" as const,
      host: "127.0.0.1",
      port,
      path: "/up?x=1",
      headers: [{ name: "X-A", value: "b" }],
    };
    const { up } = workerWorld();
    expect((await up(runnable({ containers: [runnableContainer("app", { postStart: { http } })] }))).started).toEqual([
      "app",
    ]);
    expect(asked).toEqual(["/up?x=1 b kube-lifecycle/1.36"]);
    server.close();
    server.closeAllConnections();
    const { faults } = await up(
      runnable({ containers: [runnableContainer("app", { postStart: { http } })] }, { uid: "uid-2" }),
    );
    expect(faults["app"]?.message).toMatch(
      /^HTTP lifecycle hook \(\/up\?x=1\) .+ - error: Get "http:\/\/127\.0\.0\.1:\d+\/up\?x=1": dial tcp 127\.0\.0\.1:\d+: connect: connection refused/,
    );
  });
});

describe("syncing a running pod", () => {
  test("kills containers with the pod's grace period, removes dead ones with their logs, starts new ones", async () => {
    const { roots, runtime, time, up, sync, calls, takeMessages } = workerWorld();
    const web = runnable({ containers: [runnableContainer("a"), runnableContainer("b")] });
    await up(web);
    runtime.programOf = () => ({ ...SERVES, stopsMs: 5000 });
    const log = join(roots.podLogsDirectory, "default_web_uid-1/b/0.log");
    writeFileSync(log, "");
    runtime.exit("container-3", 1);
    calls();
    takeMessages();
    const from = time.monotonicMs();
    const turn = await sync(web, {
      toKill: [{ containerId: "container-2", name: "a", message: "Container a definition changed, will be restarted" }],
      toRemove: ["container-3"],
      toStart: [{ name: "a", attempt: 1 }],
    });
    expect(turn.started).toEqual(["a"]);
    expect(calls()).toEqual([
      "StopContainer container-2",
      "RemoveContainer container-3",
      "CreateContainer a_web_default_uid-1_1",
      "StartContainer container-4",
    ]);
    expect(takeMessages()[0]).toBe("Killing a: Container a definition changed, will be restarted");
    expect(time.monotonicMs() - from).toBe(5000);
    expect(existsSync(log)).toBe(false);
  });
  test("with a changed sandbox kills everything and starts again in a new one", async () => {
    const { runtime, up, sync, calls, takeMessages } = workerWorld();
    const web = runnable();
    await up(web);
    calls();
    takeMessages();
    await sync(web, {
      killPod: true,
      createSandbox: true,
      sandboxId: "sandbox-1",
      attempt: 1,
      toStart: [{ name: "app", attempt: 1 }],
    });
    expect(calls().slice(0, 3)).toEqual([
      "StopContainer container-2",
      "StopPodSandbox sandbox-1",
      "RunPodSandbox web_default_uid-1_1",
    ]);
    expect(takeMessages().slice(0, 2)).toEqual([
      "SandboxChanged: Pod sandbox changed, it will be killed and re-created.",
      "Killing app: Stopping container app",
    ]);
    expect([runtime.running("app").length, runtime.wrongs]).toEqual([1, []]);
  });
  test("stops when a container cannot be killed", async () => {
    const { runtime, up, sync, calls } = workerWorld();
    await up(runnable());
    calls();
    runtime.on = ({ call }) => (call === "StopContainer" ? { effect: false, answer: "dies" } : undefined);
    const toKill = [{ containerId: "container-2", name: "app", message: "x" }];
    const turn = await sync(runnable(), { toKill, toStart: [{ name: "app", attempt: 1 }] });
    expect(turn.error).toContain('failed to "KillContainer" for "app" with KillContainerError:');
    expect(calls()).toEqual(["StopContainer container-2"]);
  });
});
