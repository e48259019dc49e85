import { expect, test } from "vitest";
import { nodeAnswer, nodeList } from "../../api/http/openapi/list-answers.ts";
import { node as nodeOf } from "../kit/nodes.ts";
import type { Json } from "../kit/snapshots.ts";
import { admission, agreement, bound, put, refOf, report, short, snapshot, there } from "./api-outcomes.ts";
import { type ApiSubject, answer, exampleSnapshot, fresh, get, type Of, problemOf } from "./api-subject.ts";

/** The time `seconds` seconds ago. */
const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();
const refused = (uid: string, reason = "OutOfcpu", seconds = 0): Json => ({
  ...admission(bound(uid, "2"), 0, { ...short(2000, 3000), reason }),
  at: ago(seconds),
});
const evicted = (uid: string, seconds = 0): Json => ({
  kind: "eviction",
  at: ago(seconds),
  seenIn: ["event"],
  pod: refOf(bound(uid, "1")),
  message: "The node was low on resource: memory. ",
});
const listed = async (api: ApiSubject, query: string) =>
  (await answer(await get(api, `/v1/nodes?${query}`), nodeList)).nodes;

/** Kubelet outcomes in every answer about nodes. */
export function kubeletsInFleet(of: Of): void {
  test("pods that kubelets refused and evicted are in the fleet, its filters and its CSV, apart from decisions", async () => {
    const prefix = fresh("collected");
    const [refuses, evicts, well] = [`${prefix}-a`, `${prefix}-b`, `${prefix}-c`];
    for (const name of [refuses, evicts, well]) await put(of(), name, snapshot(name, 0, [there("web", "1")]));
    const twice = refused("one");
    await report(of(), refuses, [twice, refused("two"), refused("three", "OutOfmemory")]);
    await report(of(), refuses, [{ ...twice, seenIn: ["event"] }], 200);
    await report(of(), evicts, [evicted("greedy"), refused("late", "OutOfcpu", 26 * 3600)]);
    const found = await listed(of(), `namePrefix=${prefix}&sort=severity`);
    expect(found.map(({ name, severity }) => [name, severity])).toEqual([
      [evicts, "evicted"],
      [refuses, "refuses"],
      [well, "ok"],
    ]);
    const kubelet = [
      { reason: "OutOfcpu", count: 2 },
      { reason: "OutOfmemory", count: 1 },
    ];
    expect(found[1]).toMatchObject({ refused: 0, kubeletRefused: 3, kubeletRefusals: kubelet, kubeletEvicted: 0 });
    expect(found[0]).toMatchObject({ evicted: 0, kubeletRefused: 0, kubeletEvicted: 1 });
    expect(found[2]).toMatchObject({ kubeletRefused: null, kubeletRefusals: [], kubeletEvicted: null });
    const names = async (query: string) =>
      (await listed(of(), `namePrefix=${prefix}&${query}`)).map(({ name }) => name);
    expect(await names("show=refused")).toEqual([refuses]);
    expect(await names("show=evicted")).toEqual([evicts]);
    expect(await names("show=refused&hours=48&sort=refused")).toEqual([refuses, evicts]);
    expect(await answer(await get(of(), `/v1/nodes/${refuses}`), nodeAnswer)).toMatchObject({ kubeletRefused: 3 });
    const [head, , line] = (
      await (await get(of(), `/v1/nodes?namePrefix=${prefix}&sort=severity&format=csv`)).text()
    ).split("\r\n");
    expect(head).toContain(",kubeletRefused,kubeletRefusals,kubeletEvicted,");
    expect(line).toContain(",3,OutOfcpu=2 OutOfmemory=1,0,");
    const metrics = await (await get(of(), "/metrics")).text();
    expect(metrics).toContain(`nodewise_node_refusals{node="${refuses}",by="kubelet",reason="OutOfcpu"} 2\n`);
    expect(metrics).toContain(`nodewise_node_evicted_pods{node="${evicts}"} 1\n`);
    expect(metrics).toMatch(/^nodewise_recent_refusals\{by="kubelet",reason="OutOfcpu"\} [2-9]/m);
    const page = await (await get(of(), `/?q=${prefix}`)).text();
    const link = `<a title="OutOfcpu 2, OutOfmemory 1" href="/agreement?node=${refuses}&amp;reason=OutOfcpu&amp;verdict=all">`;
    expect(page).toContain(`kubelet <span class="bad-text">3</span> ${link}OutOfcpu</a> +1`);
  });
}

/** Nodes without a known eviction pass. */
export function unreadKubelets(of: Of): void {
  test("a node known only from outcomes is in the fleet, with unknown pressure", async () => {
    const name = fresh("collected");
    await report(of(), name, [refused("one")]);
    expect(await listed(of(), `name=${name}`)).toMatchObject([{ severity: "refuses", pressureFrom: null }]);
    expect(await listed(of(), `name=${name}&pressure=not-known`)).toHaveLength(1);
    expect(await listed(of(), `name=${name}&pressure=none`)).toEqual([]);
  });

  test("a node whose kubelet does not answer has the pressure of its own conditions", async () => {
    const prefix = fresh("mute");
    const named = (name: string, conditions: readonly Json[]) =>
      exampleSnapshot(`${prefix}-${name}`, {
        node: nodeOf({ conditions }, { metadata: { name: `${prefix}-${name}` } }),
      });
    const all = (status: string) =>
      ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map((type) => ({ type, status }));
    const snapshots = {
      bad: named("bad", [{ type: "MemoryPressure", status: "True" }, ...all("False").slice(1)]),
      calm: named("calm", all("False")),
      gone: named("gone", all("Unknown")),
      none: named("none", []),
    };
    for (const [name, body] of Object.entries(snapshots)) await put(of(), `${prefix}-${name}`, body as Json);
    const found = await listed(of(), `namePrefix=${prefix}`);
    expect(
      found.map(({ name, severity, conditions, pressureFrom }) => [
        name.slice(prefix.length + 1),
        severity,
        pressureFrom,
        ...conditions,
      ]),
    ).toEqual([
      ["bad", "under-pressure", "node-status", "MemoryPressure"],
      ["calm", "ok", "node-status"],
      ["gone", "not-known", null],
      ["none", "not-known", null],
    ]);
    expect((await listed(of(), `namePrefix=${prefix}&pressure=any`)).map(({ name }) => name)).toEqual([
      `${prefix}-bad`,
    ]);
    const page = await (await get(of(), `/?q=${prefix}&show=not-known`)).text();
    expect(page).toContain(`${prefix}-gone`);
    expect(page).not.toContain(`${prefix}-calm<`);
    const metrics = await (await get(of(), "/metrics")).text();
    expect(metrics).toContain(`nodewise_node_pressure{node="${prefix}-bad",condition="MemoryPressure"} 1\n`);
  });
}

/** Lists of outcomes by reason, also as CSV. */
export function outcomeLists(of: Of): void {
  test("kubelet refusals for one reason are one request over all nodes, also as CSV", async () => {
    const [one, other] = [fresh("shadow"), fresh("shadow")];
    const reason = fresh("OutOf");
    await report(of(), one, [refused("a", reason, 60), refused("b", "OutOfcpu", 50), refused("old", reason, 90_000)]);
    await report(of(), other, [refused("c", reason, 40), evicted("d", 30)]);
    const pods = async (query: string) =>
      (await agreement(of(), query)).outcomes.map(({ node, pod, reason: why }) => [node, pod?.name, why]);
    expect(await pods(`reason=${reason}&since=12h`)).toEqual([
      [other, "c", reason],
      [one, "a", reason],
    ]);
    expect(await pods(`reason=${reason}&until=12h`)).toEqual([[one, "old", reason]]);
    expect(await pods(`reason=Evicted&node=${other}`)).toEqual([[other, "d", "Evicted"]]);
    expect(await pods(`node=${one}&pod=default/b`)).toEqual([[one, "b", "OutOfcpu"]]);
    expect(await pods(`node=${one}&pod=uid-b&namespace=default`)).toHaveLength(1);
    expect(await pods(`node=${one}&namespace=kube-system`)).toEqual([]);
    const { kinds } = await agreement(of(), `reason=${reason}&verdict=differs`);
    expect(kinds).toEqual([{ kind: "admission", agrees: 0, differs: 0, notComparable: 3, share: null }]);
    const file = await get(of(), `/v1/agreement?reason=${reason}&since=12h`, { accept: "text/csv" });
    expect(file.headers.get("content-disposition")).toBe('attachment; filename="agreement.csv"');
    const [head, ...lines] = (await file.text()).trimEnd().split("\r\n");
    expect(head).toBe(
      "at,node,kind,verdict,reason,namespace,pod,podUid,message,differsIn,byKubelet,byNodewise,notComparable,policyVersion,snapshotId,id",
    );
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain(`,${other},admission,not-comparable,${reason},default,c,uid-c,"Node didn't have enough`);
    expect(lines[0]).toContain(",no_snapshot,");
    const first = await get(of(), `/v1/agreement?format=csv&reason=${reason}&limit=1`);
    const next = /^<(\?[^>]+)>; rel="next"$/.exec(first.headers.get("link") ?? "")?.[1];
    expect((await (await get(of(), `/v1/agreement${next}`)).text()).split("\r\n")[1]).toContain(",a,");
    await problemOf(await get(of(), "/v1/agreement?reason="), "invalid_query");
    await problemOf(await get(of(), "/v1/agreement?format=xml"), "invalid_query");
  });

  test("an outcome with a new verdict on a second comparison is counted once, with that verdict", async () => {
    const name = fresh("shadow");
    const samples = async () => {
      const text = await (await get(of(), "/metrics")).text();
      const value = (metric: string, verdict: string) =>
        Number(new RegExp(`^${metric}\\{kind="preemption",verdict="${verdict}"\\} (\\d+)$`, "m").exec(text)?.[1]);
      return ["nodewise_agreement_total", "nodewise_agreement_outcomes"].map((metric) =>
        ["agrees", "differs", "not-comparable"].map((verdict) => value(metric, verdict)),
      ) as [number[], number[]];
    };
    const [firstTotal, firstNow] = await samples();
    const since = (before: readonly number[], after: readonly number[]) =>
      after.map((count, i) => count - (before[i] ?? 0));
    const body = { ...snapshot(name, 0, [there("small", "1"), there("large", "2")]), observedAt: ago(20) };
    await put(of(), name, body);
    const victim = { ...evicted("small", 15), kind: "preemption", message: "Preempted in order to admit critical pod" };
    const [alone] = await report(of(), name, [victim]);
    expect(alone?.comparison.verdict).toBe("not-comparable");
    let [total, now] = await samples();
    expect([since(firstTotal, total), since(firstNow, now)]).toEqual([
      [0, 0, 1],
      [0, 0, 1],
    ]);
    const critical = bound("agent", "3");
    (critical["spec"] as Json)["priority"] = 2_000_001_000;
    const [, again] = await report(of(), name, [{ ...admission(critical, 0), at: ago(13) }]);
    expect(again).toMatchObject({ state: "changed", comparison: { verdict: "differs" } });
    [total, now] = await samples();
    expect([since(firstTotal, total), since(firstNow, now)]).toEqual([
      [0, 0, 1],
      [0, 1, 0],
    ]);
    const { kinds } = await agreement(of(), `node=${name}&kind=preemption&since=2h`);
    expect(kinds).toMatchObject([{ agrees: 0, differs: 1, notComparable: 0 }]);
  });
}
