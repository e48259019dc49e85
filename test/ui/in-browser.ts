import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { expectAccessible, expectToFit, hasBrowser, openPage, type Watched } from "./browser.ts";
import { type Served, served } from "./served.ts";

type Look = readonly [name: string, options: BrowserContextOptions];
export const PHONE: BrowserContextOptions = { viewport: { width: 360, height: 700 } };
/** How every page has to look well. */
export const LOOKS: readonly Look[] = [
  ["light", {}],
  ["dark", { colorScheme: "dark" }],
  ["on a phone", PHONE],
];
export const LOOKS_AND_WITHOUT_SCRIPTS: readonly Look[] = [...LOOKS, ["without scripts", { javaScriptEnabled: false }]];
export const hasScripts = ({ javaScriptEnabled = true }: BrowserContextOptions): boolean => javaScriptEnabled;

/** The ground of a page's tests: the API with what was filled in, and a browser that looks at it. */
export interface BrowserFixture {
  readonly url: string;
  /** Opens a page, which the caller closes. A whole address is opened as it is. */
  readonly open: (path: string, options?: BrowserContextOptions) => Promise<Watched>;
  /** Opens a page, does with it what is to be done, and expects that the browser had nothing to complain of. */
  readonly visit: (path: string, options: BrowserContextOptions, look: (page: Page) => Promise<void>) => Promise<void>;
}

/** Tests of one page in a browser, over an API of its own; skipped where there is no browser. */
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

/** It fits into the window, and everybody can use it. INVARIANT: who looks at a page in the dark or on a phone looks at it in the light too. */
export async function expectReadable(page: Page): Promise<void> {
  await expectToFit(page);
  await expectAccessible(page, (await page.evaluate(LOOK)) as "everything" | "colors" | "layout");
}
