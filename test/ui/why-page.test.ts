import { expect, test } from "vitest";
import { appOver } from "../api/serving.ts";
import { requesting } from "../kit/pods.ts";
import { capturedNode } from "../kit/real-node.ts";

test("a refused pod's decision links to its explanation, and an unknown pod is reported", async () => {
  const { app } = appOver({});
  const body = { snapshot: capturedNode("n1"), ask: { pod: requesting("big", { cpu: "500" }) } };
  const headers = { "content-type": "application/json" };
  const posted = await app.request("/v1/decisions/admission", { method: "POST", headers, body: JSON.stringify(body) });
  const { id } = (await posted.json()) as { id: string };
  const read = async (path: string, status = 200): Promise<string> => {
    const response = await app.request(path, { headers: { accept: "text/html" } });
    expect(response.status).toBe(status);
    return response.text();
  };
  const link = /href="(\/nodes\/n1\/pods\/[^"]+)"/.exec(await read(`/decisions/${id}`))?.[1] ?? "";
  const text = await read(link);
  expect(text).toContain("<h1>Why default/big is as it is</h1>");
  for (const part of ["REFUSED", "OutOfcpu", "WHAT WOULD CHANGE IT", 'href="/v1/nodes/n1/pods/default/big/why"']) {
    expect(text).toContain(part);
  }
  expect(text).not.toMatch(/<script>|\son\w+="|style="|<style/i);
  expect(await read("/nodes/n1/pods/default/burst-lin", 422)).toContain("there are default/burst-lim");
  await read("/nodes/n9/pods/default/big", 404);
});

test("a recorded configuration field unknown to the node's kubelet is a note, not a fault", async () => {
  const { app } = appOver({});
  // the configuration of the captured kubelet, version 1.36
  const snapshot = capturedNode("n1") as Snapshot;
  snapshot.node.status.nodeInfo.kubeletVersion = "v1.34.4";
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ snapshot });
  expect((await app.request("/v1/decisions/eviction", { method: "POST", headers, body })).status).toBe(200);
  const left = "memoryReservationPolicy counts as left out: a kubelet 1.34, which node n1 has, does not know the field";
  for (const path of ["/nodes/n1/pods/default/burst-lim", "/lint?node=n1"]) {
    const response = await app.request(path, { headers: { accept: "text/html" } });
    expect([path, response.status]).toEqual([path, 200]);
    expect((await response.text()).replaceAll(/\s+/g, " ")).toContain(left);
  }
  const story = await app.request("/v1/nodes/n1/pods/default/burst-lim/why");
  expect(((await story.json()) as { story: { notes: string[] } }).story.notes).toContain(
    `of the configuration ${left}`,
  );
  // a configuration that the caller provides is still another kubelet's
  const kubeletconfig = { ...snapshot.kubeletConfiguration };
  const form = new FormData();
  form.append("node", "n1");
  form.append("change", JSON.stringify({ kubeletconfig }));
  const brought = await app.request("/lint", { method: "POST", body: form });
  expect(brought.status).toBe(400);
  expect(await brought.text()).toContain("so this is another kubelet&#39;s /configz: give that of n1");
});
type Snapshot = ReturnType<typeof capturedNode> & {
  node: { status: { nodeInfo: { kubeletVersion: string } } };
  kubeletConfiguration: object;
};
