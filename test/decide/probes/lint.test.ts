import { expect, test } from "vitest";
import { PROBE_FINDINGS } from "../../../api/model/probes-decision.ts";
import { dryRun, HTTP, probedPod, probeOf } from "./probes-kit.ts";

type Fields = Readonly<Record<string, unknown>>;
const OTHER = { httpGet: { path: "/live", port: 8080 } };
const STARTUP = { startupProbe: { ...HTTP, failureThreshold: 30 } };
const CALM = { ...STARTUP, readinessProbe: HTTP, livenessProbe: { ...OTHER, failureThreshold: 6 } };

const findingsOf = (container: Fields, spec: Fields = {}) =>
  dryRun(probedPod(container, spec), { seconds: 1 }).findings.map(
    ({ code, level, path }) => `${level} ${code} ${path}`,
  );
const AT = "spec.containers[0]";

/** The expected findings of each container; every case differs by one change from settings without findings. */
type Case = readonly [name: string, container: Fields, found: readonly string[], spec?: Fields];
const CASES: readonly Case[] = [
  ["settings with nothing to say", CALM, []],
  [
    "a named port that no container has",
    { ...CALM, readinessProbe: { httpGet: { path: "/r", port: "web" } } },
    [`error unknown-port-name ${AT}.readinessProbe.httpGet.port`],
  ],
  [
    "a named port that the container has",
    { ...CALM, ports: [{ name: "web", containerPort: 80 }], readinessProbe: { httpGet: { path: "/r", port: "web" } } },
    [],
  ],
  [
    "liveness without start-up: 20 s and it is over",
    { readinessProbe: HTTP, livenessProbe: { ...OTHER, periodSeconds: 10, failureThreshold: 3, timeoutSeconds: 2 } },
    [`warning liveness-before-started ${AT}.livenessProbe.initialDelaySeconds`],
  ],
  [
    "liveness that readiness' own delay says is too early",
    {
      readinessProbe: { ...HTTP, initialDelaySeconds: 90, periodSeconds: 5 },
      livenessProbe: { ...OTHER, failureThreshold: 8 },
    },
    [`warning liveness-before-started ${AT}.livenessProbe.initialDelaySeconds`],
  ],
  [
    "start-up that ends before readiness begins",
    { ...CALM, startupProbe: { ...HTTP, failureThreshold: 3 }, readinessProbe: { ...HTTP, initialDelaySeconds: 60 } },
    [
      `warning startup-too-short ${AT}.startupProbe.failureThreshold`,
      `hint delay-beside-startup ${AT}.readinessProbe.initialDelaySeconds`,
    ],
  ],
  [
    "liveness as quick as readiness",
    { ...CALM, livenessProbe: OTHER },
    [`warning liveness-not-after-readiness ${AT}.livenessProbe.failureThreshold`],
  ],
  [
    "liveness that asks what readiness asks",
    { ...CALM, livenessProbe: { ...HTTP, failureThreshold: 6 } },
    [`warning same-as-readiness ${AT}.livenessProbe`],
  ],
  [
    "the same path with another header is another question",
    {
      ...CALM,
      livenessProbe: {
        httpGet: { ...HTTP.httpGet, httpHeaders: [{ name: "X-Live", value: "1" }] },
        failureThreshold: 6,
      },
    },
    [],
  ],
  [
    "one failure that restarts",
    { ...STARTUP, livenessProbe: { ...OTHER, failureThreshold: 1 } },
    [`warning one-failure-restarts ${AT}.livenessProbe.failureThreshold`],
  ],
  [
    "one failure that takes out of service",
    { ...CALM, readinessProbe: { ...HTTP, failureThreshold: 1 } },
    [`hint one-failure-unready ${AT}.readinessProbe.failureThreshold`],
  ],
  [
    "a timeout over the period",
    { ...CALM, readinessProbe: { ...HTTP, timeoutSeconds: 11 } },
    [`warning timeout-over-period ${AT}.readinessProbe.timeoutSeconds`],
  ],
  [
    "a process every second",
    { ...CALM, readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 } },
    [`hint exec-often ${AT}.readinessProbe.periodSeconds`],
  ],
  [
    "a long delay",
    { livenessProbe: { ...OTHER, initialDelaySeconds: 120 } },
    [`hint long-delay ${AT}.livenessProbe.initialDelaySeconds`],
  ],
  [
    "several successes",
    { ...CALM, readinessProbe: { ...HTTP, successThreshold: 2 } },
    [`hint success-threshold-carries ${AT}.readinessProbe.successThreshold`],
  ],
  [
    "a grace over the pod's",
    { ...CALM, livenessProbe: { ...OTHER, failureThreshold: 6, terminationGracePeriodSeconds: 40 } },
    [`hint grace-over-pod ${AT}.livenessProbe.terminationGracePeriodSeconds`],
  ],
  [
    "a grace below the least",
    { ...CALM, livenessProbe: { ...OTHER, failureThreshold: 6, terminationGracePeriodSeconds: 1 } },
    [`hint grace-below-least ${AT}.livenessProbe.terminationGracePeriodSeconds`],
  ],
  [
    "a long grace",
    { ...CALM, startupProbe: { ...HTTP, failureThreshold: 30, terminationGracePeriodSeconds: 5 } },
    [`hint long-grace ${AT}.livenessProbe.terminationGracePeriodSeconds`],
    { terminationGracePeriodSeconds: 120 },
  ],
  [
    "a host that is not the pod",
    { ...CALM, readinessProbe: { tcpSocket: { host: "db.example", port: 5432 } } },
    [`warning host-outside-pod ${AT}.readinessProbe.tcpSocket.host`],
  ],
  [
    "the node's own loopback, of a pod that is on the host's network",
    {
      ...CALM,
      readinessProbe: { httpGet: { host: "127.0.0.1", port: 6443, scheme: "HTTPS" } },
      startupProbe: { tcpSocket: { host: "::1", port: 1 }, failureThreshold: 30 },
      livenessProbe: { tcpSocket: { host: "localhost", port: 1 }, failureThreshold: 6 },
    },
    [],
    { hostNetwork: true },
  ],
  [
    "the node's loopback, of a pod that has its own",
    { ...CALM, readinessProbe: { tcpSocket: { host: "127.0.0.1", port: 80 } } },
    [`warning host-outside-pod ${AT}.readinessProbe.tcpSocket.host`],
  ],
  [
    "another host, of a pod that is on the host's network",
    { ...CALM, readinessProbe: { tcpSocket: { host: "127.0.0.1.example", port: 80 } } },
    [`warning host-outside-pod ${AT}.readinessProbe.tcpSocket.host`],
    { hostNetwork: true },
  ],
  [
    "start-up in no time",
    { startupProbe: { ...HTTP, periodSeconds: 1, failureThreshold: 3 } },
    [`warning startup-too-short ${AT}.startupProbe.failureThreshold`],
  ],
  ["start-up in ten seconds", { startupProbe: { ...HTTP, periodSeconds: 5, failureThreshold: 3 } }, []],
  [
    "start-up that ends before liveness begins",
    { startupProbe: { ...HTTP, failureThreshold: 4 }, livenessProbe: { ...OTHER, initialDelaySeconds: 45 } },
    [
      `warning startup-too-short ${AT}.startupProbe.failureThreshold`,
      `hint delay-beside-startup ${AT}.livenessProbe.initialDelaySeconds`,
    ],
  ],
  [
    "liveness that asks what readiness asks, by the port's name and without the path",
    {
      ...CALM,
      ports: [{ name: "web", containerPort: 8080 }],
      readinessProbe: { httpGet: { path: "/", port: 8080, scheme: "HTTP" } },
      livenessProbe: { httpGet: { port: "web" }, failureThreshold: 6 },
    },
    [`warning same-as-readiness ${AT}.livenessProbe`],
  ],
  [
    "another scheme at the same port",
    {
      ...CALM,
      readinessProbe: { httpGet: { port: 8080, scheme: "HTTPS" } },
      livenessProbe: { httpGet: { port: 8080 }, failureThreshold: 6 },
    },
    [],
  ],
  ["a liveness that cannot restart", CALM, [`warning never-restarted ${AT}.livenessProbe`], { restartPolicy: "Never" }],
];

const NAMED = CASES.map(([name, container, found, spec]) => ({ name, container, found, spec }));
test.each(NAMED)("$name: the probe findings", ({ container, found, spec }) => {
  expect(findingsOf(container, spec)).toEqual(found);
});
test("every probe finding is covered by a case", () => {
  const found = new Set(CASES.flatMap(([, , findings]) => findings.map((f) => f.split(" ")[1])));
  expect([...found].sort()).toEqual([...PROBE_FINDINGS].sort());
});

test("a probe that cannot be made has outcome error, whatever the script says", () => {
  const decision = dryRun(probedPod({ livenessProbe: { tcpSocket: { port: "web" } } }), {
    outcomes: "fail",
    seconds: 300,
  });
  expect(decision).toMatchObject({ restarts: 0, quirks: [{ code: "error-discarded" }] });
  expect(new Set(probeOf(decision, "liveness").attempts.map(({ outcome }) => outcome))).toEqual(new Set(["error"]));
});

test("a probe's reach is what its dry run shows at worst", () => {
  const settings = { periodSeconds: 3, timeoutSeconds: 2, failureThreshold: 4, initialDelaySeconds: 6 };
  const pod = probedPod({ livenessProbe: { ...OTHER, ...settings, terminationGracePeriodSeconds: 9 } });
  const { reach } = probeOf(dryRun(pod), "liveness");
  expect(reach).toEqual({
    soonestFailureMs: 15_000,
    slowestFailureMs: 14_000,
    slowestSuccessMs: 5000,
    slowestEndMs: 23_000,
  });
  // the server refuses connections from the start, or hangs immediately after an answer
  const failedAt = (outcomes: string) =>
    probeOf(dryRun(pod, { outcomes, seconds: 60 }), "liveness").results.find((r) => r.result === "Failure")?.atMs;
  expect(failedAt("fail")).toBe(reach.soonestFailureMs);
  expect(failedAt("ok,timeout")).toBe(6000 + reach.slowestFailureMs);
});
