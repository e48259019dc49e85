import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningApi } from "../../api/server.ts";
import { aBrowser, expectAccessible, expectToFit, hasBrowser } from "./browser.ts";
import { decided, served, snapshotOf } from "./served.ts";

const BAD = "evictionHard:\n  nodefs.available: 110%\nkubeResreved:\n  cpu: 500m\n";

describe.skipIf(!hasBrowser)("the lint in a browser", () => {
  const browser = aBrowser();
  let api: RunningApi;
  beforeAll(async () => {
    api = await served();
    await decided(api.url, "allocatable", { snapshot: snapshotOf("n1") });
  });
  afterAll(() => api?.close());

  test.each([
    ["light", {}],
    ["dark", { colorScheme: "dark" }],
    ["on a phone", { viewport: { width: 360, height: 700 } }],
    ["without scripts", { javaScriptEnabled: false }],
  ] as const)("%s: a pasted configuration is looked over", async (_name, options) => {
    const { page, faults, close } = await browser.open(`${api.url}/lint`, options);
    expect(await page.title()).toBe("Lint · Nodewise");
    await page.getByLabel("A KubeletConfiguration").fill(BAD);
    await page.getByLabel("For the node").fill("n1");
    await page.getByRole("button", { name: "Look it over" }).click();
    await page.locator("#findings-title").waitFor();
    expect(await page.locator("article.finding").count()).toBeGreaterThanOrEqual(3);
    expect(await page.getByLabel("A KubeletConfiguration").inputValue()).toBe(BAD);
    if (!("javaScriptEnabled" in options)) {
      await expectToFit(page);
      await expectAccessible(page);
    }
    expect(faults).toEqual([]);
    await close();
  });

  test("a node's own is looked over by its link, and a finding leads to its line and back", async () => {
    const { page, faults, close } = await browser.open(`${api.url}/lint`);
    await page.getByRole("link", { name: "n1" }).click();
    await page.locator("#findings-title").waitFor();
    await page.locator("article.finding a[href^='#line-']").first().click();
    const line = new URL(page.url()).hash.slice(1);
    await page.locator(`[id="${line}"] a`).first().click();
    expect(new URL(page.url()).hash).toMatch(/^#finding-\d+$/);
    await expectAccessible(page);
    expect(faults).toEqual([]);
    await close();
  });

  test("a patch is copied, and filled into the replay", async () => {
    const { page, close } = await browser.open(`${api.url}/lint`, {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await page.getByLabel("A KubeletConfiguration").fill(BAD);
    await page.getByRole("button", { name: "Look it over" }).click();
    const card = page.locator("article.finding", { hasText: "unknown-field" });
    await card.getByRole("button", { name: "Copy the patch of kubeResreved" }).click();
    const wanted = { kubeResreved: null, kubeReserved: { cpu: "500m" } };
    await card.getByText("Copied").waitFor();
    expect(JSON.parse((await page.evaluate("navigator.clipboard.readText()")) as string)).toEqual(wanted);
    await card.getByRole("link", { name: "Replay the history with it" }).click();
    expect(JSON.parse(await page.getByLabel("The configuration to decide with").inputValue())).toEqual(wanted);
    await close();
  });

  test("a file is chosen or dropped in the place of the text", async () => {
    const { page, close } = await browser.open(`${api.url}/lint`);
    const dropped = `(() => {
      const data = new DataTransfer();
      data.items.add(new File([${JSON.stringify(BAD)}], "kubelet.yaml"));
      document.querySelector("[data-drop]").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    })()`;
    await page.evaluate(dropped);
    await page.getByRole("button", { name: "Look it over" }).click();
    await page.locator("#findings-title").waitFor();
    expect(await page.getByLabel("A KubeletConfiguration").inputValue()).toBe(BAD);
    await close();
  });
});
