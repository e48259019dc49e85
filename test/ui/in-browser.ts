import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { expectAccessible, expectToFit, hasBrowser, openPage, type Watched } from "./browser.ts";
import { type Served, served } from "./served.ts";

type Look = readonly [name: string, options: BrowserContextOptions];
export const PHONE: BrowserContextOptions = { viewport: { width: 360, height: 700 } };
/** The looks in which every page is checked. */
export const LOOKS: readonly Look[] = [
  ["light", {}],
  ["dark", { colorScheme: "dark" }],
  ["on a phone", PHONE],
];
export const LOOKS_AND_WITHOUT_SCRIPTS: readonly Look[] = [...LOOKS, ["without scripts", { javaScriptEnabled: false }]];
export const hasScripts = ({ javaScriptEnabled = true }: BrowserContextOptions): boolean => javaScriptEnabled;

/** What the tests of a page use: an API with data, and a browser. */
export interface BrowserFixture {
  readonly url: string;
  /** Opens a page, which the caller closes; accepts a path or a whole URL. */
  readonly open: (path: string, options?: BrowserContextOptions) => Promise<Watched>;
  /** Opens a page, runs `look` on it, and expects that the browser reported no errors. */
  readonly visit: (path: string, options: BrowserContextOptions, look: (page: Page) => Promise<void>) => Promise<void>;
}

/** Tests of one page in a browser, with their own API; skipped if there is no browser. */
export function inBrowser(
  name: string,
  fill: (url: string, dataDir: string) => Promise<void>,
  tests: (ground: BrowserFixture) => void,
): void {
  describe.skipIf(!hasBrowser)(name, () => {
    let api: Served | undefined;
    beforeAll(async () => {
      api = await served();
      await fill(api.url, api.dataDir);
    });
    afterAll(() => api?.close());
    const open: BrowserFixture["open"] = (path, how) => openPage(new URL(path, api?.url).href, how);
    tests({
      get url() {
        return api?.url ?? "";
      },
      open,
      visit: async (path, how, look) => {
        const { page, faults, close } = await open(path, how);
        await look(page);
        expect(faults).toEqual([]);
        await close();
      },
    });
  });
}

const LOOK = `matchMedia("(prefers-color-scheme: dark)").matches ? "colors" : innerWidth < 400 ? "layout" : "everything"`;

/**
 * Expects that the page fits into the window and is accessible. INVARIANT: a test that checks a page in dark colors or
 * on a phone also checks it in light colors, where all rules apply.
 */
export async function expectReadable(page: Page): Promise<void> {
  await expectToFit(page);
  await expectAccessible(page, (await page.evaluate(LOOK)) as "everything" | "colors" | "layout");
}
