import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { CHROMIUM } from "../kit/programs.ts";

export const hasBrowser = existsSync(CHROMIUM);
export const whyNoBrowser = `there is no browser at ${CHROMIUM}; .ci/apt installs one`;

/** Without what looks for hosts elsewhere. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  // a page that goes to another address, and back, would start a process each time
  "--renderer-process-limit=1",
];
/** A machine that is slow and loaded takes long. */
const LONGEST_MS = 90_000;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * One browser for the tests of a file. A page that is closed is opened again for the next with the same options, without its cookies:
 * a new context takes a process of its own, which compiles all scripts anew. Each page tells its errors, those of the policy among
 * them, when it is closed.
 */
export function aBrowser(): {
  readonly open: (url: string, options?: BrowserContextOptions) => Promise<Watched>;
} {
  let browser: Browser | undefined;
  const closed = new Map<string, Page[]>();
  beforeAll(async () => {
    if (hasBrowser) browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
  });
  afterAll(() => browser?.close());
  return {
    open: async (url, options = {}) => {
      if (browser === undefined) throw new Error(whyNoBrowser);
      const how = { viewport: { width: 1200, height: 800 }, ...options };
      const alike = closed.get(JSON.stringify(how)) ?? [];
      closed.set(JSON.stringify(how), alike);
      const page = alike.pop() ?? (await newPage(browser, how));
      if (how.viewport !== null) await page.setViewportSize(how.viewport);
      await page.emulateMedia({ colorScheme: how.colorScheme ?? "light" });
      if (typeof how.storageState === "object") await page.context().addCookies(how.storageState.cookies);
      const faults = faultsOf(page, url);
      await page.goto(url);
      const close = async (): Promise<void> => {
        await empty(page);
        alike.push(page);
      };
      return { page, faults, close };
    },
  };
}

async function newPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(LONGEST_MS);
  return context.newPage();
}

/** What the browser complains of, from now on. */
function faultsOf(page: Page, url: string): readonly string[] {
  const faults: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin && !request.url().startsWith("data:"))
      faults.push(`it asked ${request.url()}`);
  });
  return faults;
}

/** Leaves nothing of what was looked at, nor of who looked. */
async function empty(page: Page): Promise<void> {
  for (const event of ["console", "pageerror", "request"]) await page.removeAllListeners(event, { behavior: "wait" });
  await page.unrouteAll({ behavior: "wait" });
  const context = page.context();
  for (const other of context.pages()) if (other !== page) await other.close();
  await context.clearCookies();
  await page.goto("about:blank");
}

export interface Watched {
  readonly page: Page;
  readonly faults: readonly string[];
  readonly close: () => Promise<void>;
}

interface AxeResult {
  readonly violations: readonly {
    id: string;
    nodes: readonly { html: string; failureSummary: string }[];
  }[];
}

/** What axe looks at: everything, or only what a ground or a width that differs from the usual one changes. */
const LOOKED_AT = {
  everything: "rules: { 'target-size': { enabled: true } }",
  colors: "runOnly: ['color-contrast', 'link-in-text-block']",
  layout: "rules: { 'target-size': { enabled: true }, 'color-contrast': { enabled: false } }",
} as const;

/** Nothing that axe finds, nor anything too small for a finger. */
export async function expectAccessible(page: Page, at: keyof typeof LOOKED_AT = "everything"): Promise<void> {
  // a page that is looked at again has it, compiled and warm
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe);
  const { violations } = (await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'], ${LOOKED_AT[at]} })`,
  )) as AxeResult;
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} (${nodes[0]?.failureSummary})`);
  expect(told).toEqual([]);
}

/** Nothing sticks out of the window but what has its own scroll bar. */
export async function expectToFit(page: Page): Promise<void> {
  const [scroll, inner] = (await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")) as [
    number,
    number,
  ];
  expect(scroll).toBeLessThanOrEqual(inner);
}
