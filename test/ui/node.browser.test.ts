import { expect, test } from "vitest";
import { expectReadable, inBrowser, LOOKS } from "./in-browser.ts";
import { captured } from "./node-subject.ts";
import { decided } from "./served.ts";

const START = Date.parse("2026-11-21T06:24:51Z");
/** Pass number `i`, ten seconds after the one before. */
function passAt(i: number) {
  const snapshot = captured();
  snapshot.observedAt = new Date(START + i * 10_000).toISOString();
  const memory = {
    ...snapshot.stats.node.memory,
    time: snapshot.observedAt,
    availableBytes: (4000 - 50 * i) * 2 ** 20,
  };
  return { snapshot: { ...snapshot, stats: { ...snapshot.stats, node: { ...snapshot.stats.node, memory } } } };
}

let passes = 0;
const fill = async (url: string): Promise<void> => {
  while (passes < 10) await decided(url, "eviction", passAt(passes++));
  await decided(url, "cgroups", { snapshot: captured() });
};
inBrowser("a node in a browser", fill, (ground) => {
  test.each(LOOKS)("%s: it fits, is accessible, and is drawn by the policy", async (_name, options) => {
    await ground.visit("/nodes/n1", options, async (page) => {
      await page.locator("#plot-memory\\.available.has-plot canvas").waitFor();
      expect(await page.locator("#plot-memory\\.available svg.picture").isVisible()).toBe(false);
      expect(await page.locator("#cpus svg.cells").boundingBox()).toMatchObject({ width: 80 });
      await page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true");
      await expectReadable(page);
    });
  });

  test("without scripts the pictures are there", async () => {
    await ground.visit("/nodes/n1", { javaScriptEnabled: false }, async (page) => {
      expect(await page.locator("#plot-memory\\.available svg.picture path.curve").isVisible()).toBe(true);
      await page.locator("#capacity-numbers summary").click();
      expect(await page.locator("#capacity-numbers table").isVisible()).toBe(true);
    });
  });

  test("a new pass moves the plot by itself, and what is opened stays open", async () => {
    const { page, faults, close } = await ground.open("/nodes/n1");
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    const pod = page.locator("#cgroups details details").first();
    await pod.locator("summary").first().click();
    await page.locator("h1").click();
    await decided(ground.url, "eviction", passAt(passes++));
    await page.locator("#plot-memory\\.available figcaption", { hasText: "3.4 GiB" }).waitFor();
    await page.locator("#plot-memory\\.available.has-plot canvas").waitFor();
    expect(await page.locator("#plot-memory\\.available canvas").count()).toBe(1);
    expect(await pod.getAttribute("open")).not.toBeNull();
    expect(faults).toEqual([]);
    await close();
  });

  test("the list of decisions is filtered by its form", async () => {
    await ground.visit("/nodes/n1/decisions", {}, async (page) => {
      await expectReadable(page);
      await page.getByLabel("Kind").selectOption("cgroups");
      await page.getByRole("button", { name: "Show" }).click();
      await page.waitForURL(/kind=cgroups/);
      expect(await page.locator("#count").textContent()).toContain("1 decision.");
    });
  });
});
