import { expect, test } from "vitest";
import type * as z from "zod";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import { type removal, removalList, removalSummary } from "../../api/http/openapi/list-answers.ts";
import { answer, fresh, get, type Of, post, problemOf, tokenFor } from "./api-subject.ts";
import {
  cameBack,
  containerPass,
  containerRemoval,
  imageRemoval,
  MINUTE,
  pass,
  recordPass,
  timeOf,
} from "./removal-rows.ts";
import { value } from "./store-rows.ts";

const textOf = (minutes: number): string => new Date(timeOf(minutes)).toISOString();

/**
 * A node on which an image was removed and pulled again, another image could not be removed, and a container was
 * removed.
 */
async function collected(of: Of): Promise<{ readonly node: string; readonly decisionId: string }> {
  const node = fresh("removals");
  const { store } = of();
  const app = imageRemoval("sha256:a1", { names: ["registry.example/app_x:1"], sizeBytes: 700 });
  const busy = imageRemoval("sha256:b2", { end: "failed", message: "rpc error: busy" });
  const { id } = await recordPass(store, node, pass(timeOf(0), [app, busy]));
  await recordPass(store, node, containerPass(timeOf(1), [containerRemoval("c1")]));
  await recordPass(store, node, pass(timeOf(7), [], { returns: [cameBack("sha256:a1", timeOf(7))] }));
  return { node, decisionId: id };
}

export function removals(of: Of): void {
  const list = async (node: string, query = "") =>
    answer(await get(of(), `/v1/nodes/${node}/removals${query}`), removalList);

  test("a removal is listed with its time, reason, end and when the image came back", async () => {
    const { node, decisionId } = await collected(of);
    const { removals: found, nextPageToken } = await list(node);
    const pod = { namespace: "shop", name: "web-0", uid: "u-web" };
    expect(found).toMatchObject([
      { kind: "container-gc", target: "container", id: "c1", pod, container: "server", bytes: null, againAt: null },
      { target: "image", id: "sha256:b2", end: "failed", message: "rpc error: busy", at: textOf(0), againAt: null },
      { kind: "image-gc", id: "sha256:a1", end: "removed", why: "space", bytes: 700, at: textOf(0), decisionId },
    ]);
    expect(found[2]).toMatchObject({ names: ["registry.example/app_x:1"], againAt: textOf(7), message: null });
    expect(nextPageToken).toBeNull();
  });

  test("filters narrow the list, a search is literal, and pages are complete", async () => {
    const { node } = await collected(of);
    const ids = async (query: string) => (await list(node, query)).removals.map(({ id }) => id);
    expect(await ids("?kind=container-gc")).toEqual(["c1"]);
    expect(await ids("?target=image&end=removed")).toEqual(["sha256:a1"]);
    expect(await ids(`?since=${textOf(1)}`)).toEqual(["c1"]);
    expect(await ids(`?until=${textOf(1)}`)).toEqual(["sha256:b2", "sha256:a1"]);
    expect(await ids("?q=APP_X")).toEqual(["sha256:a1"]);
    expect(await ids("?q=app%25x")).toEqual([]);
    expect(await ids("?q=shop/web-0")).toEqual(["c1"]);
    const seen: z.output<typeof removal>[] = [];
    for (let token: string | null = ""; token !== null; ) {
      const page: z.output<typeof removalList> = await list(
        node,
        `?limit=1${token === "" ? "" : `&pageToken=${token}`}`,
      );
      seen.push(...page.removals);
      token = page.nextPageToken;
    }
    expect(seen).toEqual((await list(node)).removals);
  });

  test("the summary has the bytes that removals freed and that pulling again cost", async () => {
    const { node } = await collected(of);
    const summary = async (query = "") =>
      answer(await get(of(), `/v1/nodes/${node}/removals/summary${query}`), removalSummary);
    const image = { id: "sha256:a1", runtimeHandler: "", names: ["registry.example/app_x:1"], bytes: 700 };
    expect(await summary()).toEqual({
      totals: {
        removed: 1,
        failed: 1,
        stopped: 0,
        bytes: 700,
        pulledAgain: 1,
        pulledAgainBytes: 700,
        medianAwayMs: 7 * MINUTE,
      },
      images: [{ ...image, times: 1, again: 1, againBytes: 700, lastRemovedAt: textOf(0), lastAgainAt: textOf(7) }],
      others: [{ target: "container", end: "removed", count: 1 }],
    });
    expect(await summary(`?since=${textOf(1)}&until=${textOf(2)}`)).toMatchObject({
      totals: { removed: 0 },
      images: [],
    });
  });

  test("an unchanged list is a 304", async () => {
    const { node } = await collected(of);
    for (const path of [`/v1/nodes/${node}/removals`, `/v1/nodes/${node}/removals/summary`]) {
      const etag = (await get(of(), path)).headers.get("etag") ?? "";
      expect(etag).toMatch(/^"[0-9a-f]{32}"$/);
      expect((await get(of(), path, { "if-none-match": etag })).status).toBe(304);
      await recordPass(of().store, node, pass(timeOf(9), [imageRemoval(fresh("image"))]));
      expect((await get(of(), path, { "if-none-match": etag })).status).toBe(200);
    }
  });
}

export function badRemovals(of: Of): void {
  test("all invalid parameters are named", async () => {
    const { node } = await collected(of);
    const issues = async (query: string, of1 = "") => {
      const problem = await problemOf(await get(of(), `/v1/nodes/${node}/removals${of1}?${query}`), "invalid_query");
      return problem.issues?.map(({ path }) => path);
    };
    expect(await issues("kind=cgroups&target=pod&end=planned&q=&limit=501&since=yesterday&until=1")).toEqual([
      "kind",
      "target",
      "end",
      "q",
      "limit",
      "since",
      "until",
    ]);
    expect(await issues(`q=${"x".repeat(4097)}`)).toEqual(["q"]);
    expect(await issues("limit=0")).toEqual(["limit"]);
    expect(await issues("pageToken=nonsense")).toEqual(["pageToken"]);
    expect(await issues("verdict=fails")).toEqual(["verdict"]);
    expect(await issues("q=a&q=b")).toEqual(["q"]);
    expect(await issues("q=a", "/summary")).toEqual(["q"]);
    expect(await issues("since=2026-13-01T00:00:00Z", "/summary")).toEqual(["since"]);
    for (const path of ["removals", "removals/summary"])
      await problemOf(await get(of(), `/v1/nodes/no-such/${path}`), "unknown_node");
  });

  test("reading needs the read scope, and a node's token reads its own node only", async () => {
    const [{ node }, { node: theirs }] = [await collected(of), await collected(of)];
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    const own = bearer(await tokenFor(of().store, ["read"], node));
    const decide = bearer(await tokenFor(of().store, ["decide"]));
    for (const path of ["removals", "removals/summary"]) {
      expect((await get(of(), `/v1/nodes/${node}/${path}`, own)).status).toBe(200);
      await problemOf(await get(of(), `/v1/nodes/${theirs}/${path}`, own), "forbidden_node");
      await problemOf(await get(of(), `/v1/nodes/${node}/${path}`, decide), "forbidden");
    }
  });
}

/** A snapshot `minutes` after the start whose runtime lists these images, with no image in use. */
const listing = (node: string | null, minutes: number, ids: readonly string[]) => ({
  observedAt: textOf(minutes),
  ...(node === null ? {} : { node: { metadata: { name: node } } }),
  kubeletConfiguration: { imageMinimumGCAge: "0s" },
  pods: [],
  runtime: { images: ids.map((id) => ({ id, repoTags: [`registry.example/${id}:1`], size: "100" })), containers: [] },
});

export function decidedRemovals(of: Of): void {
  const ask = async (node: string | null, minutes: number, ids: readonly string[], done?: readonly object[]) => {
    const body = { snapshot: listing(node, minutes, ids), ask: { operation: "delete-unused", ...(done && { done }) } };
    return answer(await post(of(), "/v1/decisions/image-gc", body), decisionAnswer);
  };
  const rows = async (node: string) =>
    (await answer(await get(of(), `/v1/nodes/${node}/removals`), removalList)).removals;

  test("a pass that is planned, carried out and reported twice is recorded once, and so is a returned image", async () => {
    const node = fresh("removals");
    await ask(node, 0, ["a", "b"]);
    await ask(node, 1, ["a", "b"]);
    expect(await rows(node)).toEqual([]);
    const removed = { id: "a", end: "removed" };
    const first = await ask(node, 1, ["a", "b"], [removed]);
    const both = [removed, { id: "b", end: "failed", message: "busy" }];
    const last = await ask(node, 1, ["a", "b"], both);
    expect(await ask(node, 1, ["a", "b"], both)).toEqual(last);
    expect(first.recorded && last.recorded).toBe(true);
    expect(await rows(node)).toMatchObject([
      { id: "b", end: "failed", message: "busy", why: "unused", operation: "delete-unused", decisionId: last.id },
      { id: "a", end: "removed", names: ["registry.example/a:1"], bytes: 100, at: textOf(1), decisionId: first.id },
    ]);
    await ask(node, 31, ["a", "b"]);
    await ask(node, 31, ["a", "b"], [removed]);
    await ask(node, 41, ["b"]);
    expect((await rows(node)).map(({ id, at, againAt }) => [id, at, againAt])).toEqual([
      ["a", textOf(31), null],
      ["b", textOf(1), null],
      ["a", textOf(1), textOf(31)],
    ]);
    const { totals } = await answer(await get(of(), `/v1/nodes/${node}/removals/summary`), removalSummary);
    expect(totals).toMatchObject({ removed: 2, failed: 1, pulledAgain: 1, medianAwayMs: 30 * MINUTE });
  });

  test("removals of a nameless node are not recorded, and replays record no removals", async () => {
    const node = fresh("removals");
    const done = [{ id: "a", end: "removed" }];
    await ask(null, 1, ["a"], done);
    expect(value(await of().store.listRemovals({ node: "unknown", limit: 5 })).items).toEqual([]);
    const { id } = await ask(node, 1, ["a"], done);
    const before = await rows(node);
    expect((await post(of(), `/v1/decisions/${id}/replay`, {})).status).toBe(200);
    expect(await rows(node)).toEqual(before);
  });
}
