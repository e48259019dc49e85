import { expect, test } from "vitest";
import type * as z from "zod";
import { KIND_EXAMPLES } from "../../api/documents/kind-examples.ts";
import { snapshotStored, storedSnapshot } from "../../api/http/openapi/answers.ts";
import { decisionAnswer, fullDecision } from "../../api/http/openapi/decision-answers.ts";
import { decisionList } from "../../api/http/openapi/list-answers.ts";
import { DECISION } from "../../api/http/openapi/operation.ts";
import { KINDS, type Kind, type Verdict } from "../../api/model/decision.ts";
import { REMEMBERING } from "../../api/model/kinds.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import realCgroups from "../data/real-node/cgroups.json" with { type: "json" };
import printedConfiguration from "../data/real-node/configz.json" with { type: "json" };
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { type ApiSubject, answer, exampleSnapshot, fresh, get, type Of, post, problemOf, send } from "./api-subject.ts";
import { capturedSnapshot } from "./captured.ts";
import { value } from "./store-rows.ts";

/** Kinds that need an ask about a pod. */
const ASKS: Partial<Record<Kind, { readonly ask: object }>> = {
  admission: { ask: { pod: "default/guar-int" } },
  preemption: { ask: { pod: "default/guar-int" } },
  resize: { ask: { pod: "default/burst-nolim", to: { cpu: "40m" } } },
  probes: { ask: { pod: "default/guar-int" } },
  "probe-guard": {
    ask: {
      guard: { windowSeconds: 30, least: { groups: 2 }, holdSeconds: 120 },
      groups: 2,
      failed: ["a", "b"].map((name) => ({ containerId: name, container: `default/${name}/c`, group: name })),
    },
  },
};
const VERDICT_OF: Partial<Record<Kind, Verdict>> = {
  eviction: "calm",
  "image-gc": "keeps",
  "container-gc": "keeps",
  "probe-guard": "keeps",
};

type Answered = z.output<typeof decisionAnswer>;
/** Checks that the record, the lists and the live updates contain the first and the last time of the decision. */
async function expectCounted(api: ApiSubject, node: string, first: Answered, again: Answered): Promise<void> {
  const record = await answer(await get(api, `/v1/decisions/${first.id}`), fullDecision);
  const twice = { times: 2, lastDecidedAt: again.decidedAt, lastSnapshotId: again.snapshotId };
  expect(record).toMatchObject({ decidedAt: first.decidedAt, snapshotId: first.snapshotId, ...twice });
  const { decisions } = await answer(await get(api, `/v1/nodes/${node}/decisions`), decisionList);
  expect(decisions).toEqual([expect.objectContaining({ id: first.id, decidedAt: first.decidedAt, ...twice })]);
  expect(await (await get(api, `/live?node=${node}`)).json()).toMatchObject({
    id: first.id,
    decidedAt: again.decidedAt,
  });
}

export function decisions(of: Of): void {
  test.each(KINDS)("%s on the captured node is decided and recorded, and can be read back in full", async (kind) => {
    const answered = await answer(
      await post(of(), `/v1/decisions/${kind}`, { snapshot: capturedSnapshot(), ...ASKS[kind] }),
      decisionAnswer,
    );
    expect(answered).toMatchObject({ kind, node: "n1", policyVersion: v1_36.policyVersion, recorded: true });
    expect(answered.profile).toEqual({ version: "1.36", exact: true, why: null });
    // this node has no device plugins, which the answer reports
    if (kind === "devices") expect(answered.needs).toContain("devices");
    // the node is under no pressure
    else if (kind !== "eviction") expect(answered.reasons.length).toBeGreaterThan(0);
    const full = await answer(await get(of(), `/v1/decisions/${answered.id}`), fullDecision);
    const { recorded: _, profile: _own, ...same } = answered;
    expect(full).toMatchObject(same);
    expect(full).toMatchObject({ verdict: VERDICT_OF[kind] ?? "decided", explain: "reasons", results: [] });
    if (ASKS[kind] === undefined && !REMEMBERING.has(kind)) expect(full).toMatchObject({ ask: null, pod: null });
  });

  test.each(KINDS)("the documented example of %s is decided", async (kind) => {
    const answered = await answer(await post(of(), `/v1/decisions/${kind}`, KIND_EXAMPLES[kind].body), decisionAnswer);
    expect(answered).toMatchObject({ kind, node: "n1" });
    expect(answered.reasons.length).toBeGreaterThan(0);
  });

  test("the cgroups of the captured node are decided as the real kubelet wrote them", async () => {
    const response = await post(of(), "/v1/decisions/cgroups", { snapshot: capturedSnapshot() });
    const { decision } = await answer(response, decisionAnswer);
    const plans = "cgroups" in decision ? decision.cgroups : [];
    expect(plans).toHaveLength(28);
    for (const { path, files } of plans) {
      const real = (realCgroups as unknown as Record<string, Record<string, string>>)[path];
      for (const file of files.filter((f) => !f.path.startsWith("hugetlb.")))
        expect(real?.[file.path], `${path} ${file.path}`).toBe(file.value);
    }
  });

  test("the same request is one decision, whatever its white space, and another request is another one", async () => {
    const node = fresh("node");
    const body = { snapshot: exampleSnapshot(node) };
    const first = await answer(await post(of(), "/v1/decisions/cgroups", body), decisionAnswer);
    const spaced = await answer(
      await post(of(), "/v1/decisions/cgroups", JSON.stringify({ ...body, explain: null }, null, 3)),
      decisionAnswer,
    );
    expect(spaced).toEqual(first);
    const off = await answer(await post(of(), "/v1/decisions/cgroups", { ...body, explain: "off" }), decisionAnswer);
    expect(off.reasons).toEqual([]);
    expect(off.decision).toEqual(first.decision);
    expect(off.snapshotId).toBe(first.snapshotId);
    expect(off.id).not.toBe(first.id);
    expect(
      value(await of().store.listDecisions({ node, limit: 10 }))
        .items.map((head) => head.id)
        .sort(),
    ).toEqual([first.id, off.id].sort());
  });

  test("an unchanged node gets the same decision, which is counted, and a changed one another", async () => {
    const node = fresh("node");
    const pods = [pod("a")];
    const base = { ...exampleSnapshot(node), cgroup: { version: 1 }, pods };
    const ask = async (over: Readonly<Record<string, unknown>>) =>
      answer(await post(of(), "/v1/decisions/cgroups", { snapshot: { ...base, ...over } }), decisionAnswer);
    const first = await ask({ sequence: 1 });
    const again = await ask({ sequence: 2, observedAt: "2026-01-31T12:00:00Z", bootId: "b" });
    expect(again.snapshotId).not.toBe(first.snapshotId);
    const counted = { times: 2, firstDecidedAt: first.decidedAt, firstSnapshotId: first.snapshotId };
    expect({ ...again, snapshotId: "", decidedAt: "" }).toEqual({
      ...first,
      again: counted,
      snapshotId: "",
      decidedAt: "",
    });
    await expectCounted(of(), node, first, again);
    for (const change of [{ pods: [] }, { cgroup: { version: 2 } }, { stats: { node: { rlimit: { maxpid: 77 } } } }]) {
      const changed = await ask({ sequence: 3, ...change });
      expect(changed.decision, JSON.stringify(change)).not.toEqual(first.decision);
      expect((await ask({ sequence: 4 })).decision).toEqual(first.decision);
    }
    const stored = await answer(await get(of(), `/v1/decisions/${again.id}`), fullDecision);
    expect(stored.decision).toEqual(first.decision);
    expect(stored.reasons).toEqual(first.reasons);
  });
}

function namelessNodes(of: Of): void {
  test("a node without a name is decided, and recorded as `unknown`", async () => {
    const snapshot = { node: { status: { capacity: { cpu: "2", memory: `${fresh("4").length}Gi` } } } };
    const answered = await answer(await post(of(), "/v1/decisions/allocatable", { snapshot }), decisionAnswer);
    expect(answered).toMatchObject({ node: "unknown", recorded: true, decision: { capacity: { cpu: "2" } } });
    expect((await answer(await get(of(), `/v1/decisions/${answered.id}`), fullDecision)).node).toBe("unknown");
  });

  test("the documented request is decided", async () => {
    await answer(await post(of(), "/v1/decisions/allocatable", DECISION), decisionAnswer);
  });
}

/** Values that are used in another form than the caller posted. */
export function reportOf(of: Of): void {
  namelessNodes(of);
  test("requests filled in from limits are listed in `assumed`, which is empty when all were posted", async () => {
    const resources = { requests: { cpu: "10m" }, limits: { cpu: "20m", memory: "64Mi" } };
    const pods = [pod("p", { spec: { containers: [{ name: "c", resources }] } })];
    const snapshot = exampleSnapshot(fresh("limited"), { pods });
    const path = "snapshot.pods[0].spec.containers[0].resources.requests.memory";
    // a repeated request is answered from the history
    for (const _ of [1, 2]) {
      const { assumed } = await answer(await post(of(), "/v1/decisions/cgroups", { snapshot }), decisionAnswer);
      expect(assumed).toEqual([{ path, value: "64Mi" }]);
    }
    const captured = await answer(
      await post(of(), "/v1/decisions/cgroups", { snapshot: capturedSnapshot() }),
      decisionAnswer,
    );
    expect(captured).not.toHaveProperty("assumed");
  });

  test("unknown configuration fields are listed in `leftOut` with their paths", async () => {
    const configured = (kubeletConfiguration: object) => ({
      snapshot: { ...exampleSnapshot(fresh("misspelt")), kubeletConfiguration },
    });
    const misspelt = configured({ kubeReservd: { cpu: "1" }, logging: { formatt: "json" }, x: 1 });
    // a repeated request is answered from the history
    for (const _ of [1, 2]) {
      const { leftOut } = await answer(await post(of(), "/v1/decisions/allocatable", misspelt), decisionAnswer);
      expect(leftOut).toEqual([
        {
          path: "snapshot.kubeletConfiguration.kubeReservd",
          message: 'strict decoding error: unknown field "kubeReservd"; `kubeReserved`?',
        },
        {
          path: "snapshot.kubeletConfiguration.logging.formatt",
          message: 'strict decoding error: unknown field "logging.formatt"; `format`?',
        },
        { path: "snapshot.kubeletConfiguration.x", message: 'strict decoding error: unknown field "x"' },
      ]);
    }
    const many = configured(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`field${i}`, i])));
    const reported = await answer(await post(of(), "/v1/decisions/allocatable", many), decisionAnswer);
    expect(reported.leftOut).toHaveLength(20);
    // fields that kubelets of other versions report in /configz are not listed in `leftOut`
    const printed = { ...printedConfiguration.kubeletconfig, ofAnotherVersion: true };
    for (const one of [{ maxPods: 60 }, { kubeletconfig: printed }]) {
      const known = await answer(await post(of(), "/v1/decisions/allocatable", configured(one)), decisionAnswer);
      expect(known).not.toHaveProperty("leftOut");
    }
    // a configuration with few fields was written by a person, not printed by a kubelet
    const written = configured({ kubeletconfig: { maxPod: 60 } });
    const { leftOut } = await answer(await post(of(), "/v1/decisions/allocatable", written), decisionAnswer);
    expect(leftOut).toMatchObject([{ path: "snapshot.kubeletConfiguration.kubeletconfig.maxPod" }]);
  });

  test.each([
    ["continue", { continue: "next" }],
    ["remainingItemCount", { remainingItemCount: 3 }],
  ])(
    "a single page of a PodList is refused for its metadata.%s, and a whole list is accepted",
    async (field, metadata) => {
      const page = exampleSnapshot(fresh("paged"), { pods: { kind: "PodList", metadata, items: [] } });
      const refused = await problemOf(await post(of(), "/v1/decisions/cgroups", { snapshot: page }), "invalid_input");
      expect(refused.issues).toMatchObject([{ path: `snapshot.pods.metadata.${field}` }]);
      const node = fresh("paged");
      const put = await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, { ...page, ...exampleSnapshot(node, page) });
      expect(put.status).toBe(400);
      const whole = { kind: "PodList", metadata: { resourceVersion: "7", continue: "" }, items: [] };
      const snapshot = exampleSnapshot(fresh("whole"), { pods: whole });
      await answer(await post(of(), "/v1/decisions/cgroups", { snapshot }), decisionAnswer);
    },
  );

  test("pods all of another node are refused, and of a cluster's list the node's own are used", async () => {
    const podOn = (nodeName: string, uid: string) =>
      pod(uid, { metadata: { uid }, spec: { nodeName, containers: [container("c", { cpu: "10m" })] } });
    const name = fresh("mixed");
    const others = { snapshot: exampleSnapshot(name, { pods: [podOn("other", "a"), podOn("other", "b")] }) };
    const problem = await problemOf(await post(of(), "/v1/decisions/cgroups", others), "needs_input");
    expect(problem.detail).toContain(`2 pods belong to other, the node is ${name}: post the pods of ${name}`);
    const cluster = { snapshot: exampleSnapshot(name, { pods: [podOn("other", "a"), podOn(name, "b")] }) };
    const { decision, reasons } = await answer(await post(of(), "/v1/decisions/cgroups", cluster), decisionAnswer);
    const pods = "cgroups" in decision ? decision.cgroups.filter(({ level }) => level === "pod") : [];
    expect(pods.map((plan) => plan.pod?.uid)).toEqual(["b"]);
    expect(reasons[0]).toMatchObject({ at: "snapshot.pods", because: [{ code: "pods_of_other_nodes" }] });
  });
}

export function snapshotsAndKeys(of: Of): void {
  test("a stored snapshot is decided by its id as if it had been posted", async () => {
    const node = fresh("node");
    const stored = await answer(
      await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, exampleSnapshot(node)),
      snapshotStored,
      201,
    );
    expect(stored).toMatchObject({ node, fresh: true });
    const again = await answer(
      await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, exampleSnapshot(node)),
      snapshotStored,
      200,
    );
    expect(again).toEqual({ ...stored, fresh: false });
    const byId = await answer(await post(of(), "/v1/decisions/cgroups", { snapshotId: stored.id }), decisionAnswer);
    const posted = await answer(
      await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) }),
      decisionAnswer,
    );
    expect(posted).toEqual(byId);
    expect(byId).toMatchObject({ node, snapshotId: stored.id });
  });

  test("a stored snapshot reads back in a form that can be posted again, without secrets", async () => {
    const node = fresh("node");
    const secret = fresh("secret");
    const app = {
      name: "app",
      image: "i",
      command: [secret],
      args: [secret],
      env: [{ name: "PASSWORD", value: secret }],
    };
    const pods = [pod("p", { metadata: { uid: fresh("uid") }, spec: { containers: [app] } })];
    const { id } = await answer(
      await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, exampleSnapshot(node, { pods })),
      snapshotStored,
      201,
    );
    const response = await get(of(), `/v1/snapshots/${id}`);
    const text = await response.clone().text();
    expect(text).not.toContain(secret);
    const read = await answer(response, storedSnapshot);
    expect(read).toMatchObject({ id, node, sequence: 1, observedAt: "2026-01-31T12:00:00.000Z" });
    const posted = await answer(
      await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, read.snapshot),
      snapshotStored,
      200,
    );
    expect(posted.id).toBe(id);
  });

  test("a snapshot without a node needs the missing parts", async () => {
    const { node: _, ...snapshot } = exampleSnapshot("x");
    const response = await post(of(), "/v1/decisions/cgroups", { snapshot });
    const problem = await problemOf(response, "needs_input");
    expect(problem.needs?.length).toBeGreaterThan(0);
  });

  test("an Idempotency-Key answers with its first decision, and conflicts with another request", async () => {
    const node = fresh("node");
    const key = { "idempotency-key": fresh("key") };
    const first = await answer(
      await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) }, key),
      decisionAnswer,
    );
    const retried = await answer(
      await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) }, key),
      decisionAnswer,
    );
    expect(retried).toEqual(first);
    const other = await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node, { sequence: 2 }) }, key);
    expect((await problemOf(other, "idempotency_conflict")).detail).toContain(first.id);
    expect(value(await of().store.listDecisions({ node, limit: 10 })).items).toHaveLength(1);
    const bad = await post(of(), "/v1/decisions/cgroups", DECISION, { "idempotency-key": "a b" });
    await problemOf(bad, "bad_request");
  });
}
