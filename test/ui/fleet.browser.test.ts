import { expect, test } from "vitest";
import { freePort } from "../e2e/pods/port.ts";
import { capturedNode } from "../kit/real-node.ts";
import { expectReadable, hasScripts, inBrowser, LOOKS_AND_WITHOUT_SCRIPTS } from "./in-browser.ts";
import { decided, served } from "./served.ts";

const fill = async (url: string): Promise<void> => {
  for (const name of ["node-1", "node-2"]) await decided(url, "cgroups", { snapshot: capturedNode(name) });
};
inBrowser("the fleet in a browser", fill, (ground) => {
  test.each(LOOKS_AND_WITHOUT_SCRIPTS)("%s: the comparison of two nodes fits", async (_name, options) => {
    await ground.visit("/compare?node=node-1&node=node-2", options, async (page) => {
      expect(await page.getByRole("region", { name: "State", exact: true }).isVisible()).toBe(true);
      if (hasScripts(options)) await expectReadable(page);
    });
  });
  test.each(LOOKS_AND_WITHOUT_SCRIPTS)(
    "%s: the nodes page loads, fits, and loads nothing foreign",
    async (_name, options) => {
      await ground.visit("/", options, async (page) => {
        expect(await page.title()).toBe("Nodes · Nodewise");
        expect(await page.locator("#nodes tbody tr").count()).toBe(2);
        if (hasScripts(options)) await expectReadable(page);
      });
    },
  );

  test("the nodes page is filtered by its form with the keyboard alone, and the result is a link", async () => {
    const { page, close } = await ground.open("/");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to content");
    await page.getByLabel("Name has").focus();
    await page.keyboard.type("node-2");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=node-2/);
    expect(await page.locator("#nodes tbody tr").count()).toBe(1);
    expect(await page.getByLabel("Name has").inputValue()).toBe("node-2");
    await close();
  });

  test("the nodes page is updated by itself, and typed text stays", async () => {
    const { page, faults, close } = await ground.open("/");
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    await page.getByLabel("Name has").fill("being writ");
    await decided(ground.url, "cgroups", { snapshot: capturedNode("node-new") });
    await page.locator("#nodes", { hasText: "node-new" }).waitFor();
    expect(await page.getByLabel("Name has").inputValue()).toBe("being writ");
    expect(faults).toEqual([]);
    await close();
  });

  test("a table with a focused link is updated, and the link keeps the focus", async () => {
    const { page, close } = await ground.open("/");
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    const link = page.locator("#nodes").getByRole("link", { name: "node-1", exact: true });
    await link.focus();
    await decided(ground.url, "cgroups", { snapshot: capturedNode("node-focus") });
    await page.locator("#nodes", { hasText: "node-focus" }).waitFor();
    expect(await page.evaluate("document.activeElement.textContent")).toBe("node-1");
    await page.getByRole("region", { name: "Nodes" }).focus();
    const before = await page.locator(".tile .figure").first().textContent();
    await decided(ground.url, "cgroups", { snapshot: capturedNode("node-later") });
    await expect.poll(() => page.locator(".tile .figure").first().textContent()).not.toBe(before);
    expect(await page.locator("#nodes", { hasText: "node-later" }).count()).toBe(0);
    await page.getByLabel("Name has").focus();
    await page.locator("#nodes", { hasText: "node-later" }).waitFor();
    await close();
  });

  test("one failed refresh is shown, and withdrawn after the next", async () => {
    const { page, close } = await ground.open("/");
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    let asked = 0;
    const reported = Promise.withResolvers<void>();
    // the message about the first request remains until the next response
    await page.route(`${ground.url}/`, async (route) => {
      if (++asked === 1) return route.fulfill({ status: 503, body: "busy" });
      await reported.promise;
      return route.continue();
    });
    await decided(ground.url, "cgroups", { snapshot: capturedNode("node-busy") });
    await page.locator("#live-state", { hasText: "cannot be refreshed" }).waitFor();
    reported.resolve();
    await page.locator("#nodes", { hasText: "node-busy" }).waitFor();
    await page.locator("#live-state", { hasText: /^live$/ }).waitFor();
    await close();
  });

  test("ten pages of one browser are all updated, despite its connection limit", async () => {
    const { page, close } = await ground.open("/");
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
      await next.goto(ground.url + path);
      pages.push(next);
    }
    await decided(ground.url, "cgroups", { snapshot: capturedNode("node-tenth") });
    for (const one of pages.filter((each) => new URL(each.url()).pathname === "/" && !each.url().includes("drift")))
      await one.locator("#nodes", { hasText: "node-tenth" }).waitFor();
    await close();
  });

  test("the page reconnects to a restarted server", async () => {
    // a port that no other program gets while the server restarts
    const first = await served({ port: await freePort() });
    const { page, close } = await ground.open(first.url);
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    await first.close();
    await page.locator("#live-state", { hasText: "reconnecting" }).waitFor();
    const second = await served({ port: first.port });
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    await decided(second.url, "cgroups", { snapshot: capturedNode("after") });
    await page.locator("#nodes", { hasText: "after" }).waitFor();
    await close();
    await second.close();
  });
});
