import { expect, test } from "vitest";
import { historyExported, historyImported } from "../../api/http/openapi/answers.ts";
import { EXPORT_LINES } from "../../api/http/openapi/operation.ts";
import { EXPORT_FORMAT } from "../../api/model/export-row.ts";
import { encodeResume } from "../../api/service/export-page.ts";
import { answer, exampleSnapshot, fresh, get, type Of, post, problemOf, send, tokenFor } from "./api-subject.ts";
import { value } from "./store-rows.ts";

const [HEADER = ""] = EXPORT_LINES.split("\n");
const LINES = { "content-type": "application/x-ndjson" };

export function exportAndImport(of: Of): void {
  const sent = (lines: readonly string[], headers = {}) =>
    send(of(), "POST", "/v1/history", lines.join("\n"), { ...LINES, ...headers });

  test("exported rows are imported once under their ids, and replay the same", async () => {
    const node = fresh("moved");
    const decided = await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
    const { id } = (await decided.json()) as { id: string };
    const rows: object[] = [];
    for await (const step of of().store.exportRows({ node })) rows.push(...value(step).rows);
    const lines = rows.map((row) => JSON.stringify(row));
    const known = await answer(await sent([HEADER, ...lines]), historyImported);
    expect(known.known).toMatchObject({ decision: 1, snapshot: 1 });
    // the same rows for another node, which this history does not have
    const other = fresh("moved");
    const [otherId, otherSnapshot] = ["1".padStart(32, "0"), "2".padStart(32, "0")];
    const decision = rows.find((row) => (row as { type: string }).type === "decision") as { snapshotId: string };
    const renamed = lines.map((line) =>
      line
        .replaceAll(`"node":"${node}"`, `"node":"${other}"`)
        .replaceAll(id, otherId)
        .replaceAll(decision.snapshotId, otherSnapshot),
    );
    const added = await answer(await sent([HEADER, ...renamed]), historyImported);
    expect(added.added).toMatchObject({ decision: 1, snapshot: 1 });
    expect((await answer(await sent([HEADER, ...renamed]), historyImported)).added).not.toHaveProperty("decision");
    const [first, second] = await Promise.all(
      [id, otherId].map(
        async (one) => (await (await get(of(), `/v1/decisions/${one}`)).json()) as { decision: object },
      ),
    );
    expect(second?.decision).toEqual(first?.decision);
    const replayed = await post(of(), `/v1/decisions/${otherId}/replay`, {});
    expect(await replayed.json()).toMatchObject({ same: true });
  });

  test("importing needs the admin scope, and an import with an invalid line is refused as a whole", async () => {
    const token = await tokenFor(of().store, ["decide", "read"]);
    await problemOf(await sent([HEADER], { authorization: `Bearer ${token}` }), "forbidden");
    const refused = async (lines: readonly string[], message: RegExp) => {
      const problem = await problemOf(await sent(lines), "invalid_input");
      expect(problem.detail).toMatch(message);
    };
    await refused([], /^line 1: there is none/);
    await refused(['{"type":"end","rows":0}'], /^line 1: it is not the first line of an exported history/);
    await refused(
      [HEADER.replace(`"formatVersion":${EXPORT_FORMAT}`, `"formatVersion":${EXPORT_FORMAT + 1}`)],
      /^line 1: it was written by nodewise [\d.]+ in form 2, and this one reads up to 1: upgrade/,
    );
    await refused([HEADER, "{"], /^line 2: it is no JSON/);
    await refused([HEADER, '{"type":"hour"}'], /^line 2: hourMs: /);
    await refused(
      [
        HEADER,
        '{"type":"token"}'.replace(
          "}",
          ',"id":"t","name":"t","hash":"' +
            "0".repeat(64) +
            '","scopes":["admin"],"node":null,"createdAtMs":1,"revokedAtMs":null}',
        ),
      ],
      /^line 2: a line of type `token` cannot be imported over HTTP/,
    );
    await refused(
      [HEADER, JSON.stringify({ type: "text", id: "0".repeat(32), text: "x" })],
      /text `0+` is not what its id says/,
    );
  });
  exporting(of, sent);
}

type Sent = (lines: readonly string[]) => Promise<Response>;
function exporting(of: Of, sent: Sent): void {
  const page = async (query: Readonly<Record<string, string>>) =>
    answer(await get(of(), `/v1/history?${new URLSearchParams(query)}`), historyExported);
  const pages = async (query: Readonly<Record<string, string>>) => {
    const found = [await page(query)];
    for (let token = found[0]?.nextPageToken; token; token = found.at(-1)?.nextPageToken)
      found.push(await page({ ...query, pageToken: token }));
    return found;
  };
  /** Each row as a line, without duplicates. */
  const linesOf = (rows: readonly object[]): readonly string[] => [...new Set(rows.map((row) => JSON.stringify(row)))];

  test("the pages of an export have the store's rows in order, and can be imported", async () => {
    const node = fresh("exported");
    for (const sequence of [1, 2, 3]) {
      const kubeletConfiguration = { podPidsLimit: 200 + sequence };
      await post(of(), "/v1/decisions/cgroups", {
        snapshot: exampleSnapshot(node, { sequence, kubeletConfiguration }),
      });
    }
    const whole: object[] = [];
    for await (const step of of().store.exportRows({ node })) whole.push(...value(step).rows);
    const found = await pages({ node, limit: "2" });
    expect(found.length).toBeGreaterThan(2);
    const rows = found.flatMap((one) => one.rows);
    expect(linesOf(rows)).toEqual(linesOf(whole));
    expect(new Set(found.map(({ header }) => JSON.stringify(header))).size).toBe(1);
    expect(found[0]?.header).toMatchObject({ node, oldestAt: found[0]?.reachedAt && expect.any(String) });
    expect(found[0]?.reachedAt).not.toBeNull();
    const progress = found.map((one) => one.progress);
    expect(progress).toEqual([...progress].sort((a, b) => a - b));
    expect(progress.at(-1)).toBe(1);
    for (const { header, rows: some } of found) {
      const known = await answer(await sent([JSON.stringify(header), ...linesOf(some)]), historyImported);
      for (const type of ["decision", "snapshot"]) expect(known.added).not.toHaveProperty(type);
    }
    const later = await page({ node, since: new Date(Date.now() + 60_000).toISOString() });
    expect(later.rows.filter(({ type }) => type === "decision" || type === "outcome")).toEqual([]);
    expect(later.header.oldestAt).toBeNull();
  });

  test("exporting needs the admin scope, and an unknown node or a foreign page token is refused", async () => {
    const token = await tokenFor(of().store, ["decide", "read"]);
    const node = fresh("exported");
    await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
    const asked = (query: string, headers = {}) => get(of(), `/v1/history?${query}`, headers);
    await problemOf(await asked(`node=${node}`, { authorization: `Bearer ${token}` }), "forbidden");
    await problemOf(await asked(`node=${fresh("nowhere")}`), "unknown_node");
    const { nextPageToken } = await page({ node, limit: "1" });
    const refused = async (query: string, message: RegExp) =>
      expect((await problemOf(await asked(query), "invalid_query")).detail).toMatch(message);
    await refused(`pageToken=${nextPageToken}`, /^the page token belongs to an export of the node `/);
    await refused(`node=${node}&pageToken=abcd`, /^the page token is not one that an export gave out/);
    const { header } = await page({ node, limit: "1" });
    for (const place of ["decisions/x/1", "nowhere/1", "hours/1"])
      await refused(`node=${node}&pageToken=${encodeResume(header, place)}`, /is no place of an export/);
    const damaged = encodeResume({ ...header, since: "monday" }, "decisions/1/1");
    await refused(`node=${node}&pageToken=${damaged}`, /^the page token is not one that an export gave out/);
    await refused(`node=${node}&limit=0`, /^limit: must be a number from 1 to 500/);
    await refused(`node=${node}&since=monday`, /^since: must be an RFC 3339 time/);
  });
}
