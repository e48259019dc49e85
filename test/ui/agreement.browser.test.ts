import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { capturedNode } from "../kit/real-node.ts";
import { expectReadable, hasScripts, inBrowser, LOOKS_AND_WITHOUT_SCRIPTS } from "./in-browser.ts";

const SHIFT = Date.now() - Date.parse("2026-11-21T06:30:00Z");
/** Shifts a captured time so that it lies a moment ago. */
const now = (time: string): string => new Date(Date.parse(time) + SHIFT).toISOString();

async function fill(url: string): Promise<void> {
  const send = async (method: string, path: string, body: object): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(await response.text());
  };
  const snapshot = capturedNode("n1");
  const pods = snapshot.pods?.filter((pod) => (pod as { metadata?: { name?: string } }).metadata?.name !== "guar-frac");
  await send("PUT", "/v1/nodes/n1/snapshot", { ...snapshot, observedAt: now("2026-11-21T06:26:20Z") });
  await send("PUT", "/v1/nodes/n1/snapshot", { ...snapshot, observedAt: now("2026-11-21T06:26:45Z"), pods });
  const report = JSON.parse(readFileSync(new URL("../data/real-outcomes/report.json", import.meta.url), "utf8")) as {
    outcomes: { at: string }[];
  };
  await send("POST", "/v1/nodes/n1/outcomes", {
    outcomes: report.outcomes.map((one) => ({ ...one, at: now(one.at) })),
  });
}

inBrowser("agreement in a browser", fill, (ground) => {
  test.each(LOOKS_AND_WITHOUT_SCRIPTS)("%s: differences are visible, and the filters work", async (_name, options) => {
    await ground.visit("/agreement", options, async (page) => {
      expect(await page.title()).toBe("Agreement · Nodewise");
      expect(await page.locator("article.finding").count()).toBeGreaterThan(2);
      await page.locator("tr.changed", { hasText: "used" }).first().waitFor();
      if (hasScripts(options)) await expectReadable(page);
      await page.getByLabel("List those that").selectOption("agrees");
      await page.getByRole("button", { name: "Show" }).click();
      await page.waitForURL(/verdict=agrees/);
      expect(await page.locator("article.finding.good").count()).toBeGreaterThan(5);
      await page.getByRole("link", { name: "admission" }).click();
      await page.waitForURL(/kind=admission/);
    });
  });
});
