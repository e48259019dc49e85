import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { PodContainer } from "../../../../actuator/lifecycle/pod.ts";
import type { ProbeSpec } from "../../../../api/model/probe-spec.ts";
import { type Fields, linesOf, podObject, readPod } from "./sample.ts";

/** A random pod, and the results of Kubernetes 1.36.3's own ValidatePodCreate and SetObjectDefaults_Pod. */
interface Case {
  readonly name: string;
  readonly spec: Fields;
  readonly faults: readonly string[];
  readonly containers: readonly TheirProbes[];
  readonly init: readonly TheirProbes[];
}
type TheirProbes = Readonly<Record<"startup" | "liveness" | "readiness", Fields | null>>;
const file = new URL("../../../data/lifecycle/probes.jsonl.gz", import.meta.url);
const CASES = gunzipSync(readFileSync(file))
  .toString()
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Case);

/**
 * Our faults also name the header, and distinguish a missing port from port 0. This converts them to the form of
 * Kubernetes.
 */
const asInKubernetes = (fault: string): string =>
  fault
    .replace(/httpHeaders\[\d+\]\.name:/, "httpHeaders:")
    .replace(/\.port: Required value$/, ".port: Invalid value: 0: must be between 1 and 65535, inclusive");

/** A ProbeSpec as v1 writes it, with every default filled in. */
function asWritten(spec: ProbeSpec | null): unknown {
  if (spec === null) return null;
  const { handler, terminationGracePeriodSeconds: grace, initialDelaySeconds: delay, ...rest } = spec;
  return {
    ...handlerAsWritten(handler),
    ...rest,
    ...(delay === 0 ? {} : { initialDelaySeconds: delay }),
    ...(grace === null ? {} : { terminationGracePeriodSeconds: grace }),
  };
}
function handlerAsWritten(handler: ProbeSpec["handler"]): Fields {
  if ("exec" in handler) return { exec: { command: handler.exec } };
  if ("grpc" in handler) return { grpc: handler.grpc };
  if ("tcp" in handler) return { tcpSocket: withoutEmpty(handler.tcp) };
  const { headers, ...rest } = handler.http;
  return { httpGet: withoutEmpty({ ...rest, ...(headers.length === 0 ? {} : { httpHeaders: headers }) }) };
}
const withoutEmpty = (fields: Fields): Fields => Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== ""));
const ours = (containers: readonly PodContainer[]): unknown =>
  containers.map(({ probes }) => ({
    startup: asWritten(probes.startup),
    liveness: asWritten(probes.liveness),
    readiness: asWritten(probes.readiness),
  }));

describe("the probes of a manifest have the API server's", () => {
  test("faults, in its words", () => {
    for (const { name, spec, faults } of CASES) {
      expect(linesOf(podObject(spec)).map(asInKubernetes).toSorted(), name).toEqual(faults.toSorted());
    }
  });
  test("defaults", () => {
    const right = CASES.filter(({ faults }) => faults.length === 0);
    expect(right.length).toBeGreaterThan(50);
    for (const { name, spec, containers, init } of right) {
      const pod = readPod(podObject(spec)).spec;
      expect(ours(pod.containers), name).toEqual(containers);
      expect(ours(pod.initContainers), name).toEqual(init);
    }
  });
  test("the cases meet every rule", () => {
    const said = CASES.flatMap(({ faults }) => faults).join("\n");
    for (const words of [
      "must specify a handler",
      "more than 1 handler",
      "must be 1\n",
      "must not be set",
      "may not",
    ]) {
      expect(said).toContain(words);
    }
  });
});
