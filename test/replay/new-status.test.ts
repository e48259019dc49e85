import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { decideKind } from "../../api/decide/index.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { withNewStatus } from "../../api/replay/new-status.ts";
import { appOver } from "../api/serving.ts";

interface Answer {
  readonly id: string;
  readonly decision: { readonly admit: boolean };
  readonly replayed: { readonly decision: unknown };
}
const CAPTURED = JSON.parse(readFileSync(join(import.meta.dirname, "../data/real-node/snapshot.json"), "utf8"));

function snapshotWith(change: (raw: typeof CAPTURED) => void): Snapshot {
  const raw = structuredClone(CAPTURED);
  change(raw);
  const decoded = decodeSnapshot(raw);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  return decoded.value;
}
const more = (raw: typeof CAPTURED): void => {
  raw.kubeletConfiguration = { ...raw.kubeletConfiguration, kubeReserved: { cpu: "1", memory: "1Gi" } };
};
const allocatable = (snapshot: Snapshot): Record<string, string> =>
  Object.fromEntries(Object.entries(snapshot.node?.status?.allocatable ?? {}).map(([name, q]) => [name, q.text]));

test("a node reports what its new configuration leaves it", () => {
  const after = snapshotWith(more);
  const decided = decideKind("allocatable", { snapshot: after, facts: {}, ask: undefined, explain: "off" });
  if (!decided.ok) throw new Error(decided.error.message);
  const wanted = (decided.value.decision as { allocatable: Record<string, string> }).allocatable;
  const now = allocatable(
    withNewStatus(
      snapshotWith(() => {}),
      after,
    ),
  );
  expect(now["cpu"]).toBe(wanted["cpu"]);
  expect(now["memory"]).toBe(wanted["memory"]);
  expect(now["cpu"]).not.toBe(allocatable(after)["cpu"]);
  expect(now["pods"]).toBe(allocatable(after)["pods"]);
});

test("an amount that is not what the recorded configuration makes of it stays as it was recorded", () => {
  const own = (raw: typeof CAPTURED): void => {
    raw.node.status.allocatable.cpu = "1234m";
    raw.node.status.allocatable["example.com/gpu"] = "3";
  };
  const after = snapshotWith((raw) => {
    own(raw);
    more(raw);
  });
  const now = allocatable(withNewStatus(snapshotWith(own), after));
  expect(now).toMatchObject({ cpu: "1234m", "example.com/gpu": "3" });
  expect(now["memory"]).not.toBe(allocatable(after)["memory"]);
});

test("a pod that came in is refused in the replay with a larger reserve, and comes in again with the recorded one", async () => {
  const { app } = appOver({});
  const post = async (path: string, body: object): Promise<Answer> => {
    const headers = { "content-type": "application/json" };
    const response = await app.request(path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status, await response.clone().text()).toBe(200);
    return response.json() as Promise<Answer>;
  };
  const pod = {
    metadata: { name: "asks", namespace: "default", uid: "u" },
    spec: { containers: [{ name: "c", resources: { requests: { memory: "1Gi" } } }] },
  };
  const { id, decision } = await post("/v1/decisions/admission", { snapshot: CAPTURED, ask: { pod } });
  expect(decision.admit).toBe(true);
  const kubeletConfigurationPatch = { kubeReserved: { memory: "22Gi" } };
  const again = await post(`/v1/decisions/${id}/replay`, { kubeletConfigurationPatch });
  expect(again.replayed.decision).toMatchObject({ admit: false, wouldRefuse: [{ reason: "OutOfmemory" }] });
  expect(await post(`/v1/decisions/${id}/replay`, {})).toMatchObject({ same: true });
});
