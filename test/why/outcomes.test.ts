import { describe, expect, it } from "vitest";
import type { Comparison, PodOutcome } from "../../api/model/outcome.ts";
import type { PodExplanation } from "../../api/model/why.ts";
import type { SeenOutcome } from "../../api/service/why/outcomes.ts";
import { explainPod } from "../../api/service/why/pod-explanation.ts";
import { plainPaint } from "../../api/text/style.ts";
import { podExplanationText } from "../../api/text/why.ts";
import { AT, event, LATER, node, pod } from "../kit/api-objects.ts";
import { container } from "../kit/containers.ts";
import type { Json } from "../kit/snapshots.ts";
import { documentsOf } from "./ask.ts";

const ref = { namespace: "shop", name: "web", uid: "u-web" };
const agrees: Comparison = {
  verdict: "agrees",
  snapshotId: "s1",
  snapshotAgeMs: 3000,
  policyVersion: "kubelet-1.36+7",
  kubelet: { used: 3500 },
  nodewise: { used: 3500 },
  measured: [],
  difference: null,
  why: null,
};
const seen = (outcome: Json, compared: Partial<Comparison> = {}): SeenOutcome => ({
  id: "o1",
  node: "n1",
  outcome: { at: LATER, seenIn: ["event"], pod: ref, ...outcome } as PodOutcome,
  comparison: { ...agrees, ...compared },
  object: null,
});
const message = "Node didn't have enough resource: cpu, requested: 2000, used: 3500, capacity: 4000";
const refusal = { kind: "admission", admitted: false, reason: "OutOfcpu", message };

function reportOf(
  values: readonly unknown[],
  outcomes: readonly SeenOutcome[],
): { readonly story: PodExplanation; text: string } {
  const story = explainPod(documentsOf(values), { pod: "web", namespace: null }, { outcomes });
  if (!story.ok) throw new Error(story.error.message);
  return { story: story.value, text: podExplanationText(story.value, { columns: Infinity, paint: plainPaint }) };
}

describe("an outcome recorded by a collector in an explanation", () => {
  it("has its time and the verdict of its comparison", () => {
    const { story, text } = reportOf([pod({ status: { phase: "Failed", containerStatuses: [] } })], [seen(refusal)]);
    expect(story.findings[0]).toMatchObject({ code: "refused", since: LATER, compared: { verdict: "agrees" } });
    expect(text).toContain(`  kubelet ${LATER}  OutOfcpu: ${message}\n`);
    expect(text).toContain(
      "  compared  what Nodewise decides on the snapshot 3s before it (kubelet-1.36+7) agrees with the kubelet\n",
    );
  });
  it("has the first number that differs", () => {
    const difference = { field: "used", kubelet: 3500, nodewise: 3000 };
    const { text } = reportOf([node()], [seen(refusal, { verdict: "differs", difference })]);
    expect(text).toContain(
      "what Nodewise decides on the snapshot 3s before it (kubelet-1.36+7) differs: used 3000 in place of 3500\n",
    );
  });
  it("has the cause why it was not comparable", () => {
    const why = { code: "no_snapshot", message: "there is none", missing: [] } as const;
    const none = { snapshotAgeMs: null, policyVersion: null, nodewise: null };
    const { text } = reportOf([node()], [seen(refusal, { verdict: "not-comparable", ...none, why })]);
    expect(text).toContain("  compared  what Nodewise decides cannot be compared: there is none\n");
  });
  it("is shown once when a Kubernetes event reports it too", () => {
    const failed = pod({ status: { phase: "Failed", reason: "OutOfcpu", message: `Pod was rejected: ${message}` } });
    const { story } = reportOf([failed, event("OutOfcpu", message)], [seen(refusal)]);
    expect(story.findings[0]).toMatchObject({
      since: AT,
      words: [{ from: "status" }, { from: "event" }],
      compared: { verdict: "agrees" },
    });
  });
  it("supplies the message and time of a resize that a snapshot leaves out", () => {
    const conditions = [{ type: "PodResizePending", status: "True", reason: "Infeasible" }];
    const never = "In-place resize of static-pods is not supported";
    const snapshot = { node: node(), pods: [pod({ containers: [container("app")], status: { conditions } })] };
    const { story } = reportOf([snapshot], [seen({ kind: "resize", reason: "Infeasible", message: never })]);
    expect(story.findings[0]).toMatchObject({
      code: "resize-infeasible",
      since: LATER,
      numbers: { cause: "static-pod" },
      words: [{ from: "condition" }, { from: "outcome", reason: "ResizeInfeasible", message: never }],
      compared: { verdict: "agrees" },
    });
    // the outcome of another resize does not apply to this one
    const deferred = seen({ kind: "resize", reason: "Deferred", message: "later" });
    expect(reportOf([snapshot], [deferred]).story.findings[0]).toMatchObject({ since: null, compared: null });
  });
  it("of unprepared claims has the comparison of the last message", () => {
    const app = { name: "app", ready: false, restartCount: 0, state: { waiting: { reason: "ContainerCreating" } } };
    const spec = { resourceClaims: [{ name: "gpu", resourceClaimName: "gpu" }] };
    const waits = pod({ spec, status: { phase: "Pending", startTime: AT, containerStatuses: [app] } });
    const failed = (words: string, more: Partial<Comparison> = {}): SeenOutcome =>
      seen({ kind: "claims", prepared: false, message: `Failed to prepare dynamic resources: ${words}` }, more);
    const own = "prepare dynamic resources: NodePrepareResources failed for ResourceClaim gpu";
    const both = [failed("prepare dynamic resources: ResourceClaim gpu: not allocated", { verdict: "differs" })];
    both.push(failed(`${own}: no device 7`));
    const { story } = reportOf([waits], both);
    expect(story.findings[0]).toMatchObject({
      code: "claims-not-prepared",
      numbers: { cause: "driver", claim: "gpu" },
      compared: { verdict: "agrees" },
    });
    const said = event("FailedPrepareDynamicResources", `Failed to prepare dynamic resources: ${own}: no device 8`);
    expect(reportOf([waits, said], both).story.findings[0]).toMatchObject({ compared: { verdict: "agrees" } });
    expect(reportOf([waits, said], both.slice(0, 1)).story.findings[0]).toMatchObject({ compared: null });
  });
  it("of an admission or of prepared claims is no finding", () => {
    const came = seen({ kind: "admission", admitted: true, reason: "", message: "" });
    const prepared = seen({ kind: "claims", prepared: true, message: "" });
    const { story } = reportOf([pod()], [came, prepared]);
    expect(story.findings).toMatchObject([{ code: "healthy", words: [], compared: null }]);
  });
});
