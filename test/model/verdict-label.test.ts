import { expect, test } from "vitest";
import { notesOf, verdictLabel } from "../../api/model/kinds.ts";

const pod = { namespace: "shop", name: "web", uid: "u" };

test("a pod admitted by an admission or manager decision is listed as `admitted`", () => {
  expect(verdictLabel({ kind: "admission", verdict: "decided", pod })).toBe("admitted");
  expect(verdictLabel({ kind: "cpus", verdict: "decided", pod })).toBe("admitted");
  // in the list of a node's newest decisions, which does not contain the pod
  expect(verdictLabel({ kind: "admission", verdict: "decided" })).toBe("admitted");
});

test("a decision about no pod is listed as `decided`, and other verdicts as they are", () => {
  expect(verdictLabel({ kind: "cpus", verdict: "decided", pod: null })).toBe("decided");
  expect(verdictLabel({ kind: "cpus", verdict: "decided" })).toBe("decided");
  expect(verdictLabel({ kind: "allocatable", verdict: "decided", pod: null })).toBe("decided");
  expect(verdictLabel({ kind: "probes", verdict: "decided", pod })).toBe("decided");
  expect(verdictLabel({ kind: "claims", verdict: "decided", pod })).toBe("decided");
  expect(verdictLabel({ kind: "claims", verdict: "decided" })).toBe("decided");
  expect(verdictLabel({ kind: "admission", verdict: "refused", pod })).toBe("refused");
  expect(verdictLabel({ kind: "of a newer version", verdict: "decided", pod })).toBe("decided");
});

test("an admission that preempts has the reason Preempting", () => {
  const reasonOf = (decision: object) => notesOf("admission", decision, null).reason;
  expect(reasonOf({ reason: "", preempt: [{}] })).toBe("Preempting");
  expect(reasonOf({ reason: "", preempt: [] })).toBeNull();
  expect(reasonOf({ reason: "OutOfcpu", preempt: [{}] })).toBe("OutOfcpu");
  expect(notesOf("preemption", { admit: true, preempt: [{}], remainingReasons: [] }, null).reason).toBe("Preempting");
});

test("a claims decision with a refused pod has the reason FailedPrepareDynamicResources", () => {
  const reasonOf = (decision: object) => notesOf("claims", decision, null).reason;
  const reason = "FailedPrepareDynamicResources";
  const started = { message: null, containers: [{ error: null }] };
  const failed = { message: "not allocated", containers: [] };
  const without = { message: null, containers: [{ error: null }, { error: "unable to get it" }] };
  expect(reasonOf({ refusal: null, pods: [started] })).toBeNull();
  expect(reasonOf({ refusal: null, pods: [started, failed] })).toBe(reason);
  // the claims are prepared, and a container does not start
  expect(reasonOf({ refusal: null, pods: [started, without] })).toBe("CreateContainerConfigError");
  expect(reasonOf({ refusal: { reason, message: "not allocated" }, pods: [] })).toBe(reason);
});
