import { expect, test } from "vitest";
import type * as z from "zod";
import { lintAnswer } from "../../api/http/openapi/answers.ts";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import {
  type ApiSubject,
  answer,
  exampleSnapshot,
  fresh,
  type Of,
  post,
  problemOf,
  send,
  tokenFor,
} from "./api-subject.ts";

type Found = z.output<typeof lintAnswer>["findings"];
const lint = async (api: ApiSubject, body: object, headers = {}): Promise<Found> =>
  (await answer(await post(api, "/v1/lint", body, headers), lintAnswer)).findings;
const codes = (found: Found): readonly string[] => found.map(({ code }) => code);

/** Records three allocatable decisions of a node whose evictionHard drops the default of nodefs.available. */
async function decided(api: ApiSubject, node: string): Promise<void> {
  for (let sequence = 0; sequence < 3; sequence++) {
    const cpu = `${100 + sequence}m`;
    const kubeletConfiguration = { evictionHard: { "memory.available": "100Mi" }, kubeReserved: { cpu } };
    const body = { snapshot: exampleSnapshot(node, { sequence, kubeletConfiguration }) };
    await answer(await post(api, "/v1/decisions/allocatable", body), decisionAnswer);
  }
}

export function lints(of: Of): void {
  lintsOfFlags(of);
  test("finds nothing in an empty configuration, and what keeps the kubelet from starting in a faulty one", async () => {
    expect(await lint(of(), { kubeletConfiguration: {} })).toEqual([]);
    const found = await lint(of(), { kubeletConfiguration: { maxPods: -1, cpuManagerPolicyy: "static" } });
    expect(found).toMatchObject([
      {
        code: "out-of-range",
        severity: "refuses-start",
        field: "maxPods",
        message: "invalid configuration: maxPods (--max-pods) -1 must not be a negative number",
        kubelet: true,
        fix: { maxPods: null },
        touched: { decisions: expect.any(Number) },
      },
      { code: "unknown-field", severity: "error", field: "cpuManagerPolicyy" },
    ]);
  });

  test("finds node-specific faults with a posted snapshot, a stored one, and the node's latest", async () => {
    const node = fresh("lint");
    const kubeletConfiguration = { kubeReserved: { memory: "9Gi" } };
    const stored = await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, exampleSnapshot(node));
    const { id } = (await stored.json()) as { id: string };
    expect(codes(await lint(of(), { kubeletConfiguration }))).not.toContain("reserved-above-capacity");
    for (const about of [{ snapshot: exampleSnapshot(node) }, { snapshotId: id }, { node }]) {
      const [first] = await lint(of(), { kubeletConfiguration, ...about });
      expect(first).toMatchObject({ code: "reserved-above-capacity", severity: "refuses-start", kubelet: true });
      expect(first?.message).toContain('Resource "memory" has a reservation of');
    }
  });

  test("uses the snapshot's configuration when none is posted, and reports one that is invalid", async () => {
    const node = fresh("lint");
    await decided(of(), node);
    expect(codes(await lint(of(), { node }))).toEqual(["eviction-defaults-dropped", "reserve-not-enforced"]);
    const snapshot = exampleSnapshot(node, { kubeletConfiguration: { maxPods: "many" } });
    expect(codes(await lint(of(), { snapshot }))).toEqual(["wrong-type"]);
  });

  test("counts the recorded decisions that each finding touched", async () => {
    const node = fresh("lint");
    await decided(of(), node);
    const found = await lint(of(), { node });
    expect(found).toMatchObject([
      { code: "eviction-defaults-dropped", touched: { decisions: 3, of: 3 } },
      { code: "reserve-not-enforced", fix: null, touched: { decisions: 3, of: 3 } },
    ]);
    // a fix that changes none of these decisions
    const idle = { topologyManagerScope: "pod" };
    expect(await lint(of(), { node, kubeletConfiguration: idle })).toMatchObject([
      { code: "topology-scope-idle", touched: { decisions: 0, of: 3 } },
    ]);
    const other = fresh("lint");
    await send(of(), "PUT", `/v1/nodes/${other}/snapshot`, exampleSnapshot(other));
    expect(await lint(of(), { node: other, kubeletConfiguration: idle })).toMatchObject([
      { touched: { decisions: 0, of: 0 } },
    ]);
  });
}

const HEAD = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };

function lintsOfFlags(of: Of): void {
  const kubeletArgs = ["--max-pods=50", "--pod-infra-container-image=x", "--v=2"];

  test("checks command-line flags by version, alone and with a configuration", async () => {
    const gone = {
      code: "removed-flag",
      severity: "refuses-start",
      field: "--pod-infra-container-image",
      touched: null,
    };
    const alone = await lint(of(), { kubeletArgs, kubeletVersion: "1.35" });
    expect(alone).toMatchObject([
      { ...gone, kubelet: true, message: "failed to parse kubelet flag: unknown flag: --pod-infra-container-image" },
      { code: "deprecated-flag", field: "--max-pods", fix: { maxPods: 50 } },
    ]);
    const older = await lint(of(), { kubeletArgs, kubeletVersion: "1.34" });
    expect(older.map(({ severity }) => severity)).toEqual(["note", "note"]);
    const before = await lint(of(), { kubeletArgs, kubeletVersion: "1.34", kubeletConfiguration: { maxPods: 110 } });
    expect(codes(before)).toEqual(["flag-before-file", "deprecated-flag"]);
  });

  test("merges drop-ins over the configuration, the last one taking precedence", async () => {
    const dropIn = (file: string, maxPods: number, head: object = HEAD) => ({ file, document: { ...head, maxPods } });
    const kubeletDropIns = [dropIn("10.conf", -10), dropIn("20.conf", -20), dropIn("30.conf", 5, {})];
    const found = await lint(of(), { kubeletConfiguration: { maxPods: 1 }, kubeletDropIns });
    expect(codes(found)).toEqual(["drop-in-refused", "out-of-range"]);
    expect(found[0]?.message).toContain("path: 30.conf, error: Object 'Kind' is missing");
    expect(found[1]?.message).toContain("(--max-pods) -20 must not be a negative number");
  });

  test("checks flags against a node's recorded configuration", async () => {
    const node = fresh("lint");
    await decided(of(), node);
    const found = await lint(of(), { node, kubeletArgs: ["--kube-reserved=cpu=1"] });
    const message =
      '--kube-reserved sets kubeReserved: {"cpu":"1"}, and kubeReserved: {"cpu":"102m"} of the file does not count';
    expect(found.find(({ code }) => code === "flag-before-file")).toMatchObject({ message, touched: null });
    expect(found.find(({ code }) => code === "eviction-defaults-dropped")?.touched).toEqual({ decisions: 3, of: 3 });
  });
}

export function badLints(of: Of): void {
  test.each<[object, string]>([
    [[], "$"],
    [{ configuration: {} }, "configuration"],
    [{}, "kubeletConfiguration"],
    [{ kubeletConfiguration: "maxPods: 1" }, "kubeletConfiguration"],
    [{ kubeletConfiguration: {}, snapshot: {}, node: "n" }, "node"],
    [{ kubeletConfiguration: {}, node: 1 }, "node"],
    [{ kubeletConfiguration: {}, snapshotId: "x" }, "snapshotId"],
    [{ kubeletConfiguration: {}, snapshot: { pods: 1 } }, "snapshot.pods"],
    [{ kubeletArgs: "--max-pods=5" }, "kubeletArgs"],
    [{ kubeletArgs: ["--max-pods", 5] }, "kubeletArgs[1]"],
    [{ kubeletArgs: new Array(513).fill("-v") }, "kubeletArgs"],
    [{ kubeletArgs: ["x".repeat(8193)] }, "kubeletArgs[0]"],
    [{ kubeletConfiguration: {}, kubeletDropIns: {} }, "kubeletDropIns"],
    [{ kubeletConfiguration: {}, kubeletDropIns: new Array(65).fill({ file: "a", document: {} }) }, "kubeletDropIns"],
    [{ kubeletConfiguration: {}, kubeletDropIns: [{ file: "a.conf" }] }, "kubeletDropIns[0]"],
    [{ kubeletConfiguration: {}, kubeletDropIns: [{ file: "x".repeat(4097), document: {} }] }, "kubeletDropIns[0]"],
    [{ kubeletConfiguration: {}, kubeletDropIns: [{ file: "a", document: {}, more: 1 }] }, "kubeletDropIns[0]"],
    [{ kubeletArgs: ["--v=2"], kubeletDropIns: [{ file: "a.conf", document: {} }] }, "kubeletConfiguration"],
  ])("refuses %j at %s", async (body, path) => {
    const { issues } = await problemOf(await post(of(), "/v1/lint", body), "invalid_input");
    expect(issues?.[0]?.path).toBe(path);
  });

  test("is a 404 for an unknown node or snapshot, with similar names", async () => {
    const node = fresh("lint");
    await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, exampleSnapshot(node));
    const near = await problemOf(await post(of(), "/v1/lint", { node: `${node}x` }), "unknown_node");
    expect(near.near).toContain(node);
    await problemOf(await post(of(), "/v1/lint", { snapshotId: "0".repeat(32) }), "unknown_snapshot");
  });

  test("with a node's token covers that node and its decisions only", async () => {
    const [own, other] = [fresh("lint"), fresh("lint")];
    for (const node of [own, other]) await decided(of(), node);
    const token = await tokenFor(of().store, ["read"], own);
    const headers = { authorization: `Bearer ${token}` };
    await problemOf(await post(of(), "/v1/lint", { node: other }, headers), "forbidden_node");
    const found = await lint(of(), { kubeletConfiguration: { evictionHard: {} } }, headers);
    expect(found[0]?.touched).toEqual({ decisions: 3, of: 3 });
    const decide = await tokenFor(of().store, ["decide"]);
    const refused = await post(of(), "/v1/lint", { node: own }, { authorization: `Bearer ${decide}` });
    await problemOf(refused, "forbidden");
  });
}
