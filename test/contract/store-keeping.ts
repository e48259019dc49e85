import { expect, test } from "vitest";
import { MAX_BODY_LENGTH } from "../../db/body.ts";
import type { Store } from "../../db/store.ts";
import { decisionRow, fresh, noise, resultRow, snapshotRow, T0, value } from "./store-rows.ts";

export function resultsFactsTokens(of: () => Store): void {
  test("results are kept in the daemon's order, once each, and only for an existing decision", async () => {
    const decision = decisionRow({ node: fresh("node") });
    await of().record({ decision });
    const rows = [
      resultRow({ seq: 2 }),
      resultRow({ seq: 1, failedCount: 1, body: JSON.stringify("z".repeat(100_000)) }),
    ];
    expect(value(await of().addResults(decision.id, rows))).toEqual({ known: true, added: 2 });
    expect(value(await of().addResults(decision.id, [...rows, resultRow({ seq: 3 })]))).toEqual({
      known: true,
      added: 1,
    });
    const listed = value(await of().listResults(decision.id));
    expect(listed.map((row) => row.seq)).toEqual([1, 2, 3]);
    expect(listed[0]).toEqual(rows[1]);
    expect(value(await of().addResults("no-such", [resultRow()]))).toEqual({ known: false, added: 0 });
    expect(value(await of().addResults(decision.id, []))).toEqual({ known: true, added: 0 });
  });

  test("facts are set one by one, deleted with null, and never replaced by older ones", async () => {
    const node = fresh("node");
    const odd = { 'we"ird\\key\n': [1, { two: null }], __proto__x: "p", "": 0, no: false, big: 9007199254740991 };
    await of().writeFacts(node, { ...odd, gone: 1, left: undefined }, T0);
    expect(value(await of().readFacts(node))).toEqual({ ...odd, gone: 1 });
    await of().writeFacts(node, { gone: null, "": 1 }, T0 + 2);
    await of().writeFacts(node, { gone: "back", "": 2, later: true }, T0 + 1);
    expect(value(await of().readFacts(node))).toEqual({ ...odd, "": 1, later: true });
    value(await of().writeFacts(node, {}, T0));
  });

  test("a token is found by its hash until it is revoked", async () => {
    const before = value(await of().countTokens());
    const token = {
      id: fresh("token"),
      name: "ci",
      hash: fresh("hash"),
      scopes: ["decide", "read"],
      node: "n",
      createdAtMs: T0,
      revokedAtMs: null,
    };
    expect(value(await of().createToken(token)).fresh).toBe(true);
    expect(value(await of().createToken({ ...token, id: fresh("token") })).fresh).toBe(false);
    expect(value(await of().findToken(token.id))).toEqual(token);
    expect(value(await of().countTokens())).toEqual({ ...before, active: before.active + 1 });
    expect(value(await of().revokeToken(token.id, T0 + 1))).toEqual({ revoked: true });
    expect(value(await of().revokeToken(token.id, T0 + 2))).toEqual({ revoked: false });
    expect(value(await of().findToken(token.id))).toBeNull();
    expect(value(await of().countTokens())).toEqual({ ...before, revoked: before.revoked + 1 });
    expect(value(await of().listTokens())).toContainEqual({ ...token, revokedAtMs: T0 + 1 });
    const other = { ...token, id: fresh("token"), hash: fresh("hash") };
    expect(value(await of().createToken(other)).fresh).toBe(true);
    expect(value(await of().forgetRevokedTokens())).toEqual({ forgotten: 0 });
    for (const { id } of value(await of().listTokens())) await of().revokeToken(id, T0 + 3);
    const { revoked } = value(await of().countTokens());
    expect(value(await of().forgetRevokedTokens())).toEqual({ forgotten: revoked });
    expect(value(await of().countTokens())).toEqual({ active: 0, revoked: 0 });
    expect(value(await of().listTokens())).toEqual([]);
  });
}

export function largeBodies(of: () => Store): void {
  test("megabytes of repetitive JSON are stored and read back, as decision and as snapshot", async () => {
    const node = fresh("node");
    const body = JSON.stringify(
      Array.from({ length: 20_000 }, (_, i) => ({
        path: `/kubepods/pod${i % 7}`,
        value: "a repetitive thing, with é, that compresses well",
      })),
    );
    expect(Buffer.byteLength(body)).toBeGreaterThan(1_500_000);
    const snapshot = snapshotRow({ node, body: `[${body},${body}]` });
    const decision = decisionRow({ node, snapshotId: snapshot.id, body: `[${body},1]` });
    expect(value(await of().record({ snapshot, decision })).fresh).toBe(true);
    expect(value(await of().getDecision(decision.id))?.body).toBe(decision.body);
    expect(value(await of().latestSnapshot(node))?.body).toBe(snapshot.body);
    expect(value(await of().record({ snapshot, decision: decisionRow({ node, snapshotId: snapshot.id }) })).fresh).toBe(
      true,
    );
  });

  test("megabytes of incompressible text are stored and read back, as decision, ask and snapshot", async () => {
    const node = fresh("node");
    const body = noise(2_200_000);
    const shared = JSON.stringify("shared ".repeat(1000));
    const snapshot = snapshotRow({ node, body: `[${shared},${body}]` });
    const repeats = [[1, 1 + shared.length]] as const;
    const decision = decisionRow({ node, snapshotId: snapshot.id, body, ask: `[${body}]` });
    expect(value(await of().record({ snapshot: { ...snapshot, repeats }, decision })).fresh).toBe(true);
    expect(value(await of().record({ snapshot: { ...snapshot, repeats }, decision })).fresh).toBe(false);
    expect(value(await of().getDecision(decision.id))).toEqual(decision);
    for await (const item of of().streamDecisions({ node })) expect(value(item)).toMatchObject(decision);
    expect(value(await of().latestSnapshot(node))).toEqual(snapshot);
  });

  test("facts of megabytes are stored whole, replaced by shorter ones, and never by older ones", async () => {
    const node = fresh("node");
    // a piece would end within one of these characters
    const large = { list: ["😀".repeat(400_001), noise(1_200_000)] };
    value(await of().writeFacts(node, { large, other: large }, T0));
    expect(value(await of().readFacts(node))).toEqual({ large, other: large });
    const longer = { list: [noise(2_600_000), '"\\'.repeat(200_000)] };
    value(await of().writeFacts(node, { large: longer }, T0 - 1));
    value(await of().writeFacts(node, { other: "short" }, T0 + 1));
    expect(value(await of().readFacts(node))).toEqual({ large, other: "short" });
    value(await of().writeFacts(node, { large: longer, other: null }, T0 + 2));
    expect(value(await of().readFacts(node, ["large", "other"]))).toEqual({ large: longer });
  });

  test("a body too large to store is too_large and leaves no trace, and one just below fits", async () => {
    const node = fresh("node");
    const fits = decisionRow({ node, body: noise(1_700_000) });
    value(await of().record({ decision: fits }));
    expect(value(await of().getDecision(fits.id))?.body).toBe(fits.body);
    const tooLarge = JSON.stringify("x".repeat(MAX_BODY_LENGTH));
    const refusal = { ok: false, error: { code: "too_large" } };
    const decision = decisionRow({ node, body: tooLarge });
    expect(await of().record({ decision, snapshot: snapshotRow({ node }) })).toMatchObject(refusal);
    expect(await of().record({ decision: decisionRow(), snapshot: snapshotRow({ body: tooLarge }) })).toMatchObject(
      refusal,
    );
    expect(await of().record({ decision: decisionRow({ ask: tooLarge }) })).toMatchObject(refusal);
    expect(await of().putSnapshot(snapshotRow({ body: tooLarge }))).toMatchObject(refusal);
    expect(await of().addResults(fits.id, [resultRow({ body: noise(2_600_000) })])).toMatchObject(refusal);
    expect(await of().writeFacts(node, { tooLarge }, T0)).toMatchObject(refusal);
    expect(value(await of().getDecision(decision.id))).toBeNull();
    expect(value(await of().getNode(node))?.lastSnapshotId).toBeNull();
  });
}
