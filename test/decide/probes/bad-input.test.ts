import { describe, expect, test } from "vitest";
import { decideProbes } from "../../../api/decide/kinds/probes.ts";
import { decodeSnapshot } from "../../../api/model/decode.ts";
import { decodeProbesAsk } from "../../../api/model/probes.ts";
import { parseOutcomes } from "../../../api/model/probes-decision.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { HTTP, issuesOf, probedPod } from "./probes-kit.ts";

type Fields = Readonly<Record<string, unknown>>;
const AT = "ask.pod.spec.containers[0]";
const liveness = (probe: unknown, container: Fields = {}) => probedPod({ livenessProbe: probe, ...container });

describe("a probe that no API server accepts", () => {
  test.each<readonly [string, Fields, string]>([
    ["no handler", liveness({ periodSeconds: 5 }), `${AT}.livenessProbe: must specify a handler type`],
    [
      "two handlers",
      liveness({ ...HTTP, exec: { command: ["true"] } }),
      `${AT}.livenessProbe.httpGet: may not specify more than 1 handler type`,
    ],
    ["no command", liveness({ exec: { command: [] } }), `${AT}.livenessProbe.exec.command: must name a command`],
    [
      "another scheme",
      liveness({ httpGet: { port: 80, scheme: "http" } }),
      `${AT}.livenessProbe.httpGet.scheme: must be HTTP or HTTPS`,
    ],
    [
      "a negative delay",
      liveness({ ...HTTP, initialDelaySeconds: -1 }),
      `${AT}.livenessProbe.initialDelaySeconds: must be greater than or equal to 0`,
    ],
    [
      "a negative timeout",
      liveness({ ...HTTP, timeoutSeconds: -3 }),
      `${AT}.livenessProbe.timeoutSeconds: must be greater than or equal to 0`,
    ],
    [
      "two successes of liveness",
      liveness({ ...HTTP, successThreshold: 2 }),
      `${AT}.livenessProbe.successThreshold: must be 1`,
    ],
    [
      "a grace of 0",
      liveness({ ...HTTP, terminationGracePeriodSeconds: 0 }),
      `${AT}.livenessProbe.terminationGracePeriodSeconds: must be greater than 0`,
    ],
    [
      "a grace of readiness",
      probedPod({ readinessProbe: { ...HTTP, terminationGracePeriodSeconds: 5 } }),
      `${AT}.readinessProbe.terminationGracePeriodSeconds: must not be set for readinessProbes`,
    ],
    [
      "port 0",
      liveness({ httpGet: { port: 0 } }),
      `${AT}.livenessProbe.httpGet.port: must be between 1 and 65535, inclusive`,
    ],
    [
      "no port",
      liveness({ tcpSocket: {} }),
      `${AT}.livenessProbe.tcpSocket.port: must be between 1 and 65535, inclusive`,
    ],
    [
      "a port's name for grpc",
      liveness({ grpc: { port: "grpc" } }),
      `${AT}.livenessProbe.grpc.port: must be between 1 and 65535, inclusive`,
    ],
    [
      "what is no name of a port",
      liveness({ httpGet: { port: "Web_Port" } }),
      `${AT}.livenessProbe.httpGet.port: must be the name of a port: at most 15 of a-z, 0-9 and single -, a letter among them`,
    ],
    [
      "a probe of an init container",
      probedPod({}, { initContainers: [{ name: "init", readinessProbe: HTTP }] }),
      "ask.pod.spec.initContainers[0].readinessProbe: may not be set for init containers without restartPolicy=Always",
    ],
    [
      "half a second",
      liveness({ ...HTTP, periodSeconds: 0.5 }),
      `${AT}.livenessProbe.periodSeconds: invalid input: expected int, received number`,
    ],
  ])("%s", (_, pod, issue) => {
    expect(issuesOf({ pod })).toEqual([issue]);
  });
  test("is not one of a sidecar or one with zeros, which stand for defaults", () => {
    const initContainers = [{ name: "s", restartPolicy: "Always", readinessProbe: HTTP }];
    expect(issuesOf({ pod: probedPod({}, { initContainers }) })).toEqual([]);
    const zeros = { periodSeconds: 0, timeoutSeconds: 0, successThreshold: 0, failureThreshold: 0 };
    expect(issuesOf({ pod: liveness({ ...HTTP, ...zeros }) })).toEqual([]);
  });
  test("is refused too when the ask names the pod by name", () => {
    const snapshot = decodeSnapshot({ pods: [liveness({ periodSeconds: 5 })] });
    const ask = decodeProbesAsk({ pod: "shop/web" });
    if (!snapshot.ok || !ask.ok) throw new Error("not decoded");
    const asked = { snapshot: effectiveSnapshot(snapshot.value), facts: {}, ask: ask.value, explain: "off" as const };
    expect(decideProbes(asked)).toMatchObject({
      ok: false,
      error: {
        code: "invalid_state",
        message: "pods[0].spec.containers[0].livenessProbe: must specify a handler type",
      },
    });
    expect(decideProbes({ ...asked, ask: { ...ask.value, pod: "shop/other" } })).toMatchObject({
      ok: false,
      error: { code: "no_such_pod", message: "the snapshot has no pod `shop/other`" },
    });
    expect(decideProbes({ ...asked, ask: { ...ask.value, pod: null } })).toMatchObject({
      ok: false,
      error: { code: "needs_input", needs: ["ask.pod"] },
    });
    const good = decodeSnapshot({ pods: [liveness(HTTP)] });
    if (!good.ok) throw new Error("not decoded");
    expect(
      decideProbes({ ...asked, snapshot: effectiveSnapshot(good.value), ask: { ...ask.value, container: "sidecar" } }),
    ).toMatchObject({
      ok: false,
      error: { message: "ask.container: `shop/web` has no container `sidecar`; it has app" },
    });
  });
});

describe("unknown probe fields with a suggestion", () => {
  test.each<readonly [string, Fields, readonly string[]]>([
    [
      "of the probe",
      liveness({ ...HTTP, initalDelaySeconds: 5 }),
      [`${AT}.livenessProbe.initalDelaySeconds: no such field; \`initialDelaySeconds\`?`],
    ],
    [
      "of its handler",
      liveness({ httpGet: { port: 80, paht: "/x" }, retries: 3 }),
      [`${AT}.livenessProbe.retries: no such field`, `${AT}.livenessProbe.httpGet.paht: no such field; \`path\`?`],
    ],
    [
      "of the container",
      liveness(HTTP, { readynessProbe: HTTP, lifecycle: {}, stdin: true }),
      [`${AT}.readynessProbe: no such field; \`readinessProbe\`?`],
    ],
    [
      "of a sidecar",
      probedPod(
        {},
        { initContainers: [{ name: "s", restartPolicy: "Always", startupProbe: { tcpSocket: { prot: 1 } } }] },
      ),
      [
        "ask.pod.spec.initContainers[0].startupProbe.tcpSocket.prot: no such field; `port`?",
        "ask.pod.spec.initContainers[0].startupProbe.tcpSocket.port: must be between 1 and 65535, inclusive",
      ],
    ],
    ["none", liveness({ ...HTTP, httpGet: { ...HTTP.httpGet, httpHeaders: [{ name: "A", value: "b" }] } }), []],
  ])("%s", (_, pod, issues) => {
    expect(issuesOf({ pod })).toEqual(issues);
  });
  test("are not looked for in something that is no pod", () => {
    for (const pod of [null, "a/b", { spec: null }, { spec: { containers: [null, { livenessProbe: [1] }] } }])
      expect(issuesOf({ pod }).filter((issue) => issue.includes("no such field"))).toEqual([]);
  });
});

describe("an invalid probes ask", () => {
  const pod = liveness(HTTP);
  test.each<readonly [string, unknown, string]>([
    ["a text", "ok,ok", 'ask: expected an object such as {"pod": {...}, "outcomes": "ok,fail*3"}'],
    [
      "a container that the pod lacks",
      { pod, container: "db" },
      "ask.container: the pod has no container `db`; it has app",
    ],
    ["no seconds", { pod, seconds: 0 }, "ask.seconds: too small: expected number to be >0"],
    ["a year", { pod, seconds: 31_536_000 }, "ask.seconds: too big: expected number to be <=86400"],
    ["a jitter of two", { pod, jitter: 2 }, "ask.jitter: too big: expected number to be <=1"],
    [
      "a word that is no outcome",
      { pod, outcomes: "ok,maybe" },
      "ask.outcomes: `maybe` is no outcome: one of ok, fail, error, warn, timeout, hang, with @TIME for how long it takes and *N for how often, such as fail@200ms*3",
    ],
    [
      "one of a list for one type",
      { pod, outcomes: { liveness: ["ok", "fail*0"] } },
      "ask.outcomes.liveness: `fail*0`: an outcome comes once at least, and 10000 of them are enough",
    ],
    ["a type that is none", { pod, outcomes: { lively: "ok" } }, 'ask.outcomes: unrecognized key: "lively"'],
    ["a field that is none", { pod, outcome: "ok" }, 'ask.outcome: unrecognized key: "outcome"'],
  ])("%s", (_, ask, issue) => {
    expect(issuesOf(ask)).toEqual([issue]);
  });
});

describe("scripted probe outcomes", () => {
  test("can repeat, take time, and be a list", () => {
    expect(parseOutcomes(" ok , fail@1.5s*2,warn@20ms")).toEqual({
      ok: true,
      value: [
        { word: "ok", tookMs: null },
        { word: "fail", tookMs: 1500 },
        { word: "fail", tookMs: 1500 },
        { word: "warn", tookMs: 20 },
      ],
    });
    expect(parseOutcomes([])).toEqual({ ok: true, value: [] });
    for (const bad of ["", "ok,", "OK", "ok*", "ok@2", "ok*10001", "fail*3*3", "ok@-1s"]) {
      expect(parseOutcomes(bad).ok, bad).toBe(false);
    }
  });
  test("in a decoded ask decode again to the same ask", () => {
    const decoded = decodeProbesAsk({ pod: liveness(HTTP), outcomes: "ok, fail*2", kubeletRestartSeconds: null });
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
    expect(decodeProbesAsk(JSON.parse(JSON.stringify(decoded.value)))).toEqual(decoded);
    expect(decoded.value.outcomes).toEqual({
      startup: ["ok", "fail*2"],
      liveness: ["ok", "fail*2"],
      readiness: ["ok", "fail*2"],
    });
  });
});
