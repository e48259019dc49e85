import { expect, test } from "vitest";
import { expectReadable, inBrowser, LOOKS } from "./in-browser.ts";
import { capturedSnapshot } from "./node-subject.ts";
import { decided } from "./served.ts";

const START = Date.parse("2026-11-21T06:24:51Z");
/** Pass number `i`, ten seconds after the one before. */
function passAt(i: number) {
  const snapshot = capturedSnapshot();
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
  await decided(url, "cgroups", { snapshot: capturedSnapshot() });
};
inBrowser("a node in a browser", fill, (ground) => {
  test.each(LOOKS)(
    "%s: the node page fits, is accessible, and draws its plots under the CSP",
    async (_name, options) => {
      await ground.visit("/nodes/n1", options, async (page) => {
        await page.locator("#plot-memory\\.available.has-plot canvas").waitFor();
        expect(await page.locator("#plot-memory\\.available svg.picture").isVisible()).toBe(false);
        await page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true");
        expect(await page.locator("#cpus svg.cells").boundingBox()).toMatchObject({ width: 80 });
        await expectReadable(page);
      });
    },
  );

  test("without scripts the pictures are visible", async () => {
    await ground.visit("/nodes/n1", { javaScriptEnabled: false }, async (page) => {
      expect(await page.locator("#plot-memory\\.available svg.picture path.curve").isVisible()).toBe(true);
      await page.locator("#capacity-numbers summary").click();
      expect(await page.locator("#capacity-numbers table").isVisible()).toBe(true);
    });
  });

  test("a new pass moves the plot by itself, and opened parts stay open", async () => {
    const { page, faults, close } = await ground.open("/nodes/n1");
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    await page.locator("#cgroups > details > summary").click();
    const pod = page.locator("#cgroups > details details details").first();
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

  test("a link to a folded part opens it", async () => {
    const { page, close } = await ground.open("/nodes/n1");
    expect(await page.locator("#cgroups .tree").isVisible()).toBe(false);
    await page.getByLabel("On this page").getByRole("link", { name: "Cgroups" }).click();
    await page.locator("#cgroups .tree").waitFor();
    await page.goto("about:blank");
    await page.goto(`${ground.url}/nodes/n1#probes`);
    await page.locator("#probes > details[open]").waitFor();
    await close();
  });

  test("a link to a folded plot unfolds it, and one to the section above does not", async () => {
    const { page, close } = await ground.open("/nodes/n1#eviction");
    await page.locator("#other-plots").waitFor();
    // by then the script has run
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    expect(await page.locator("#other-plots[open], #rankings[open]").count()).toBe(0);
    const folded = await page.locator("#other-plots .plot").first().getAttribute("id");
    await page.goto(`${ground.url}/nodes/n1#${folded}`);
    await page.locator("#other-plots[open]").waitFor();
    await close();
  });

  test("the essentials are above the fold, and 110 pods do not make a long page", async () => {
    const { pods, ...rest } = capturedSnapshot() as { pods: { metadata: object; spec: object }[] };
    const many = Array.from({ length: 10 }, (_, copy) =>
      pods.map((pod, i) => ({
        ...pod,
        metadata: { name: `p-${copy}-${i}`, namespace: "shop", uid: `uid-${copy}-${i}` },
        spec: { ...pod.spec, nodeName: "full" },
        status: { phase: "Running" },
      })),
    ).flat();
    type Captured = { node: { metadata: object }; stats: { node: { memory: object; rlimit: object } } };
    const { node, stats } = rest as unknown as Captured;
    const full = {
      ...rest,
      node: { ...node, metadata: { ...node.metadata, name: "full" } },
      stats: { ...stats, node: { ...stats.node, nodeName: "full" } },
      pods: many,
    };
    await decided(ground.url, "eviction", { snapshot: full });
    await decided(ground.url, "cgroups", { snapshot: full });
    const time = "2026-11-21T06:25:01Z";
    const fs = { time, inodes: 100, inodesFree: 90, availableBytes: 9e10, capacityBytes: 1e11 };
    const later = {
      ...full.stats.node,
      memory: { ...stats.node.memory, time },
      fs,
      runtime: { imageFs: fs, containerFs: fs },
    };
    await decided(ground.url, "eviction", {
      snapshot: { ...full, observedAt: time, stats: { ...full.stats, node: later } },
    });
    const { page, close } = await ground.open("/nodes/full", { viewport: { width: 1440, height: 900 } });
    for (const words of ["State", "Evicted first, for memory", "Refused", "Drift", "Try a change on this node"]) {
      // an element that is being replaced has no position for a moment
      const bottom = async (): Promise<number> => {
        const box = await page.getByText(words, { exact: false }).first().boundingBox();
        return box === null ? Number.NaN : box.y + box.height;
      };
      await expect.poll(bottom, { message: words }).toBeLessThan(900);
    }
    expect(await page.locator("#pods tbody tr").count()).toBe(6);
    const height = (): Promise<number> => page.evaluate("document.documentElement.scrollHeight");
    expect(await height()).toBeLessThan(3000);
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(height).toBeLessThan(3000);
    await expectReadable(page);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.locator("#other-plots > summary").click();
    await page.locator("#other-plots .has-plot canvas").first().waitFor();
    await page.getByRole("link", { name: "week" }).click();
    await page.locator(".ranges [aria-current]", { hasText: "week" }).waitFor();
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
