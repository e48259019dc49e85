import { expect, test } from "vitest";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import { decisionList, nodeAnswer } from "../../api/http/openapi/list-answers.ts";
import { REMEMBERING } from "../../api/model/kinds.ts";
import { batch, line } from "./api-batch.ts";
import { memorySnapshot } from "./api-remembering.ts";
import { answer, exampleSnapshot, fresh, get, type Of, post, problemOf } from "./api-subject.ts";
import { diskSnapshot } from "./gc-snapshots.ts";
import { value } from "./store-rows.ts";

const UNRECORDED = { recorded: false, notRecorded: "not-wanted" };

/** Hypothetical questions: they are answered, and the history does not change. */
export function unrecorded(of: Of): void {
  const ask = async (kind: string, body: object, query = "") =>
    answer(await post(of(), `/v1/decisions/${kind}${query}`, body), decisionAnswer);

  test("are answered like recorded ones, and neither decision, node nor snapshot is stored", async () => {
    const node = fresh("node");
    const body = { snapshot: exampleSnapshot(node) };
    const whatIf = await ask("allocatable", body, "?record=false");
    expect(whatIf).toMatchObject(UNRECORDED);
    await problemOf(await get(of(), `/v1/decisions/${whatIf.id}`), "unknown_decision");
    await problemOf(await get(of(), `/v1/snapshots/${whatIf.snapshotId}`), "unknown_snapshot");
    await problemOf(await get(of(), `/v1/nodes/${node}`), "unknown_node");
    const recorded = await ask("allocatable", body, "?record=true");
    expect(recorded).toMatchObject({ recorded: true });
    expect(recorded).not.toHaveProperty("notRecorded");
    const { recorded: _, notRecorded: _why, decidedAt: _when, ...same } = whatIf;
    expect(recorded).toMatchObject(same);
  });

  test("never become the node's latest decision, for posted and for stored snapshots", async () => {
    const node = fresh("node");
    const { id, snapshotId } = await ask("allocatable", { snapshot: exampleSnapshot(node) });
    const seen = await answer(await get(of(), `/v1/nodes/${node}`), nodeAnswer);
    const changed = exampleSnapshot(node, { sequence: 99, kubeletConfiguration: { maxPods: 7 } });
    expect(await ask("allocatable", { snapshot: changed }, "?record=false")).toMatchObject(UNRECORDED);
    expect(await ask("cgroups", { snapshotId }, "?record=false")).toMatchObject(UNRECORDED);
    expect(await answer(await get(of(), `/v1/nodes/${node}`), nodeAnswer)).toEqual(seen);
    const listed = await answer(await get(of(), `/v1/nodes/${node}/decisions`), decisionList);
    expect(listed.decisions.map((head) => head.id)).toEqual([id]);
  });

  test("use the node's remembered facts, and do not change them", async () => {
    const node = fresh("node");
    const pass = (seconds: number, query = "") =>
      ask("eviction", { snapshot: memorySnapshot(node, seconds, 200) }, query);
    await pass(0);
    await pass(10);
    const before = value(await of().store.readFacts(node));
    expect(before).not.toEqual({});
    expect((await pass(40, "?record=false")).verdict).toBe("evicts");
    expect(value(await of().store.readFacts(node))).toEqual(before);
    // the grace period still counts from the first pass, and has not ended yet
    expect((await pass(20)).verdict).toBe("under-pressure");
    expect((await pass(50)).verdict).toBe("evicts");
  });

  test.each([...REMEMBERING])("of kind %s do not adopt the caller's facts", async (kind) => {
    const node = fresh("node");
    const snapshot = kind === "eviction" ? memorySnapshot(node, 0, 200) : diskSnapshot(node, 0, []);
    const { next } = await ask(kind, { snapshot }, "?record=false");
    await ask(kind, { snapshot, ask: { facts: next } }, "?record=false");
    expect(value(await of().store.readFacts(node))).toEqual({});
  });

  test("do not use up an Idempotency-Key", async () => {
    const headers = { "idempotency-key": fresh("key") };
    const send = async (query: string, over: object) => {
      const body = { snapshot: exampleSnapshot(fresh("node")), ...over };
      return answer(await post(of(), `/v1/decisions/allocatable${query}`, body, headers), decisionAnswer);
    };
    await send("?record=false", {});
    expect(await send("", { explain: "off" })).toMatchObject({ recorded: true });
  });

  test("are requested per line in a batch", async () => {
    const [kept, dropped] = [fresh("node"), fresh("node")];
    const lines = [line(kept), line(dropped, { record: false }), line(kept, { record: null, explain: "full" })];
    const answers = await batch(of(), lines.join("\n"));
    expect(answers.map((one) => "recorded" in one && one.recorded)).toEqual([true, false, true]);
    expect(answers[1]).toMatchObject({ ...UNRECORDED, node: dropped, kind: "cgroups" });
    expect(value(await of().store.getNode(dropped))).toBeNull();
    expect(value(await of().store.listDecisions({ node: kept, limit: 10 })).items).toHaveLength(2);
  });

  test("are refused for another value, and for `record` in a single request's body", async () => {
    const body = { snapshot: exampleSnapshot(fresh("node")) };
    const odd = await problemOf(await post(of(), "/v1/decisions/cgroups?record=no", body), "invalid_query");
    expect(odd.issues).toEqual([{ path: "record", message: "must be true or false" }]);
    const inBody = await post(of(), "/v1/decisions/cgroups", { ...body, record: false });
    expect((await problemOf(inBody, "invalid_input")).issues).toMatchObject([{ path: "record" }]);
    const [answered] = await batch(of(), line(fresh("node"), { record: "false" }));
    expect(answered).toMatchObject({ problem: { code: "invalid_input", issues: [{ path: "record" }] } });
  });
}
