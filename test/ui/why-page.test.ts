import { expect, test } from "vitest";
import { appOver } from "../api/serving.ts";
import { requesting } from "../kit/pods.ts";
import { capturedNode } from "./served.ts";

test("a refused pod's story is a page to which its decision leads; a pod that the history does not have is told", async () => {
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
