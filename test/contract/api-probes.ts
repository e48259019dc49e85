import { expect, test } from "vitest";
import { storedSnapshot } from "../../api/http/openapi/answers.ts";
import { decisionAnswer, fullDecision, replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { answer, exampleSnapshot, fresh, get, type Of, post, problemOf } from "./api-subject.ts";

const HTTP = { httpGet: { path: "/healthz", port: 8080 } };
const probedPod = (probes: Json, uid?: string) =>
  pod("web", {
    metadata: { namespace: "shop", uid },
    spec: { containers: [container("app", undefined, undefined, probes)] },
  });
const LIVE = probedPod({ livenessProbe: { ...HTTP, periodSeconds: 5 } });

const asking =
  (of: Of) =>
  (asked: object): Promise<Response> =>
    post(of(), "/v1/decisions/probes", { snapshot: exampleSnapshot(fresh("node")), ask: asked });

export function probeRuns(of: Of): void {
  const ask = asking(of);

  test("a dry run of a posted pod has attempts, results, restarts and findings", async () => {
    const answered = await answer(await ask({ pod: LIVE, outcomes: "ok,ok,fail*3", seconds: 30 }), decisionAnswer);
    expect(answered).toMatchObject({
      verdict: "restarts",
      next: null,
      decision: {
        pod: { namespace: "shop", name: "web", uid: "" },
        restarts: 1,
        firstRestartAtMs: 20_000,
        endMs: 30_000,
        findings: [{ code: "liveness-before-started", path: "spec.containers[0].livenessProbe.initialDelaySeconds" }],
        quirks: [],
      },
    });
    const [container] = "findings" in answered.decision ? answered.decision.containers : [];
    expect(container?.probes[0]?.attempts.map(({ atMs, outcome }) => `${atMs / 1000} ${outcome}`)).toEqual([
      "0 ok",
      "5 ok",
      "10 fail",
      "15 fail",
      "20 fail",
      "25 fail",
      "30 fail",
    ]);
    const full = await answer(await get(of(), `/v1/decisions/${answered.id}`), fullDecision);
    expect(full).toMatchObject({ pod: { name: "web" }, decision: answered.decision, reasons: answered.reasons });
    const replayed = await answer(await post(of(), `/v1/decisions/${answered.id}/replay`, {}), replayAnswer);
    expect(replayed).toMatchObject({ same: true, differences: [] });
  });

  test("strict is a different question, and its result differs where the kubelet discards errors", async () => {
    const pod = probedPod({ livenessProbe: { ...HTTP, failureThreshold: 1 } });
    const kubelet = await answer(await ask({ pod, outcomes: "error", seconds: 20 }), decisionAnswer);
    expect(kubelet).toMatchObject({
      verdict: "decided",
      decision: { restarts: 0, quirks: [{ code: "error-discarded", issues: [106_682] }] },
    });
    const strict = await answer(await ask({ pod, outcomes: "error", seconds: 20, strict: true }), decisionAnswer);
    expect(strict).toMatchObject({ verdict: "restarts", decision: { strict: true, quirks: [] } });
  });
}

export function probesKeptAndRefused(of: Of): void {
  const ask = asking(of);
  test("commands, paths and headers of probes are never stored or answered", async () => {
    const secret = fresh("secret");
    const probes = {
      livenessProbe: { exec: { command: ["sh", "-c", secret] } },
      readinessProbe: {
        httpGet: { path: `/${secret}`, port: 80, httpHeaders: [{ name: "Authorization", value: secret }] },
      },
    };
    const pod = probedPod(probes, fresh("uid"));
    const snapshot = exampleSnapshot(fresh("node"), { pods: [pod] });
    for (const asked of [{ pod }, { pod: "shop/web" }]) {
      const answered = await answer(await post(of(), "/v1/decisions/probes", { snapshot, ask: asked }), decisionAnswer);
      const full = await get(of(), `/v1/decisions/${answered.id}`);
      const kept = await get(of(), `/v1/snapshots/${answered.snapshotId}`);
      expect((await full.clone().text()) + (await kept.clone().text())).not.toContain(secret);
      await answer(full, fullDecision);
      // the stored snapshot may be posted again, and leads to the same decision
      const { snapshot: again } = await answer(kept, storedSnapshot);
      const same = await answer(
        await post(of(), "/v1/decisions/probes", { snapshot: again, ask: { pod: "shop/web" } }),
        decisionAnswer,
      );
      expect(same.decision).toEqual(answered.decision);
    }
  });

  test("faults of probes are refused with their paths", async () => {
    const two = probedPod({ livenessProbe: { ...HTTP, exec: { command: ["true"] } } });
    const bad: readonly (readonly [object, string])[] = [
      [{ pod: two }, "ask.pod.spec.containers[0].livenessProbe.httpGet"],
      [{ pod: probedPod({ startupProbe: {} }) }, "ask.pod.spec.containers[0].startupProbe"],
      [
        { pod: probedPod({ readinessProbe: { ...HTTP, periodSeconds: -1 } }) },
        "ask.pod.spec.containers[0].readinessProbe.periodSeconds",
      ],
      [{ pod: LIVE, container: "db" }, "ask.container"],
      [{ pod: LIVE, outcomes: { liveness: "never" } }, "ask.outcomes.liveness"],
      [{ pod: LIVE, seconds: "long" }, "ask.seconds"],
    ];
    for (const [asked, path] of bad) {
      const problem = await problemOf(await ask(asked), "invalid_input");
      expect(problem.issues?.map((issue) => issue.path)).toEqual([path]);
    }
    expect((await problemOf(await ask({}), "needs_input")).needs).toEqual(["ask.pod"]);
    await problemOf(await ask({ pod: "shop/gone" }), "no_such_pod");
  });
}
