import { expect, test } from "vitest";
import type { ReplayAnswer } from "../../api/service/replay/replay-answer.ts";
import { appOver } from "../api/serving.ts";
import { realSnapshot } from "../kit/real-node.ts";

/** A node of 1.34 on cgroup v1 whose /configz contains the default of 1.34, `failCgroupV1: false`. */
function oldNode(): object {
  const real = realSnapshot() as { readonly node: { readonly status: { readonly nodeInfo: object } } };
  const nodeInfo = { ...real.node.status.nodeInfo, kubeletVersion: "v1.34.4" };
  return { ...real, node: { ...real.node, status: { ...real.node.status, nodeInfo } } };
}

test("replaying as another version ignores recorded defaults of the old one, but not a patched field", async () => {
  const { app } = appOver();
  const ask = async <T>(path: string, body: object): Promise<T> => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await app.request(path, init);
    expect(response.status).toBe(200);
    return (await response.json()) as T;
  };
  const { id, verdict } = await ask<{ id: string; verdict: string }>("/v1/decisions/allocatable", {
    snapshot: oldNode(),
  });
  expect(verdict).toBe("decided");
  const verdicts = async (body: object) =>
    (await ask<ReplayAnswer>("/v1/replay", body)).verdicts.map(({ replayed }) => replayed);
  const failCgroupV1 = false;
  expect(await verdicts({ kubeletVersion: "1.35" })).toEqual(["kubelet-refuses"]);
  expect(await verdicts({ kubeletVersion: "1.34" })).toEqual([]);
  expect(await verdicts({ kubeletVersion: "1.35", kubeletConfigurationPatch: { failCgroupV1 } })).not.toContain(
    "kubelet-refuses",
  );
  expect(await verdicts({ kubeletVersion: "1.35", kubeletConfiguration: { failCgroupV1 } })).not.toContain(
    "kubelet-refuses",
  );
  const { history } = await ask<{ history: ReplayAnswer }>("/v1/upgrade", { to: "1.35", since: "7d", node: "n1" });
  expect(history.verdicts).toMatchObject([{ recorded: "decided", replayed: "kubelet-refuses" }]);
  const alone = await ask<object>(`/v1/decisions/${id}/replay`, { kubeletVersion: "1.35" });
  expect(JSON.stringify(alone)).toContain("configured to not run on a host using cgroup v1");
});
