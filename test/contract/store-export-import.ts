import { expect, test } from "vitest";
import { type ExportRow, exportRowForm } from "../../api/model/export-row.ts";
import type { ExportFilter, Store } from "../../db/store.ts";
import { cameBack, imageRemoval, pass, recordPass } from "./removal-rows.ts";
import { outcomeRow } from "./store-outcomes.ts";
import { decisionRow, fresh, noise, resultRow, snapshotRow, T0, value } from "./store-rows.ts";

const HOUR_MS = 3_600_000;
/** The start of the hour that contains T0. */
const H0 = Math.floor(T0 / HOUR_MS) * HOUR_MS;
/** The time of the import. In a partitioned store the imported rows get no partition. */
const LATER = Math.floor(T0 / (24 * HOUR_MS)) * 24 * HOUR_MS;
/** How many units are imported together. */
const BATCH = 5;

/** The exported units: each row together with the rows that it needs. */
async function exported(
  store: Store,
  filter: ExportFilter,
  after?: string,
): Promise<readonly (readonly ExportRow[])[]> {
  const units: (readonly ExportRow[])[] = [];
  for await (const step of store.exportRows(filter, after))
    units.push(value(step).rows.map((row) => exportRowForm.parse(JSON.parse(JSON.stringify(row)))));
  return units;
}
const sum = (counts: Readonly<Record<string, number | undefined>>): number =>
  Object.values(counts).reduce<number>((all, one) => all + (one ?? 0), 0);
async function importAll(to: Store, batches: readonly (readonly ExportRow[])[], nowMs = LATER) {
  const counts = { added: 0, known: 0 };
  for (let i = 0; i < batches.length; i += BATCH) {
    const rows = batches.slice(i, i + BATCH).flat();
    const { added, known } = value(await to.importRows(rows, nowMs));
    counts.added += sum(added);
    counts.known += sum(known);
  }
  return counts;
}

/**
 * Records some rows of every type about a node: texts that rows share, slices, series, results, outcomes, removals,
 * facts.
 */
async function recordEveryType(store: Store, node: string) {
  const shared = JSON.stringify("shared".repeat(1000));
  const body = (own: string): string => `{"own":${JSON.stringify(own)},"shared":${shared}}`;
  const at = (text: string) => [[text.indexOf(shared), text.indexOf(shared) + shared.length]] as const;
  const ids: string[] = [];
  const snapshots: string[] = [];
  for (let i = 0; i < 4; i++) {
    const snapshotBody = body(`s${i}`);
    const snapshot = snapshotRow({
      node,
      sequence: i,
      observedAtMs: T0 + i * HOUR_MS,
      storedAtMs: T0 + i * HOUR_MS,
      body: snapshotBody,
      repeats: at(snapshotBody),
      labels: '{"zone":"a"}',
      kubeletVersion: "v1.36.3",
    });
    const text = body(`d${i % 3}`);
    const pod = { namespace: "shop", name: "web", uid: `uid-${i}` };
    const decision = decisionRow({
      node,
      snapshotId: snapshot.id,
      decidedAtMs: T0 + i * HOUR_MS,
      verdict: i === 1 ? "refused" : "decided",
      reason: i === 1 ? "OutOfcpu" : null,
      pod,
      ask: i === 2 ? noise(5000) : null,
      body: text,
      repeats: at(text),
    });
    const summary = `{"n":${i}}`;
    value(await store.record({ snapshot, decision, summary, facts: { cgroups: { i } } }));
    value(await store.addResults(decision.id, [resultRow({ okCount: i }), resultRow({ seq: 2 })]));
    ids.push(decision.id);
    snapshots.push(snapshot.id);
    // the decision is repeated in each of the next hours, the last time on another snapshot
    for (let again = 1; again <= i; again++) {
      const later = T0 + i * HOUR_MS + again * 1000;
      const last = snapshotRow({ node, sequence: 10 * i + again, storedAtMs: later, observedAtMs: later });
      value(
        await store.record({
          snapshot: last,
          decision: { ...decision, id: fresh("again"), snapshotId: last.id, decidedAtMs: later },
        }),
      );
      // snapshots between the first and the last will be removed by the next sweep
      if (again === i) snapshots.push(last.id);
    }
  }
  const large = decisionRow({ node, kind: "cpus", decidedAtMs: T0 + 5, body: noise(2_500_000), ask: noise(1_200_000) });
  value(await store.record({ decision: large }));
  ids.push(large.id);
  const outcome = outcomeRow({ node, snapshotId: snapshots[0] ?? null, atMs: T0 + 7, reason: "OutOfcpu" });
  value(await store.putOutcomes([outcome]));
  await recordPass(store, node, pass(T0, [imageRemoval("image-1")]));
  await recordPass(
    store,
    node,
    pass(T0 + HOUR_MS, [imageRemoval("image-2")], { returns: [cameBack("image-1", T0 + 9)] }),
  );
  value(await store.writeFacts(node, { long: "x".repeat(300_000), gone: null, other: [1, { two: null }] }, T0 + 1));
  value(await store.writeFacts(node, { gone: null }, T0 + 2));
  return { ids, snapshots };
}

/** Everything that a reader can learn about a node. */
async function reported(
  store: Store,
  node: string,
  { ids, snapshots }: { ids: readonly string[]; snapshots: readonly string[] },
) {
  const all: unknown[] = [];
  for (const id of ids) all.push(value(await store.getDecision(id)), value(await store.listResults(id)));
  for (const id of snapshots) all.push(value(await store.getSnapshot(id)));
  const heads = value(await store.listDecisions({ node, limit: 500 })).items;
  const outcomes = value(await store.listOutcomes({ node, limit: 500 })).items;
  const removals = value(await store.listRemovals({ node, limit: 500 })).items;
  return {
    all,
    heads,
    outcomes,
    removals,
    node: value(await store.getNode(node)),
    latest: value(await store.latestSnapshot(node)),
    facts: value(await store.readFacts(node)),
    fleet: value(await store.listFleet(H0, node)),
    tally: value(await store.tallyOf(node, H0)),
    hours: value(await store.listHours(H0, node)),
    kubelet: value(await store.tallyOutcomes({ node }, HOUR_MS)),
  };
}

export function exportAndImport(of: () => Store, another: () => Store): void {
  test.each(["to", "from"])(
    "moving a history %s it keeps everything readable, and importing it again adds nothing",
    async (way) => {
      const node = fresh("moved");
      const [from, to] = way === "to" ? [another(), of()] : [of(), another()];
      const ids = await recordEveryType(from, node);
      const before = await reported(from, node, ids);
      const batches = await exported(from, { node });
      // an interrupted import that is run again
      await importAll(to, batches.slice(0, BATCH));
      const counts = await importAll(to, batches);
      expect(counts.added).toBeGreaterThan(10);
      expect(await reported(to, node, ids)).toEqual(before);
      const again = (await importAll(to, batches)).added;
      // node and hour rows are written again unchanged
      const isRewritten = ({ type }: ExportRow) => type === "node" || type === "hour";
      expect(again).toBeLessThanOrEqual(batches.flat().filter(isRewritten).length);
      expect(await reported(to, node, ids)).toEqual(before);
      // exporting the imported history gives the same rows
      expect((await exported(to, { node })).flat()).toEqual(batches.flat());
    },
  );

  test("decisions repeated after the move are counted on the moved row, and a longer series replaces a shorter", async () => {
    const node = fresh("moved");
    const from = another();
    const body = JSON.stringify("same".repeat(1000));
    const decision = decisionRow({ node, body, repeats: [[0, body.length]] });
    const made = (store: Store, n: number) =>
      store.record({ decision: n === 0 ? decision : { ...decision, id: fresh("again"), decidedAtMs: T0 + n * 1000 } });
    for (let n = 0; n < 3; n++) value(await made(from, n));
    const early = await exported(from, { node });
    await importAll(of(), early);
    for (let n = 3; n < 6; n++) value(await made(from, n));
    const late = await exported(from, { node });
    await importAll(of(), late);
    await importAll(of(), early);
    const series = async () => value(await of().getDecision(decision.id))?.series?.times;
    expect(await series()).toBe(6);
    expect(value(await of().tallyOf(node, H0)).decisions).toBe(6);
    expect(value(await made(of(), 7))).toMatchObject({ fresh: false, decisionId: decision.id, again: { times: 7 } });
    expect(value(await of().tallyOf(node, H0)).decisions).toBe(7);
    await importAll(of(), late);
    expect(await series()).toBe(7);
  });

  test("an export can be limited in time, and be continued from a position", async () => {
    const node = fresh("moved");
    const from = another();
    const ids = await recordEveryType(from, node);
    const some = (await exported(from, { node, sinceMs: T0 + HOUR_MS, untilMs: T0 + 3 * HOUR_MS })).flat();
    const decisions = some.flatMap((row) => (row.type === "decision" && row.kind === "cgroups" ? [row.id] : []));
    expect(decisions).toEqual(ids.ids.slice(1, 3));
    expect(some.filter(({ type }) => type === "outcome")).toEqual([]);
    expect(some.filter(({ type }) => type === "node")).toHaveLength(1);
    const all = await exported(from, { node });
    const places: string[] = [];
    for await (const step of from.exportRows({ node })) places.push(value(step).place);
    for (const i of [0, 2, all.length - 2]) {
      const rest = (await exported(from, { node }, places[i])).flat().filter(({ type }) => !/text|snapshot/.test(type));
      expect(rest).toEqual(
        all
          .slice(i + 1)
          .flat()
          .filter(({ type }) => !/text|snapshot/.test(type)),
      );
      // the rest of the export is complete by itself
      value({ ok: true, value: await importAll(another(), await exported(from, { node }, places[i])) });
    }
  });
}

/** Exports the tokens of all nodes, so it runs while the other store has few rows. */
export function exportedTokens(of: () => Store, another: () => Store): void {
  test("tokens are exported on request only", async () => {
    const from = another();
    const token = {
      id: fresh("token"),
      name: "ci",
      hash: "ab".repeat(32),
      scopes: ["read"],
      node: "n",
      createdAtMs: T0,
      revokedAtMs: null,
    };
    value(await from.createToken(token));
    value(await from.record({ decision: decisionRow({ node: fresh("moved") }) }));
    const withTokens = (rows: readonly (readonly ExportRow[])[]) => rows.flat().some(({ type }) => type === "token");
    expect(withTokens(await exported(from, {}))).toBe(false);
    await importAll(of(), await exported(from, { tokens: true }));
    expect(value(await of().findToken(token.id))).toEqual(token);
    value(await of().revokeToken(token.id, T0 + 1));
    await importAll(of(), await exported(from, { tokens: true }));
    expect(value(await of().findToken(token.id))).toBeNull();
    // the token is revoked in the other store after the import
    const later = { ...token, id: fresh("token"), hash: "cd".repeat(32) };
    value(await from.createToken(later));
    await importAll(of(), await exported(from, { tokens: true }));
    value(await from.revokeToken(later.id, T0 + 1));
    await importAll(of(), await exported(from, { tokens: true }));
    expect(value(await of().findToken(later.id))).toBeNull();
  });
}

export function importFaults(of: () => Store, another: () => Store): void {
  test("a text with a wrong id and a row with a missing text are refused, and nothing of them is written", async () => {
    const node = fresh("moved");
    const from = another();
    await recordEveryType(from, node);
    const rows = (await exported(from, { node })).flat();
    const text = rows.find((row) => row.type === "text") as ExportRow & { type: "text" };
    const needs = rows.find((row) => row.type === "snapshot" && row.parts !== null) as ExportRow & { type: "snapshot" };
    const refused = (message: RegExp) => ({
      ok: false,
      error: { code: "corrupt", message: expect.stringMatching(message) },
    });
    const id = fresh("snapshot");
    const other = { ...text, text: `${text.text} ` };
    expect(await of().importRows([other, { ...needs, id }], LATER)).toMatchObject(refused(/is not what its id says/));
    const nowhere = { ...needs, id, parts: [[0, "0".repeat(32)] as [number, string]] };
    expect(await of().importRows([nowhere], LATER)).toMatchObject(refused(/neither in front of it nor in the history/));
    expect(value(await of().getSnapshot(id))).toBeNull();
  });
}
