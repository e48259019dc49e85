import { expect, test } from "vitest";
import type { Cursor, DecisionRow } from "../../db/rows.ts";
import type { DecisionFilter, Store } from "../../db/store.ts";
import { decisionRow, fresh, T0, value } from "./store-rows.ts";

/** The ids of a stream's decisions, oldest first. */
export async function idsOf(store: Store, filter: DecisionFilter, after?: Cursor): Promise<string[]> {
  const ids: string[] = [];
  for await (const item of store.streamDecisions(filter, after)) ids.push(value(item).id);
  return ids;
}

async function pages(store: Store, query: DecisionFilter & { limit: number }): Promise<string[][]> {
  const found: string[][] = [];
  for (let pageToken: string | null | undefined; pageToken !== null; ) {
    const page = value(await store.listDecisions(pageToken === undefined ? query : { ...query, pageToken }));
    found.push(page.items.map((item) => item.id));
    pageToken = page.nextPageToken;
  }
  return found;
}

export function lists(of: () => Store): void {
  test("pages run from newest to oldest without gaps or repetitions, also among equal times", async () => {
    const node = fresh("node");
    const rows = Array.from({ length: 23 }, (_, i) => decisionRow({ node, decidedAtMs: T0 + Math.floor(i / 6) }));
    for (const decision of rows) value(await of().record({ decision }));
    const expected = rows.map((row) => row.id).reverse();
    expect((await pages(of(), { node, limit: 5 })).map((page) => page.length)).toEqual([5, 5, 5, 5, 3]);
    expect((await pages(of(), { node, limit: 5 })).flat()).toEqual(expected);
    expect(await pages(of(), { node, limit: 23 })).toEqual([expected]);
    expect((await pages(of(), { node, limit: 0 })).flat()).toEqual(expected);
    expect((await idsOf(of(), { node })).reverse()).toEqual(expected);
  });

  test("a row recorded between two pages neither repeats nor hides another", async () => {
    const node = fresh("node");
    const rows = Array.from({ length: 4 }, (_, i) => decisionRow({ node, decidedAtMs: T0 + i }));
    for (const decision of rows) await of().record({ decision });
    const first = value(await of().listDecisions({ node, limit: 2 }));
    await of().record({ decision: decisionRow({ node, decidedAtMs: T0 + 9 }) });
    const second = value(await of().listDecisions({ node, limit: 2, pageToken: first.nextPageToken ?? "" }));
    expect(second.items.map((item) => item.id)).toEqual([rows[1]?.id, rows[0]?.id]);
  });

  test("decisions are found by an id prefix", async () => {
    const node = fresh("node");
    const rest = "0".repeat(22);
    const ids = ["abcdef0123", "abcdef0124", "abcdef012f", "abcdef0130"].map((digits) => `${digits}${rest}`);
    for (const id of ids)
      value(
        await of().record({
          decision: decisionRow({ node, id, decidedAtMs: T0 + Number.parseInt(id.slice(8, 10), 16) }),
        }),
      );
    const found = async (digits: string) => value(await of().decisionsBeginning(digits));
    expect(await found("abcdef012")).toEqual(ids.slice(0, 3).map((id) => ({ id, node })));
    expect(await found("abcdef0124")).toEqual([{ id: ids[1], node }]);
    expect(await found("abcdef014")).toEqual([]);
  });

  test("each filter keeps the rows that it names, alone and combined", async () => {
    const node = fresh("node");
    const pod = { namespace: "a", name: fresh("web"), uid: fresh("uid") };
    const twin = { ...pod, namespace: "b", uid: fresh("uid") };
    const one = decisionRow({ node, kind: "allocatable", decidedAtMs: T0, pod });
    const two = decisionRow({ node, verdict: "refused", decidedAtMs: T0 + 10, pod: twin });
    const three = decisionRow({ node, decidedAtMs: T0 + 20 });
    for (const decision of [one, two, three]) await of().record({ decision });
    const ids = async (filter: DecisionFilter): Promise<string[]> => {
      const streamed = await idsOf(of(), filter);
      expect((await pages(of(), { ...filter, limit: 2 })).flat().reverse()).toEqual(streamed);
      return streamed;
    };
    expect(await ids({ node })).toEqual([one.id, two.id, three.id]);
    expect(await ids({ node, kind: "allocatable" })).toEqual([one.id]);
    expect(await ids({ node, verdict: "refused" })).toEqual([two.id]);
    expect(await ids({ node, sinceMs: T0 + 10 })).toEqual([two.id, three.id]);
    expect(await ids({ node, untilMs: T0 + 10 })).toEqual([one.id]);
    expect(await ids({ pod: pod.uid })).toEqual([one.id]);
    expect(await ids({ pod: pod.name })).toEqual([one.id, two.id]);
    expect(await ids({ pod: `b/${pod.name}` })).toEqual([two.id]);
    expect(
      await ids({ pod: pod.name, node, kind: "cgroups", verdict: "refused", sinceMs: T0, untilMs: T0 + 11 }),
    ).toEqual([two.id]);
    expect(await ids({ pod: "c/nobody" })).toEqual([]);
  });

  test.each(["", "x", "MTIz", "!!!!", "a".repeat(500), "MS4xLjE", "LTEuLTE"])(
    "the invalid page token `%s` is bad_page_token",
    async (pageToken) => {
      expect(await of().listDecisions({ limit: 1, pageToken })).toMatchObject({
        ok: false,
        error: { code: "bad_page_token" },
      });
    },
  );

  reasons(of);
  kubelets(of);
  streams(of);
}

function kubelets(of: () => Store): void {
  test("decisions are filtered by kubelet version in both forms of policy versions, alone and combined", async () => {
    const [a, b] = [fresh("node"), fresh("node")];
    const pod = { namespace: "a", name: fresh("web"), uid: fresh("uid") };
    const policies = ["kubelet-1.36.3+6", "kubelet-1.36+7", "kubelet-1.37+3", "kubelet-1.3+1"];
    const rows = Array.from({ length: 16 }, (_, i) =>
      decisionRow({
        node: i % 3 === 0 ? b : a,
        policyVersion: policies[i % 4] as string,
        kind: i % 5 === 0 ? "admission" : "cgroups",
        verdict: i < 8 ? "decided" : "refused",
        reason: i < 8 ? null : "OutOfcpu",
        decidedAtMs: T0 + i,
        pod: i === 6 ? pod : null,
      }),
    );
    for (const decision of rows) value(await of().record({ decision }));
    const own = new Set(rows.map(({ id }) => id));
    const ids = async (filter: DecisionFilter): Promise<readonly string[]> => {
      const streamed = await idsOf(of(), { sinceMs: T0, untilMs: T0 + 16, ...filter });
      const query = { sinceMs: T0, untilMs: T0 + 16, ...filter, limit: 3 };
      expect((await pages(of(), query)).flat().reverse()).toEqual(streamed);
      return streamed.filter((id) => own.has(id));
    };
    const wanted = (version: number, keep: (row: DecisionRow, i: number) => boolean = () => true) =>
      rows.filter((row, i) => (version === 36 ? i % 4 < 2 : i % 4 === 2) && keep(row, i)).map(({ id }) => id);
    const kubelet = "1.36";
    expect(await ids({ kubelet })).toEqual(wanted(36));
    expect(await ids({ kubelet: "1.37" })).toEqual(wanted(37));
    expect(await ids({ kubelet: "1.35" })).toEqual([]);
    expect(await ids({ kubelet, node: b })).toEqual(wanted(36, ({ node }) => node === b));
    expect(await ids({ kubelet, kind: "admission" })).toEqual(wanted(36, ({ kind }) => kind === "admission"));
    expect(await ids({ kubelet, verdict: "refused" })).toEqual(wanted(36, (_, i) => i >= 8));
    expect(await ids({ kubelet, reason: "OutOfcpu", untilMs: T0 + 12 })).toEqual(
      wanted(36, (_, i) => i >= 8 && i < 12),
    );
    expect(await ids({ kubelet: "1.37", pod: pod.uid })).toEqual(wanted(37, (_, i) => i === 6));
    expect(await ids({ kubelet, pod: pod.uid })).toEqual([]);
  });
}

function reasons(of: () => Store): void {
  test("decisions are filtered by reason over all nodes, alone and combined", async () => {
    const reason = fresh("OutOf");
    const [a, b] = [fresh("node"), fresh("node")];
    const pod = { namespace: "a", name: fresh("web"), uid: fresh("uid") };
    const rows = Array.from({ length: 12 }, (_, i) =>
      decisionRow({
        node: i % 2 === 0 ? a : b,
        kind: i % 3 === 0 ? "preemption" : "admission",
        verdict: i % 4 === 3 ? "decided" : "refused",
        reason: i % 4 === 3 ? null : reason,
        decidedAtMs: T0 + Math.floor(i / 2),
        pod: i === 5 ? pod : null,
      }),
    );
    for (const decision of rows) value(await of().record({ decision }));
    const ids = async (filter: DecisionFilter): Promise<string[]> => {
      const streamed = await idsOf(of(), { reason, ...filter });
      expect((await pages(of(), { reason, ...filter, limit: 2 })).flat().reverse()).toEqual(streamed);
      return streamed;
    };
    const wanted = (keep: (row: DecisionRow, i: number) => boolean): string[] =>
      rows.filter((row, i) => row.reason === reason && keep(row, i)).map(({ id }) => id);
    expect(await ids({})).toEqual(wanted(() => true));
    expect(await ids({ node: a })).toEqual(wanted(({ node }) => node === a));
    expect(await ids({ kind: "admission" })).toEqual(wanted(({ kind }) => kind === "admission"));
    expect(await ids({ verdict: "decided" })).toEqual([]);
    expect(await ids({ sinceMs: T0 + 2, untilMs: T0 + 4 })).toEqual(wanted((_, i) => i >= 4 && i < 8));
    expect(await ids({ pod: pod.name })).toEqual([rows[5]?.id]);
    expect(await ids({ node: b, kind: "admission", verdict: "refused", sinceMs: T0 })).toEqual(
      wanted(({ node, kind }) => node === b && kind === "admission"),
    );
    const [head] = value(await of().listDecisions({ reason, limit: 1 })).items;
    expect(head).toMatchObject({ id: rows[10]?.id, reason });
    expect(value(await of().getDecision(rows[0]?.id ?? ""))).toEqual(rows[0]);
    expect(await ids({ reason: `${reason}x` })).toEqual([]);
  });
}

function streams(of: () => Store): void {
  test("a stream over several reads yields every decision complete and in order", async () => {
    const node = fresh("node");
    const long = "y".repeat(300_000);
    const rows = Array.from({ length: 300 }, (_, i) =>
      decisionRow({ node, decidedAtMs: T0 + i, ...(i % 60 === 0 ? { body: JSON.stringify(long + i) } : {}) }),
    );
    await Promise.all(rows.map((decision) => of().record({ decision })));
    const found: DecisionRow[] = [];
    for await (const item of of().streamDecisions({ node })) {
      const { seq: _, ...row } = value(item);
      found.push(row);
    }
    expect(found).toEqual(rows);
  });

  test("a stream can be continued after any decision, also among equal times and during writes", async () => {
    const node = fresh("node");
    const rows = Array.from({ length: 9 }, (_, i) => decisionRow({ node, decidedAtMs: T0 + Math.floor(i / 3) }));
    for (const decision of rows) value(await of().record({ decision }));
    const [late, early] = [decisionRow({ node, decidedAtMs: T0 + 1 }), decisionRow({ node, decidedAtMs: T0 })];
    for (let at = 0; at < rows.length; at++) {
      let place: Cursor | undefined;
      for await (const item of of().streamDecisions({ node })) {
        const { id, decidedAtMs, seq } = value(item);
        place = { atMs: decidedAtMs, seq };
        if (id === rows[at]?.id) break;
      }
      if (at === 4) for (const decision of [late, early]) value(await of().record({ decision }));
      const rest = rows.slice(at + 1).map(({ id }) => id);
      // the late decision follows those with the same time; the early one is before this position
      if (at >= 4 && at <= 5) rest.splice(5 - at, 0, late.id);
      expect(await idsOf(of(), { node }, place)).toEqual(rest);
    }
  });
}
