import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningApi } from "../../api/server.ts";
import { aBrowser, expectAccessible, expectToFit, hasBrowser } from "./browser.ts";
import { decided, served, snapshotOf } from "./served.ts";

describe.skipIf(!hasBrowser)("the fleet in a browser", () => {
  const browser = aBrowser();
  let api: RunningApi;
  beforeAll(async () => {
    api = await served();
    for (const name of ["node-1", "node-2"]) await decided(api.url, "cgroups", { snapshot: snapshotOf(name) });
  });
  afterAll(() => api?.close());

  test.each([
    ["light", {}],
    ["dark", { colorScheme: "dark" }],
    ["on a phone", { viewport: { width: 360, height: 700 } }],
    ["without scripts", { javaScriptEnabled: false }],
  ] as const)("%s: it is there, fits, and asks nobody else", async (_name, options) => {
    const { page, faults, close } = await browser.open(api.url, options);
    expect(await page.title()).toBe("Nodes · Nodewise");
    expect(await page.locator("#nodes tbody tr").count()).toBe(2);
    if (!("javaScriptEnabled" in options)) {
      await expectToFit(page);
      await expectAccessible(page);
    }
    expect(faults).toEqual([]);
    await close();
  });

  test("it is filtered by its form, by keyboard alone, and the answer is a link", async () => {
    const { page, close } = await browser.open(api.url);
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("To the content");
    await page.getByLabel("Name has").focus();
    await page.keyboard.type("node-2");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=node-2/);
    expect(await page.locator("#nodes tbody tr").count()).toBe(1);
    expect(await page.getByLabel("Name has").inputValue()).toBe("node-2");
    await close();
  });

  test("what is decided meanwhile appears by itself, and what somebody writes stays", async () => {
    const { page, faults, close } = await browser.open(api.url);
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    await page.getByLabel("Name has").fill("being writ");
    await decided(api.url, "cgroups", { snapshot: snapshotOf("node-new") });
    await page.locator("#nodes", { hasText: "node-new" }).waitFor();
    expect(await page.getByLabel("Name has").inputValue()).toBe("being writ");
    expect(faults).toEqual([]);
    await close();
  });

  test("ten pages of one browser hear of it, though it has few connections to a server", async () => {
    const { page, close } = await browser.open(api.url);
    const pages = [page];
    for (const path of [
      "/",
      "/",
      "/nodes/node-1",
      "/nodes/node-1",
      "/nodes/node-2",
      "/?q=node",
      "/?show=drift",
      "/docs",
      "/",
    ]) {
      const next = await page.context().newPage();
      await next.goto(api.url + path);
      pages.push(next);
    }
    await decided(api.url, "cgroups", { snapshot: snapshotOf("node-tenth") });
    for (const one of pages.filter((each) => new URL(each.url()).pathname === "/" && !each.url().includes("drift")))
      await one.locator("#nodes", { hasText: "node-tenth" }).waitFor({ timeout: 60_000 });
    await close();
  });

  test("a server that went away and came back is found again", async () => {
    const first = await served();
    const { page, close } = await browser.open(first.url);
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    await first.close();
    await page.locator("#live-state", { hasText: "reconnecting" }).waitFor();
    const second = await served({ port: first.port });
    await page.locator("#live-state", { hasText: "live" }).waitFor({ timeout: 60_000 });
    await decided(second.url, "cgroups", { snapshot: snapshotOf("after") });
    await page.locator("#nodes", { hasText: "after" }).waitFor();
    await close();
    await second.close();
  });
});
