import { existsSync, readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { decodeStatus } from "../../../actuator/status/node-status.ts";
import { type ProbeFacts, probeRows } from "../../../actuator/status/probe-row.ts";
import { StatusFile, statusFile } from "../../../actuator/status/status-file.ts";
import { nodeStatus } from "../../kit/node-status.ts";
import { probe, probed, probedContainer, START } from "../../kit/runnable-pods.ts";
import { PATIENT } from "../../patient.ts";
import { scratch } from "../pods/scratch.ts";
import { BAD, managerFixture, OK } from "../probes/manager-kit.ts";

const facts = (more: Partial<ProbeFacts>): ProbeFacts => ({
  ...{ namespace: "ns", pod: "web", podUid: "pod-1", container: "c", type: "liveness", handler: "http" },
  ...{ periodSeconds: 10, timeoutSeconds: 1, activity: "waiting", attempts: 3, failures: 0, output: "" },
  ...{ result: "Success", sinceMs: START, seconds: 0.01234, lastAtMs: START + 0.4, nextAtMs: null },
  ...more,
});

test("rows are sorted by pod, container and type, with wall clock times", () => {
  const rows = probeRows([
    facts({ pod: "z" }),
    facts({ type: "readiness" }),
    facts({ type: "startup", container: "d" }),
    facts({ type: "startup" }),
    facts({ namespace: "a", pod: "zz", seconds: null, lastAtMs: null, sinceMs: null, result: null }),
    facts({}),
  ]);
  expect(rows.map(({ namespace, pod, container, type }) => `${namespace}/${pod}/${container} ${type}`)).toEqual([
    "a/zz/c liveness",
    "ns/web/c startup",
    "ns/web/c liveness",
    "ns/web/c readiness",
    "ns/web/d startup",
    "ns/z/c liveness",
  ]);
  expect(rows[0]).toMatchObject({ since: null, tookMs: null, lastAt: null, result: null });
  expect(rows[1]).toMatchObject({
    since: "2026-11-22T12:00:00.000Z",
    tookMs: 12.3,
    lastAt: "2026-11-22T12:00:00.000Z",
  });
});

test("rows of a probe manager are written to a status and read back", async () => {
  const w = managerFixture();
  const slow = probe({ periodSeconds: 60, timeoutSeconds: 2 });
  w.answer = ({ timeoutMs }) => (timeoutMs === 2_000 ? OK : BAD);
  w.manager.sync([probed([probedContainer({ liveness: probe({ failureThreshold: 2 }), readiness: slow })])]);
  await w.clock.advance(5_000);
  const rows = probeRows(w.manager.facts());
  const second = (seconds: number): string => new Date(START + seconds * 1_000).toISOString();
  const named = { namespace: "ns", pod: "web", uid: "pod-1", container: "c", handler: "http" };
  expect(rows).toEqual([
    {
      ...{ ...named, type: "liveness", periodSeconds: 1, timeoutSeconds: 1, result: "Failure", since: second(1) },
      ...{ activity: "done", attempts: 2, failures: 2, tookMs: 0, output: BAD.output, lastAt: second(1) },
      nextAt: second(6),
    },
    {
      ...{ ...named, type: "readiness", periodSeconds: 60, timeoutSeconds: 2, result: "Success", since: second(0) },
      ...{ activity: "waiting", attempts: 1, failures: 0, tookMs: 0, output: "", lastAt: second(0) },
      nextAt: second(60),
    },
  ]);
  const status = nodeStatus({ probes: rows });
  expect(decodeStatus(JSON.stringify(status))).toEqual({ ok: true, value: status });
  const wrong = { ...status, probes: [{ ...rows[0], result: "Fine" }] };
  expect(decodeStatus(JSON.stringify(wrong))).toMatchObject({ error: expect.stringContaining("probes.0.result: ") });
});

test("the status file is written for each change of a probe result, not for each attempt", async () => {
  const stateDir = scratch();
  let nowMs = 0;
  const file = new StatusFile({ stateDir, onProblem: () => {}, now: () => nowMs });
  const written = (): string => JSON.parse(readFileSync(statusFile(stateDir), "utf8")).at;
  let looks = 0;
  const looked = async (at: string, more: Partial<ProbeFacts>): Promise<void> => {
    nowMs += 6_000;
    const before = looks;
    // no status is read while a write is in progress
    await vi.waitUntil(() => {
      file.offer(() => {
        looks++;
        return { ...nodeStatus({ probes: probeRows([facts(more)]) }), at };
      });
      return looks > before;
    }, PATIENT);
  };
  await looked("2026-11-22T12:00:01Z", {});
  await vi.waitUntil(() => existsSync(statusFile(stateDir)), PATIENT);
  await looked("2026-11-22T12:00:02Z", { attempts: 4, lastAtMs: START + 9_000, nextAtMs: START, activity: "probing" });
  await looked("2026-11-22T12:00:03Z", { attempts: 5, seconds: 3 });
  expect(written()).toBe("2026-11-22T12:00:01Z");
  await looked("2026-11-22T12:00:04Z", { result: "Failure", sinceMs: START + 9_000 });
  await vi.waitUntil(() => written() === "2026-11-22T12:00:04Z", PATIENT);
  await file.close(nodeStatus());
});
