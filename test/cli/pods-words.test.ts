import { expect, test } from "vitest";
import type { PodRow, SeenEvent } from "../../actuator/status/node-status.ts";
import { headText } from "../../api/cli/inputs/daemon-status.ts";
import { podText, suggestionText } from "../../api/cli/pods/pods.ts";
import { podsText } from "../../api/cli/pods/pods-table.ts";
import { topText } from "../../api/cli/pods/top.ts";
import type { Terminal } from "../../api/cli/terminal.ts";
import { containerRow, earlier, nodeStatus, podRow, seenEvent, WEB } from "../kit/node-status.ts";

const WIDE = { columns: 200, paint: (_: string, text: string) => text } as unknown as Terminal;
const listed = (...pods: readonly PodRow[]): string => podsText(nodeStatus({ pods }), WIDE);
const waiting = (reason: string, message: string, tries: number, reported = message): PodRow =>
  podRow("web", {
    state: "pending",
    phase: "Pending",
    startedAt: null,
    reason,
    message: reported,
    refusal: { reason, message, tries, sinceMs: Date.parse(earlier(5)) },
  });

test.each([
  ["WaitingForVictims", "waits until shop/low ended"],
  ["FormerVersionEnding", "waits for the end of its former version, uid-1"],
])("a pod that waits for %s is not called refused", (reason, message) => {
  const text = listed(waiting(reason, message, 0));
  expect(text).toContain(`\n  waits for 5s: ${reason}: ${message}\n`);
  expect(text).not.toContain("refused");
});

test("the list shows unhealthy devices, and a pod's page the health of all", () => {
  const resources = [
    { resourceID: "gpu.example.com/n1/gpu-0", health: "Unhealthy", message: "too hot" },
    { resourceID: "gpu.example.com/n1/gpu-1", health: "Unknown" },
  ] as const;
  const pod = podRow("web", {
    containers: [containerRow("app", { allocatedResourcesStatus: [{ name: "claim:gpu", resources }] })],
  });
  const ill = "device gpu.example.com/n1/gpu-0 (claim:gpu) is Unhealthy: too hot\n";
  expect(listed(pod)).toContain(`\n  app: ${ill}`);
  expect(listed(pod)).not.toContain("Unknown");
  expect(podText(pod, nodeStatus({ pods: [pod] }), WIDE)).toContain(
    `\n  ${ill}  device gpu.example.com/n1/gpu-1 (claim:gpu) is Unknown\n`,
  );
});

test("a network that is not ready is shown as a line about the node", () => {
  const runtime = { name: "containerd", version: "1.6", notReady: ["container runtime network not ready: no cni"] };
  const message = headText({ status: nodeStatus({ runtime }), file: null }, WIDE);
  expect(message).toMatch(/^n1 · enforce · containerd 1\.6 .*\n! container runtime network not ready: no cni\n/);
});

test("another kubelet using the runtime is shown before all other problems", () => {
  const runtime = { name: "containerd", version: "1.6", notReady: ["container runtime network not ready: no cni"] };
  const otherKubelet = { since: "2026-11-23T14:04:47Z", signs: ["process"], message: "one is here" } as const;
  const problems = ["manifests: one is wrong", "pods: one is here"];
  const lines = headText({ status: nodeStatus({ runtime, otherKubelet, problems }), file: null }, WIDE).split("\n");
  expect(lines.slice(1, 4)).toEqual([
    "! pods: one is here",
    "! container runtime network not ready: no cni",
    "! manifests: one is wrong",
  ]);
});

test("a pod not decided yet is shown as waiting for admission", () => {
  const pod = podRow("web", { state: "pending", phase: "Pending", startedAt: null });
  expect(listed(pod)).toMatch(/\n {2}waits for admission: /);
  expect(podText(pod, nodeStatus({ pods: [pod] }), WIDE)).toMatch(/\nwaits for admission: /);
});

test("a refusal is shown once for its pod with the number of tries, without repeating status and event", () => {
  const message = "Node didn't have enough resource: cpu";
  const pod = waiting("OutOfcpu", message, 2, `Pod was rejected: ${message} (after 2 tries; it is tried again)`);
  const events: readonly SeenEvent[] = [
    seenEvent("OutOfcpu", pod, { type: "Warning", message }),
    seenEvent("OutOfcpu", pod, { type: "Warning", message: "another" }),
  ];
  const text = podText(pod, nodeStatus({ pods: [pod], events }), WIDE);
  expect(text.split(message)).toHaveLength(2);
  expect(text).toContain(`\nrefused 2 times in 5s, tried again when it could fit: OutOfcpu: ${message}\n`);
  expect(text).toContain("another");
});

test("the state of a pod never looked at is shown as unknown", () => {
  const unseen = podRow("a", {
    phase: "Unknown",
    seenAt: null,
    startedAt: null,
    containers: [containerRow("app", { state: "unknown", ready: false, id: null })],
  });
  expect(listed(unseen)).toMatch(/\nshop +a +– +– +– +Burstable +–\n/);
  const text = podText(unseen, nodeStatus({ pods: [unseen] }), WIDE);
  expect(text).toMatch(/^shop\/a {2}–\n/);
  expect(text).toMatch(/\napp +– +– +– /);
  expect(text).not.toMatch(/seen|ago/);
});

test("a sum without any measurement is unknown, and a partial sum says of how many", () => {
  const unmeasured = podRow("new");
  expect(topText([unmeasured], WIDE)).toContain("\n1 pod: cpu –, memory –\n");
  expect(topText([unmeasured, WEB], WIDE)).toContain("\n2 pods: cpu 250m (of 1), memory 240 MiB (of 1)\n");
  expect(topText([WEB], WIDE)).toContain("\n1 pod: cpu 250m, memory 240 MiB\n");
});

test("an unknown pod name is answered with similar names", () => {
  const names = ["oomer-n1", "web-0", "web-1", "web", "db-primary-n1"];
  const status = nodeStatus({ nodeName: "N1", pods: names.map((name) => podRow(name)) });
  const meant = (wanted: string) => suggestionText(wanted, status);
  expect(meant("oomer")).toBe(" is it `oomer-n1`?");
  expect(meant("shop/oomer")).toBe(" is it `shop/oomer-n1`?");
  expect(meant("db")).toBe(" is it `db-primary-n1`?");
  expect(meant("db-primry")).toBe(" is it `db-primary-n1`?");
  expect(meant("web-9")).toBe(" is it `web-0` or `web-1`?");
  expect(meant("nothing-like-it")).toBe("");
  expect(meant("")).toBe("");
});

test("containers stopped by others have a column of their own, if there are any", () => {
  const text = listed(podRow("db"), podRow("web", { stoppedByOthers: 3 }));
  expect(text).toMatch(/ RESTARTS +BY OTHERS +QOS /);
  expect(text).toMatch(/ web .* 3 +\w+/);
  expect(text).toMatch(/ db .* 0 +\w+/);
  expect(listed(podRow("db"))).not.toContain("BY OTHERS");
  const one = podRow("web", { stoppedByOthers: 3 });
  expect(podText(one, nodeStatus({ pods: [one] }), WIDE)).toContain(" · containers stopped by others: 3 · ");
});
