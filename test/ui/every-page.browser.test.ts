import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectToFit } from "./browser.ts";
import { everyPage, FULL, type OnePage } from "./every-page.ts";
import { expectReadable, inBrowser, PHONE } from "./in-browser.ts";

/** Time for about twenty pages, one after another. */
const ALL_PAGES_MS = 900_000;
let pages: readonly OnePage[] = [];
const fill = async (url: string): Promise<void> => {
  pages = await everyPage(url);
};
const unfold = (page: Page): Promise<void> =>
  page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true");

/** Text boxes that a reader would have to scroll sideways. */
const CUT_TEXT = `[...document.querySelectorAll("pre.terminal")].filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.textContent.slice(0, 99))`;

/** Words below a selector that are broken over two lines. */
const brokenWords = (within: string): string => `(() => {
  const broken = [];
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (node.parentElement.closest(${JSON.stringify(within)}) === null) continue;
    for (const { 0: word, index } of node.data.matchAll(/[^\\s./-]+/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) broken.push(word);
    }
  }
  return broken;
})()`;

inBrowser("every page in a browser", fill, (ground) => {
  /** Opens each page, runs its action, and unfolds all its details. */
  const eachPage = async (options: BrowserContextOptions, look: (page: Page, path: string) => Promise<void>) => {
    for (const { path, act } of pages) {
      const { page, close } = await ground.open(path, options);
      await act?.(page);
      await expectToFit(page);
      await unfold(page);
      await expectReadable(page);
      await look(page, path);
      await close();
    }
  };
  const FITS = "it fits, also with all parts unfolded, and passes axe";
  test(`every page in dark and in light: ${FITS}`, { timeout: ALL_PAGES_MS }, () =>
    eachPage({ colorScheme: "dark" }, async (page) => {
      await page.emulateMedia({ colorScheme: "light" });
      await expectReadable(page);
    }),
  );
  test(`every page on a phone: ${FITS}`, { timeout: ALL_PAGES_MS }, () =>
    eachPage(PHONE, async (page, path) => expect(await page.evaluate(CUT_TEXT), path).toEqual([])),
  );

  test("on a phone the essentials are in view, links are large, and the API's contents lead to its parts", async () => {
    const viewport = { width: 390, height: 844 };
    const compare = await ground.open(`/compare?node=${FULL}&node=n1`, { viewport });
    const right =
      "Math.max(...[...document.querySelectorAll('.compare td, .compare th')].map((cell) => cell.getBoundingClientRect().right))";
    expect(await compare.page.evaluate(right)).toBeLessThanOrEqual(390);
    await compare.close();
    const fleet = await ground.open("/", { viewport });
    const beyond =
      "[...document.querySelectorAll('#nodes tbody td')].filter((cell) => cell.getBoundingClientRect().right > innerWidth).length";
    expect(await fleet.page.evaluate(beyond)).toBe(0);
    expect(await fleet.page.locator("#nodes tbody td[data-name=Memory]").count()).toBeGreaterThan(0);
    const topOf = (selector: string): Promise<number> =>
      fleet.page
        .locator(selector)
        .first()
        .evaluate((one) => one.getBoundingClientRect().top);
    expect(await topOf("#nodes tbody tr")).toBeLessThan(700);
    const filters = fleet.page.getByRole("search");
    expect(await filters.isVisible()).toBe(false);
    await fleet.page.getByText("Filter", { exact: true }).click();
    expect(await filters.isVisible()).toBe(true);
    await fleet.close();
    const pods = await ground.open(`/nodes/${FULL}?list=pods`, { viewport });
    const inView =
      "[...document.querySelectorAll('#pods tbody tr:first-child td')].filter((cell) => cell.getBoundingClientRect().right <= innerWidth).map((cell) => cell.dataset.name)";
    expect(await pods.page.evaluate(inView)).toEqual([undefined, "Eviction order", "Memory use", "Memory request"]);
    await pods.close();
    const docs = await ground.open("/docs", { viewport });
    const links = docs.page.locator("header nav a");
    const heights = await links.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
    expect([heights.length > 7, Math.min(...heights) >= 44]).toEqual([true, true]);
    expect((await docs.page.locator("header").boundingBox())?.height).toBeLessThan(125);
    await docs.page.locator("#contents summary", { hasText: "Decide" }).click();
    await docs.page.locator("#contents a", { hasText: "POST /v1/lint" }).click();
    await expect
      .poll(() => docs.page.evaluate("document.querySelector('#postLint').getBoundingClientRect().top < 300"))
      .toBe(true);
    const lost =
      "[...document.querySelectorAll('#contents a')].filter((link) => document.getElementById(link.hash.slice(1)) === null).length";
    expect(await docs.page.evaluate(lost)).toBe(0);
    await docs.close();
  });

  test.each([
    [`/compare?node=${FULL}&node=n1`, ".compare"],
    ["/agreement?verdict=all", "table.sides"],
    ["/docs", "#contents, h3"],
    ["/what-if", ".wi-commands"],
  ])("no word of %s is broken at any width", async (path, within) => {
    const { page, close } = await ground.open(path);
    await unfold(page);
    expect(await page.locator(within).count()).toBeGreaterThan(0);
    for (const width of [360, 390, 600, 768, 1024, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate(brokenWords(within)), `${width}`).toEqual([]);
    }
    await close();
  });

  test("on a desktop all choices of the nodes form are on one line with its buttons", async () => {
    const { page, close } = await ground.open("/", { viewport: { width: 1440, height: 900 } });
    const bottom = (of: Locator): Promise<number> =>
      of.evaluate((one) => Math.round(one.getBoundingClientRect().bottom));
    const form = page.getByRole("search");
    const [zone, show] = [form.getByLabel("Zone"), form.getByRole("button", { name: "Show" })];
    expect(await zone.locator("option").count()).toBe(3);
    expect(await bottom(show)).toBe(await bottom(zone));
    await close();
  });

  test.each([
    ["/", "Nodes"],
    ["/decisions?reason=OutOfcpu", "Decisions"],
    [`/nodes/${FULL}?list=pods`, "Requests, limits and use of pods"],
  ])("on a desktop no column of %s is cut by a long name", async (path, name) => {
    const { page, close } = await ground.open(path, { viewport: { width: 1440, height: 900 } });
    const box = page.getByRole("region", { name, exact: true });
    expect(await box.evaluate((table) => table.scrollWidth - table.clientWidth)).toBeLessThanOrEqual(0);
    await close();
  });

  test.each([
    ["a desktop", { width: 1440, height: 900 }],
    ["a tablet", { width: 768, height: 1024 }],
    ["a phone", { width: 390, height: 844 }],
    ["a small phone", { width: 320, height: 700 }],
  ])("on %s the page of a node with 110 evicted pods is shorter than 3,000 px", async (_name, viewport) => {
    // also the targets of the links of the time ranges and the tiles
    for (const link of ["", "?range=6h#eviction"]) {
      const { page, close } = await ground.open(`/nodes/${FULL}${link}`, { viewport });
      expect(await page.locator("#plot-memory\\.available .acts a").count()).toBeGreaterThan(3);
      await page.locator("#plot-memory\\.available.has-plot canvas").waitFor();
      await expect
        .poll(() => page.evaluate("document.documentElement.scrollHeight") as Promise<number>, { message: link })
        .toBeLessThan(3000);
      await close();
    }
  });
});
