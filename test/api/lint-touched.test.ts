import { afterEach, describe, expect, test } from "vitest";
import { libraryMachine } from "../../api/cli/inputs/machine-library.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { LintFinding } from "../../api/decide/lint/finding.ts";
import { lintConfiguration } from "../../api/decide/lint/lint.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { readAsk } from "../../api/service/decision-request.ts";
import { MAX_TOUCHED, recordedFindings, touchedFindings } from "../../api/service/lint-touched.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { decisionRow, snapshotRow, T0, value } from "../contract/store-rows.ts";

const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});
function history(): Store {
  const opened = openNode({ file: ":memory:" });
  if (!opened.ok) throw new Error(opened.error.message);
  open.push(opened.value);
  return opened.value;
}

const PARTIAL = { evictionHard: { "memory.available": "100Mi" } };
const FULL = { ...PARTIAL, mergeDefaultEvictionSettings: true };
const capacity = { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" };
const configuredNode = (node: string, kubeletConfiguration: object) => ({
  node: { metadata: { name: node }, status: { capacity } },
  kubeletConfiguration,
});

/** Records a decision, of allocatable by default; `body`: the answer of another version. */
async function decided(
  store: Store,
  node: string,
  kubeletConfiguration: object,
  atMs: number,
  body?: string,
  kind: "allocatable" | "cpus" | "devices" = "allocatable",
) {
  // the CPU manager's decisions need a machine
  const machine = kind === "cpus" ? libraryMachine("vm-small")?.machine : undefined;
  const text = JSON.stringify({ ...configuredNode(node, kubeletConfiguration), machine });
  const snapshot = decodeSnapshot(JSON.parse(text));
  if (!snapshot.ok) throw new Error(JSON.stringify(snapshot.error));
  const asked = readAsk(kind, null);
  if (!asked.ok) throw new Error(asked.error.detail);
  const { ask } = asked.value;
  const answer = decideKind(kind, { snapshot: snapshot.value, facts: {}, ask, explain: "reasons" });
  if (!answer.ok) throw new Error(answer.error.message);
  const { decision, reasons, needs, next, verdict } = answer.value;
  const row = snapshotRow({ node, body: text, storedAtMs: atMs });
  const recorded = decisionRow({
    kind,
    node,
    snapshotId: row.id,
    decidedAtMs: atMs,
    verdict,
    body: body ?? JSON.stringify({ decision, reasons, needs, next }),
  });
  value(await store.record({ decision: recorded, snapshot: row }));
}

const touched = async (store: Store, findings: readonly LintFinding[], node?: string, budgetMs?: number) =>
  value(await touchedFindings(store, findings, node === undefined ? {} : { node }, budgetMs));
const dropped = lintConfiguration(PARTIAL);
/** A finding without an automatic fix. */
const reserved = lintConfiguration({ kubeReserved: { memory: "1Gi" } });

describe("recorded decisions touched by a finding without a fix", () => {
  test("are those whose configuration has the finding and whose decision differs without the field", async () => {
    const store = history();
    await decided(store, "n1", { kubeReserved: { memory: "1Gi" } }, T0);
    await decided(store, "n1", { kubeReserved: { memory: "2Gi" } }, T0 + 1);
    // a decision of a kind that does not read the field
    await decided(store, "n1", { kubeReserved: { memory: "1Gi" } }, T0 + 2, undefined, "devices");
    // one decision with the field and without the finding, and one with neither
    const enforced = { enforceNodeAllocatable: ["pods", "kube-reserved"], kubeReservedCgroup: "/kube" };
    await decided(store, "n1", { kubeReserved: { memory: "1Gi" }, ...enforced }, T0 + 3);
    await decided(store, "n1", {}, T0 + 4);
    expect(reserved).toMatchObject([{ code: "reserve-not-enforced", fix: null }]);
    expect((await touched(store, reserved, "n1"))[0]?.touched).toEqual({ decisions: 2, of: 5 });
    expect((await touched(store, reserved, "n2"))[0]?.touched).toEqual({ decisions: 0, of: 0 });
  });

  test("are those with the start error when there is no field to remove", async () => {
    const store = history();
    const found = lintConfiguration({ cpuManagerPolicy: "static" });
    const [first] = found;
    expect(first).toMatchObject({ code: "static-without-reserved-cpu", field: "reservedSystemCPUs", fix: null });
    await decided(store, "n1", { cpuManagerPolicy: "static" }, T0, undefined, "cpus");
    await decided(store, "n1", { cpuManagerPolicy: "static" }, T0 + 1);
    await decided(store, "n1", {}, T0 + 2, undefined, "cpus");
    expect((await touched(store, found, "n1"))[0]?.touched).toEqual({ decisions: 1, of: 3 });
  });
});

describe("recorded decisions touched by a finding with a fix", () => {
  test("do not include those whose configuration lacks the finding", async () => {
    const store = history();
    await decided(store, "n1", { maxPods: 20 }, T0);
    await decided(store, "n1", { maxPods: 2000, podsPerCore: 1 }, T0 + 1);
    const negative = lintConfiguration({ maxPods: -5 });
    expect(negative).toMatchObject([{ code: "out-of-range", field: "maxPods", fix: { maxPods: null } }]);
    // without maxPods the first decision would have 110 pods, but its configuration never had -5
    expect((await touched(store, negative, "n1"))[0]?.touched).toEqual({ decisions: 0, of: 2 });
  });

  test("include those with the finding, unless their kind does not read the field", async () => {
    const store = history();
    const misspelt = { kubeReserved: { memory: "512" } };
    const found = lintConfiguration(misspelt).filter(({ code }) => code === "bytes-without-unit");
    expect(found).toMatchObject([{ field: 'kubeReserved["memory"]', fix: { kubeReserved: { memory: "512Mi" } } }]);
    await decided(store, "n1", misspelt, T0);
    await decided(store, "n1", misspelt, T0 + 1, undefined, "devices");
    await decided(store, "n1", { kubeReserved: { memory: "512Mi" } }, T0 + 2);
    expect((await touched(store, found, "n1"))[0]?.touched).toEqual({ decisions: 1, of: 3 });
  });

  test("are counted with one read per snapshot, whatever the number of findings", async () => {
    const store = history();
    const both = { ...PARTIAL, kubeReserved: { memory: "1Gi" }, maxPods: 20 };
    for (let i = 0; i < 4; i++)
      for (const kind of ["allocatable", "cpus", "devices"] as const) {
        await decided(store, `n${i}`, both, T0 + i, undefined, kind);
      }
    const reads: string[] = [];
    const counting: Store = {
      ...store,
      getSnapshotPieces: (id) => store.getSnapshotPieces(id).finally(() => reads.push(id)),
    };
    const found = lintConfiguration(both);
    expect(found.length).toBeGreaterThan(1);
    for (const one of await touched(counting, found)) expect(one.touched?.of).toBe(12);
    expect(reads).toHaveLength(12);
    expect(new Set(reads).size).toBe(12);
  });

  test("are those that the fix changes, of the asked node or of all nodes", async () => {
    const store = history();
    for (let i = 0; i < 3; i++) await decided(store, "n1", PARTIAL, T0 + i);
    for (let i = 0; i < 2; i++) await decided(store, "n2", FULL, T0 + i);
    expect((await touched(store, dropped))[0]?.touched).toEqual({ decisions: 3, of: 5 });
    expect((await touched(store, dropped, "n1"))[0]?.touched).toEqual({ decisions: 3, of: 3 });
    expect((await touched(store, dropped, "n2"))[0]?.touched).toEqual({ decisions: 0, of: 2 });
  });

  test("do not include those that only differ because another version answered them", async () => {
    const store = history();
    const other = JSON.stringify({ decision: { capacity: {} }, reasons: [], needs: [], next: null });
    await decided(store, "n1", FULL, T0, other);
    await decided(store, "n1", PARTIAL, T0 + 1, other);
    expect((await touched(store, dropped, "n1"))[0]?.touched).toEqual({ decisions: 1, of: 2 });
  });

  test("include those that another version answered as the fix would, if it changes them today", async () => {
    const store = history();
    await decided(store, "n1", FULL, T0);
    const [full] = value(await store.listDecisions({ node: "n1", limit: 1 })).items;
    const asFixed = value(await store.getDecision(full?.id ?? ""))?.body;
    await decided(store, "n2", PARTIAL, T0 + 1, asFixed);
    expect((await touched(store, dropped, "n2"))[0]?.touched).toEqual({ decisions: 1, of: 1 });
  });

  test("are none without a snapshot, and not counted for a finding without a field", async () => {
    const store = history();
    value(await store.record({ decision: decisionRow({ node: "n1" }) }));
    expect((await touched(store, dropped))[0]?.touched).toEqual({ decisions: 0, of: 0 });
    expect((await touched(store, reserved))[0]?.touched).toEqual({ decisions: 0, of: 0 });
    expect(await touched(store, lintConfiguration([]))).toMatchObject([{ code: "no-configuration", touched: null }]);
  });

  test("are looked up from the newest decision on, at least one however short the time", async () => {
    const store = history();
    for (let i = 0; i < 40; i++) await decided(store, "n1", FULL, T0 + i);
    await decided(store, "n1", PARTIAL, T0 + 40);
    expect((await touched(store, dropped, "n1", 0))[0]?.touched).toEqual({ decisions: 1, of: 1 });
  });

  test("are counted newest first, up to a limit, and fewer when time is up", async () => {
    const store = history();
    // the older decisions, which are beyond the limit, would change
    for (let i = 0; i < 20; i++) await decided(store, "n1", PARTIAL, T0 + i);
    for (let i = 0; i < MAX_TOUCHED; i++) await decided(store, "n1", FULL, T0 + 1000 + Math.floor(i / 3));
    expect((await touched(store, dropped, "n1", 60_000))[0]?.touched).toEqual({ decisions: 0, of: MAX_TOUCHED });
    const [hurried] = await touched(store, dropped, "n1", 0);
    expect(hurried?.touched?.of).toBeGreaterThan(0);
    expect(hurried?.touched?.of).toBeLessThan(MAX_TOUCHED);
  });
});

const fs = (capacityBytes: number) => ({ capacityBytes, availableBytes: capacityBytes / 2, inodes: 1000 });
const GIB = 1024 ** 3;
const STATS = [
  {},
  { fs: fs(100 * GIB), rlimit: { maxpid: 4096, curproc: 10 } },
  { fs: fs(100 * GIB), runtime: { imageFs: fs(100 * GIB) } },
  { fs: fs(100 * GIB), runtime: { imageFs: { ...fs(100 * GIB), availableBytes: 90 * GIB } } },
  { fs: fs(100 * GIB), runtime: { imageFs: fs(40 * GIB) } },
  { fileSystems: "one" },
];
test("a recorded configuration has the same findings as when it is linted on its node", async () => {
  const store = history();
  const recordedOf = recordedFindings(store);
  const configuration = {
    evictionHard: { "nodefs.available": "25Gi", "imagefs.available": "20%", "nodefs.inodesFree": "1000" },
    podPidsLimit: 5000,
    evictionSoft: { "nodefs.available": "25%" },
    evictionSoftGracePeriod: { "nodefs.available": "1m" },
  };
  const codes = new Set<string>();
  for (const [i, node] of [...STATS, ...STATS].entries()) {
    const observedAt = new Date(T0 + i * 1000).toISOString();
    const posted = { ...configuredNode("n1", configuration), observedAt, bootId: "b", stats: { node } };
    const row = snapshotRow({ node: "n1", body: JSON.stringify(posted), storedAtMs: T0 + i });
    value(await store.putSnapshot(row));
    const { kubeletConfiguration: _, ...rest } = posted;
    const snapshot = decodeSnapshot(rest);
    if (!snapshot.ok) throw new Error(JSON.stringify(snapshot.error));
    const found = lintConfiguration(configuration, snapshot.value);
    expect(value(await recordedOf(row.id))?.findings, JSON.stringify(node)).toEqual(found);
    codes.add(found.map(({ code, message }) => code + message).join());
  }
  expect(codes.size).toBeGreaterThan(3);
  expect(value(await recordedOf(null))).toBeNull();
  expect(value(await recordedOf("0".repeat(32)))).toBeNull();
});
