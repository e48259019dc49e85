import { describe, expect, test } from "vitest";
import { linesOf, podObject, readPod, withContainer } from "./sample.ts";

const AT = "spec.containers[0]";
const HTTP = { httpGet: { port: 80 } };
const probeOf = (probe: object) => withContainer({ livenessProbe: probe });

describe("a probe in a manifest", () => {
  test("has the API server's defaults, and a 0 counts as unset", () => {
    const given = { httpGet: { port: "web" }, timeoutSeconds: 0, failureThreshold: 0 };
    const { containers } = readPod(withContainer({ readinessProbe: given })).spec;
    expect(containers[0]?.probes).toEqual({
      startup: null,
      liveness: null,
      readiness: {
        handler: { http: { scheme: "HTTP", host: "", port: "web", path: "/", headers: [] } },
        initialDelaySeconds: 0,
        timeoutSeconds: 1,
        periodSeconds: 10,
        successThreshold: 1,
        failureThreshold: 3,
        terminationGracePeriodSeconds: null,
      },
    });
  });
  test.each([
    [{ exec: { command: ["a", "b"] } }, { exec: ["a", "b"] }],
    [{ tcpSocket: { port: 6379 } }, { tcp: { host: "", port: 6379 } }],
    [{ tcpSocket: { host: "h", port: "db" } }, { tcp: { host: "h", port: "db" } }],
    [{ grpc: { port: 2379 } }, { grpc: { port: 2379, service: "" } }],
    [{ grpc: { port: 2379, service: "s" } }, { grpc: { port: 2379, service: "s" } }],
    [
      { httpGet: { port: 443, scheme: "HTTPS", host: "h", path: "/x", httpHeaders: [{ name: "A", value: "b" }] } },
      { http: { scheme: "HTTPS", host: "h", port: 443, path: "/x", headers: [{ name: "A", value: "b" }] } },
    ],
  ])("with %j has the right handler", (given, handler) => {
    expect(readPod(probeOf(given)).spec.containers[0]?.probes.liveness).toMatchObject({ handler });
  });
  test("is accepted for a sidecar, and refused for another init container", () => {
    const init = (more: object) =>
      podObject({ initContainers: [{ name: "i", image: "a:1", livenessProbe: HTTP, ...more }] });
    expect(readPod(init({ restartPolicy: "Always" })).spec.initContainers[0]?.probes.liveness).not.toBeNull();
    expect(linesOf(init({}))).toContain(
      "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
    );
  });
});

test.each([
  [probeOf({}), "livenessProbe: Required value: must specify a handler type"],
  [
    probeOf({ ...HTTP, exec: { command: ["a"] } }),
    "livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
  ],
  [probeOf({ exec: {} }), "livenessProbe.exec.command: Required value"],
  [probeOf({ tcpSocket: {} }), "livenessProbe.tcpSocket.port: Required value"],
  [
    probeOf({ tcpSocket: { port: 70000 } }),
    "livenessProbe.tcpSocket.port: Invalid value: 70000: must be between 1 and 65535, inclusive",
  ],
  [
    probeOf({ httpGet: { port: 80, scheme: "FTP" } }),
    'livenessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
  ],
  [
    probeOf({ ...HTTP, periodSeconds: -1 }),
    "livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
  ],
  [probeOf({ ...HTTP, successThreshold: 2 }), "livenessProbe.successThreshold: Invalid value: 2: must be 1"],
  [
    probeOf({ ...HTTP, terminationGracePeriodSeconds: 0 }),
    "livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
  ],
  [
    withContainer({ readinessProbe: { ...HTTP, terminationGracePeriodSeconds: 5 } }),
    "readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes",
  ],
])("an invalid probe in a manifest is refused: case %#", (object, line) => {
  expect(linesOf(object)).toContain(`${AT}.${line}`);
});
