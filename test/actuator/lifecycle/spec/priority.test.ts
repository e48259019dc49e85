import { expect, test } from "vitest";
import { isCritical } from "../../../../actuator/lifecycle/decoded-pod.ts";
import { type Fields, linesOf, podObject, readPod } from "./sample.ts";

/** A pod as the manifest reader returns it; `source`: `file`, or `api` for ordinary pods. */
const manifest = (spec: Fields, source = "file"): Fields =>
  podObject(spec, {
    annotations: { "kubernetes.io/config.hash": "3f2b", "kubernetes.io/config.source": source },
  });

test.each([
  ["system-node-critical", 2_000_001_000],
  ["system-cluster-critical", 2_000_000_000],
])("a manifest of priority class %s has the priority %d", (priorityClassName, priority) => {
  for (const source of ["file", "api"]) {
    const pod = readPod(manifest({ priorityClassName }, source));
    expect(pod.spec.priority).toBe(priority);
    expect(pod.object["spec"]).toMatchObject({ priorityClassName, priority });
    expect(isCritical(pod)).toBe(true);
    // the pod's record contains this object, and is read again
    expect(readPod(pod.object as Fields).object).toBe(pod.object);
  }
});

test("an unknown priority class, or one that contradicts the priority, is refused by name", () => {
  expect(linesOf(manifest({ priorityClassName: "shop-high" }))).toEqual([
    'spec.priorityClassName: "shop-high" needs the API server, only system-cluster-critical and system-node-critical are ' +
      "known here: write the class's value in `priority`",
  ]);
  expect(linesOf(manifest({ priorityClassName: "system-node-critical", priority: 5 }, "api"))).toEqual([
    "spec.priority: Invalid value: 5: contradicts `priorityClassName` system-node-critical, which is 2000001000: remove it",
  ]);
  expect(linesOf(manifest({ priorityClassName: 7 }))).toEqual([
    "spec.priorityClassName: expected text, found `7` (in YAML it needs quotes)",
  ]);
});

test("a manifest with class and priority, or without a class, is unchanged", () => {
  for (const spec of [{ priorityClassName: "shop-high", priority: 5 }, { priority: 5 }, { priorityClassName: "" }]) {
    const object = manifest(spec);
    const pod = readPod(object);
    expect([pod.spec.priority, pod.object]).toEqual([(spec as { priority?: number }).priority ?? null, object]);
  }
});

test("a pod from an API server keeps the priority that the server set", () => {
  for (const spec of [{ priorityClassName: "shop-high" }, { priorityClassName: "system-node-critical", priority: 7 }])
    expect(readPod(podObject(spec)).spec.priority).toBe((spec as { priority?: number }).priority ?? null);
});
