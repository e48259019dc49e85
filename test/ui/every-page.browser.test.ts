import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectToFit } from "./browser.ts";
import { everyPage, FULL, type OnePage } from "./every-page.ts";
import { expectReadable, inBrowser, LOOKS } from "./in-browser.ts";

let pages: readonly OnePage[] = [];
const fill = async (url: string): Promise<void> => {
  pages = await everyPage(url);
};
const unfold = (page: Page): Promise<void> =>
  page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true");

const isPhone = ({ viewport }: (typeof LOOKS)[number][1]): boolean => (viewport?.width ?? 1200) < 400;
/** Boxes of text that would have to be scrolled sideways to be read. */
const CUT_TEXT = `[...document.querySelectorAll("pre.terminal")].filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.textContent.slice(0, 99))`;

inBrowser("every page in a browser", fill, (ground) => {
  test.each(LOOKS)("%s: it fits, with all that is folded as well, and axe finds nothing", async (_name, options) => {
    for (const { path, act } of pages) {
      const { page, close } = await ground.open(path, options);
      await act?.(page);
      await expectToFit(page);
      await unfold(page);
      if (isPhone(options)) expect(await page.evaluate(CUT_TEXT), path).toEqual([]);
      await expectReadable(page);
      await close();
    }
  });

  const HIGHEST = 2900;
  test.each([
    ["a desktop", { width: 1440, height: 900 }],
    ["a phone", { width: 390, height: 844 }],
  ])("on %s a node of 110 pods with long names that are evicted is shorter than 3,000 px", async (_name, viewport) => {
    const { page, close } = await ground.open(`/nodes/${FULL}`, { viewport });
    expect(await page.locator("#plot-memory\\.available .acts a").count()).toBeGreaterThan(3);
    await page.locator("#plot-memory\\.available.has-plot canvas").waitFor();
    await expect
      .poll(() => page.evaluate("document.documentElement.scrollHeight") as Promise<number>)
      .toBeLessThan(HIGHEST);
    await close();
  });
});
