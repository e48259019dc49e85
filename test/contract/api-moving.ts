import { expect, test } from "vitest";
import { historyImported } from "../../api/http/openapi/answers.ts";
import { MOVED } from "../../api/http/openapi/operation.ts";
import { MOVED_FORMAT } from "../../api/model/moved-row.ts";
import { answer, exampleSnapshot, fresh, get, type Of, post, problemOf, send, tokenFor } from "./api-subject.ts";
import { value } from "./store-rows.ts";

const [HEADER = ""] = MOVED.split("\n");
const LINES = { "content-type": "application/x-ndjson" };

export function moving(of: Of): void {
  const sent = (lines: readonly string[], headers = {}) =>
    send(of(), "POST", "/v1/history", lines.join("\n"), { ...LINES, ...headers });

  test("rows of an export are imported once, under their ids, and are replayed as they were", async () => {
    const node = fresh("moved");
    const decided = await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
    const { id } = (await decided.json()) as { id: string };
    const rows: object[] = [];
    for await (const step of of().store.exportRows({ node })) rows.push(...value(step).rows);
    const lines = rows.map((row) => JSON.stringify(row));
    const known = await answer(await sent([HEADER, ...lines]), historyImported);
    expect(known.known).toMatchObject({ decision: 1, snapshot: 1 });
    // the same of another node, which this history has not
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

  test("only an administrator imports, and what cannot be imported is refused with its line, whole", async () => {
    const token = await tokenFor(of().store, ["decide", "read"]);
    await problemOf(await sent([HEADER], { authorization: `Bearer ${token}` }), "forbidden");
    const refused = async (lines: readonly string[], message: RegExp) => {
      const problem = await problemOf(await sent(lines), "invalid_input");
      expect(problem.detail).toMatch(message);
    };
    await refused([], /^line 1: there is none/);
    await refused(['{"type":"end","rows":0}'], /^line 1: it is not the first line of an exported history/);
    await refused(
      [HEADER.replace(`"formatVersion":${MOVED_FORMAT}`, `"formatVersion":${MOVED_FORMAT + 1}`)],
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
}
