import { expect, test } from "vitest";
import type * as z from "zod";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import { reservesAdvice } from "../../api/model/advice.ts";
import { historyReplay } from "../../api/service/replay/replay-answer.ts";
import { measuredSnapshot } from "../kit/summary.ts";
import {
  type ApiSubject,
  answer,
  exampleSnapshot,
  fresh,
  get,
  type Of,
  post,
  problemOf,
  send,
  tokenFor,
  untilWhole,
} from "./api-subject.ts";

const PATH = "advice/reserves";
const advise = async (api: ApiSubject, node: string, query = ""): Promise<z.output<typeof reservesAdvice>> =>
  answer(await get(api, `/v1/nodes/${node}/${PATH}${query}`), reservesAdvice);

/**
 * Records a decision on each of `count` snapshots, an hour apart; the kubelet uses 101 MiB in the first, 102 MiB in the
 * second and so on.
 */
async function measuredNode(api: ApiSubject, node: string, count: number): Promise<void> {
  for (let hour = 1; hour <= count; hour++) {
    const body = { snapshot: measuredSnapshot(hour, 100 + hour, node) };
    await answer(await post(api, "/v1/decisions/eviction", body), decisionAnswer);
    // a snapshot for another decision kind is the same measurement
    await answer(await post(api, "/v1/decisions/cgroups", body), decisionAnswer);
  }
}

/** Advice on a node's reservations, computed from its recorded snapshots. */
export function advice(of: Of): void {
  test("uses the measurements in the node's recorded snapshots, each snapshot once", async () => {
    const node = fresh("node");
    await measuredNode(of(), node, 6);
    const advised = await advise(of(), node, "?percentile=100&margin=0");
    expect(advised).toMatchObject({ node, percentile: 100, marginPercent: 0, measurements: { count: 6 } });
    expect(advised.measurements).toMatchObject({ from: "2026-11-14T01:00:00.000Z", to: "2026-11-14T06:00:00.000Z" });
    expect(advised.patch.kubeReserved).toEqual({ cpu: "70m", memory: "256Mi" });
    const half = await advise(of(), node, "?percentile=50&margin=0");
    expect(half.patch.kubeReserved?.["memory"]).toBe("253Mi");
    const usual = await advise(of(), node);
    expect(usual).toMatchObject({ percentile: 99, marginPercent: 10 });
    expect(usual.notes.map(({ code }) => code)).toContain("few-measurements");
    const replay = await untilWhole(
      async () =>
        answer(await post(of(), "/v1/replay", { node, kubeletConfigurationPatch: usual.patch }), historyReplay),
      ({ nextPageToken }) => nextPageToken === null,
    );
    expect(replay.counts).toMatchObject({ replayed: 7, decisions: 12 });
  });

  test("reads at most the limit of measurements, with a note that they are a sample", async () => {
    const node = fresh("node");
    await measuredNode(of(), node, 8);
    const advised = await advise(of(), node, "?limit=3");
    expect(advised.measurements.count).toBeLessThanOrEqual(3);
    expect(advised.measurements.to).toBe("2026-11-14T08:00:00.000Z");
    expect(advised.notes.map(({ code }) => code)).toContain("sampled");
  });

  test("is empty for a time without decisions, and for snapshots without stats", async () => {
    const node = fresh("node");
    await measuredNode(of(), node, 1);
    const before = await advise(of(), node, "?until=2020-01-01T00:00:00Z");
    expect(before).toMatchObject({ measurements: { count: 0 }, reserves: [], patch: {} });
    const bare = fresh("node");
    await answer(await post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(bare) }), decisionAnswer);
    const none = await advise(of(), bare);
    expect(none.notes.map(({ code }) => code)).toEqual(["not-measured"]);
  });

  test("is refused for an unknown node, for invalid parameters, and with another node's token", async () => {
    await problemOf(await get(of(), `/v1/nodes/${fresh("none")}/${PATH}`), "unknown_node");
    const node = fresh("node");
    await measuredNode(of(), node, 1);
    const bad = await get(of(), `/v1/nodes/${node}/${PATH}?percentile=0&margin=1.5&limit=9999&since=yesterday`);
    const problem = await problemOf(bad, "invalid_query");
    expect(problem.issues?.map(({ path }) => path)).toEqual(["since", "percentile", "margin", "limit"]);
    const headers = { authorization: `Bearer ${await tokenFor(of().store, ["read"], fresh("other"))}` };
    await problemOf(await send(of(), "GET", `/v1/nodes/${node}/${PATH}`, undefined, headers), "forbidden_node");
  });
}
