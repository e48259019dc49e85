import { execFile } from "node:child_process";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { attempt, type ProbeDeps } from "../../../actuator/probes/engine/attempt.ts";
import { ProbeHistory, readProbeHistory } from "../../../actuator/probes/engine/history.ts";
import { ProbeManager } from "../../../actuator/probes/engine/probe-manager.ts";
import { systemProbeClock } from "../../../actuator/probes/engine/probe-time.ts";
import type { ProbeChange, ProbeWarning } from "../../../actuator/probes/engine/probed.ts";
import { noProbeCounters } from "../../../actuator/status/counters.ts";
import { recordedOutcomes } from "../../../api/cli/probes/outcomes.ts";
import type { ProbeHandler } from "../../../api/model/probe-spec.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { probe, probed, probedContainer } from "../../kit/runnable-pods.ts";
import { PATIENT } from "../../patient.ts";
import { scratch } from "../pods/scratch.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});
/** A server that answers with a status; 0: it accepts the request and never answers. */
const serverOf = (status: () => number): Promise<ProbeHandler> =>
  servedBy((response) => {
    if (status() > 0) response.writeHead(status()).end("body");
  });
async function servedBy(answer: (response: ServerResponse) => void): Promise<ProbeHandler> {
  const server: Server = createServer((_request, response) => answer(response));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { http: { scheme: "HTTP", host: "", port, path: "/", headers: [] } };
}
function opened(exec: ProbeDeps["exec"] = () => Promise.reject(new Error("no runtime here"))) {
  const stateDir = scratch();
  const results: ProbeChange[] = [];
  const events: ProbeWarning[] = [];
  const manager = new ProbeManager(
    {
      ...{ attempt, runtime: { exec }, clock: systemProbeClock, random: Math.random, counters: noProbeCounters },
      history: new ProbeHistory({ stateDir, clock: systemProbeClock, onFault: () => {} }),
      onResult: (change) => void results.push(change),
      onEvent: (warning) => void events.push(warning),
      onGuard: () => {},
    },
    { startedAtMs: Date.now() - 60_000, strict: false, spread: true, execLimit: 4, guard: null, profile: v1_36 },
  );
  cleanups.push(() => manager.close());
  return { manager, stateDir, results, events };
}
const at = { podIP: "127.0.0.1" };

test("a real server that starts to fail is reported, and a hanging one does not block others", async () => {
  let status = 200;
  const [well, hung] = [await serverOf(() => status), await serverOf(() => 0)];
  const { manager, stateDir, results, events } = opened();
  const bothOf = (handler: ProbeHandler, timeoutSeconds = 1) => ({
    liveness: probe({ handler, timeoutSeconds }),
    readiness: probe({ handler, timeoutSeconds }),
  });
  manager.sync([
    // the healthy server answers within its timeout, however busy the machine is
    probed([probedContainer(bothOf(well, 30))], at),
    probed([probedContainer(bothOf(hung), { id: "id-hung" })], { ...at, uid: "pod-2", name: "hung" }),
  ]);
  await vi.waitUntil(() => manager.ready("pod-1", "c"), PATIENT);
  await vi.waitUntil(() => manager.resultOf("id-hung", "liveness") === "Failure", PATIENT);
  expect([manager.ready("pod-2", "c"), manager.resultOf("id-1", "liveness")]).toEqual([false, "Success"]);
  expect(results.findLast(({ containerId }) => containerId === "id-hung")?.output).toMatch(/Client\.Timeout exceeded/);
  status = 503;
  await vi.waitUntil(() => manager.resultOf("id-1", "liveness") === "Failure", PATIENT);
  await vi.waitUntil(() => !manager.ready("pod-1", "c"), PATIENT);
  expect(events).toContainEqual(
    expect.objectContaining({ pod: "web", message: "Liveness probe failed: HTTP probe failed with statuscode: 503" }),
  );
  manager.close();
  const read = readProbeHistory(stateDir, { limit: 100 });
  const kept = read.ok ? read.value.filter((entry) => entry.kind === "result") : [];
  expect(kept).toContainEqual(expect.objectContaining({ pod: "ns/web", type: "liveness", to: "Failure" }));
  expect(kept).toContainEqual(expect.objectContaining({ pod: "ns/web", type: "readiness", to: "Success" }));
  expect(JSON.stringify(read)).not.toMatch(/body/);
});

test("real commands run, at most four of eight at once", async () => {
  let [running, most] = [0, 0];
  const four = Promise.withResolvers<void>();
  const exec: ProbeDeps["exec"] = (_id, command) => {
    most = Math.max(most, ++running);
    if (running === 4) four.resolve();
    const [file = "", ...args] = command;
    return new Promise((resolve) => {
      execFile(file, args, async (error, stdout, stderr) => {
        // waits until the others have started, however long that takes
        await four.promise;
        running--;
        const exitCode = typeof error?.code === "number" ? error.code : 0;
        resolve({ ok: true, value: { exitCode, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) } } as never);
      });
    });
  };
  const { manager } = opened(exec);
  const handler = { exec: ["/bin/sleep", "0.2"] };
  const slow = probe({ handler, timeoutSeconds: 30, periodSeconds: 30 });
  const pods = Array.from({ length: 8 }, (_, i) =>
    probed([probedContainer({ readiness: slow }, { id: `id-${i}` })], { ...at, uid: `u-${i}`, name: `p-${i}` }),
  );
  manager.sync(pods);
  await vi.waitUntil(() => pods.every(({ uid }) => manager.ready(uid, "c")), PATIENT);
  expect(most).toBe(4);
});

test("response bodies that hang or break off restart no container, and are recorded as such", async () => {
  let how: "ok" | "hang" | "break" = "ok";
  const handler = await servedBy((response) => {
    if (how === "ok") response.end("fine");
    else {
      response.writeHead(200, { "content-length": 9 });
      response.write("half", () => {
        if (how === "break") response.destroy();
      });
    }
  });
  const { manager, stateDir, results } = opened();
  // a probe that is answered must not time out on a busy machine
  manager.sync([
    probed([probedContainer({ liveness: probe({ handler, failureThreshold: 1, timeoutSeconds: 3 }) })], at),
  ]);
  const attempts = () => manager.facts()[0]?.attempts ?? 0;
  const more = async (): Promise<void> => {
    const before = attempts();
    await vi.waitUntil(() => attempts() > before + 1, PATIENT);
  };
  await more();
  how = "hang";
  await more();
  how = "break";
  await more();
  how = "ok";
  await more();
  manager.close();
  const read = readProbeHistory(stateDir, { limit: 100 });
  const { liveness = [] } = recordedOutcomes(read.ok ? read.value.toReversed() : []);
  const count = String.raw`(?:\*\d+)?`;
  expect(liveness.join()).toMatch(new RegExp(`^ok${count},hang${count},hang@0ms${count},ok$`));
  expect(results.map(({ result }) => result)).toEqual(["Success"]);
});
