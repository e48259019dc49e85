import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { CHROMIUM } from "../kit/programs.ts";

export const hasBrowser = existsSync(CHROMIUM);
export const whyNoBrowser = `there is no browser at ${CHROMIUM}; .ci/apt installs one`;

/** Switches off everything that contacts other hosts. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  // a page that changes to another origin and back would start a new process each time
  "--renderer-process-limit=1",
  // most pages are closed before the compiler's optimizations pay off
  "--js-flags=--no-opt",
];
/** Generous, for a machine that is slow and loaded. */
const LONGEST_MS = 90_000;
const DESKTOP = { width: 1200, height: 800 };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** One browser for all files of a worker process. */
let browser: Promise<Browser> | undefined;
function start(): Promise<Browser> {
  // the browser and its folders are removed when the worker process exits; vitest sends SIGTERM for that and waits only
  // half a second
  process.once("SIGTERM", () => process.exit());
  return chromium.launch({ executablePath: CHROMIUM, args: ARGS, handleSIGTERM: false });
}
/** Closed pages that can be used again, by the options of their context. */
const closed = new Map<string, Page[]>();

/**
 * Opens a page in a closed one with the same options, without its cookies: a new context needs its own process, which
 * compiles all scripts again. Each page reports its errors, including violations of the content security policy, when
 * it is closed.
 */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  if (!hasBrowser) throw new Error(whyNoBrowser);
  const { viewport = DESKTOP, colorScheme = "light", storageState, ...kept } = options;
  const alike = closed.get(JSON.stringify(kept)) ?? [];
  closed.set(JSON.stringify(kept), alike);
  browser ??= start();
  const page = alike.pop() ?? (await newPage(await browser, kept));
  if (viewport !== null) await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme });
  if (typeof storageState === "object") await page.context().addCookies(storageState.cookies);
  // otherwise a change to a fragment of the same page would not load the page
  if (url.includes("#")) await page.goto("about:blank");
  const faults = faultsOf(page, url);
  await page.goto(url);
  const close = async (): Promise<void> => {
    await empty(page);
    alike.push(page);
  };
  return { page, faults, close };
}

async function newPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(LONGEST_MS);
  // each process receives and compiles axe once; a page that needs axe runs it
  await context.addInitScript({ content: `globalThis.loadAxe = function () { ${axe} }` });
  return context.newPage();
}

/** The errors that the browser reports for the next page that this page loads. */
function faultsOf(page: Page, url: string): readonly string[] {
  const faults: string[] = [];
  let isThere = false;
  page.once("framenavigated", () => {
    isThere = true;
  });
  const add = (fault: string): void => {
    // the former page may be alive until then
    if (isThere) faults.push(fault);
  };
  page.on("console", (message) => {
    if (message.type() === "error") add(message.text());
  });
  page.on("pageerror", (error) => add(error.message));
  page.on("request", (request) => {
    if (new URL(request.url()).origin === new URL(url).origin || request.url().startsWith("data:")) return;
    if (request.isNavigationRequest()) isThere = true;
    add(`it asked ${request.url()}`);
  });
  return faults;
}

/**
 * Removes listeners, routes, other pages and cookies. The page keeps its content if it has no cookies: loading an empty
 * page in between costs half as much as loading a page.
 */
async function empty(page: Page): Promise<void> {
  for (const event of ["console", "pageerror", "request", "framenavigated"])
    await page.removeAllListeners(event, { behavior: "wait" });
  await page.unrouteAll({ behavior: "wait" });
  const context = page.context();
  for (const other of context.pages()) if (other !== page) await other.close();
  if ((await context.cookies()).length === 0) return;
  // the page would ask the user to sign in again
  await page.goto("about:blank");
  await context.clearCookies();
}

export interface Watched {
  readonly page: Page;
  readonly faults: readonly string[];
  readonly close: () => Promise<void>;
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** The rules that axe checks: all of them, or only those whose result depends on the color scheme or the width. */
const AXE_OPTIONS = {
  everything: "rules: { 'target-size': { enabled: true } }",
  colors: "runOnly: ['color-contrast', 'link-in-text-block']",
  layout: "rules: { 'target-size': { enabled: true }, 'color-contrast': { enabled: false } }",
} as const;

/** On a busy machine, the response to a form has its elements before its styles. */
const styled = (page: Page): Promise<void> => page.waitForLoadState();

/** Expects that axe finds no violations, including targets that are too small for a finger. */
export async function expectAccessible(page: Page, at: keyof typeof AXE_OPTIONS = "everything"): Promise<void> {
  await styled(page);
  // a page that was checked before still has axe, compiled and warm
  const run = `(globalThis.axe ?? (loadAxe(), axe)).run(document, { resultTypes: ['violations'], ${AXE_OPTIONS[at]} })`;
  const violations = (await page.evaluate(`${run}.then(({ violations }) => violations)`)) as readonly Violation[];
  const messages = violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} (${nodes[0]?.failureSummary})`);
  expect(messages).toEqual([]);
}

/** Expects that only elements with their own scroll bar are wider than the window. */
export async function expectToFit(page: Page): Promise<void> {
  await styled(page);
  const [scroll, inner] = (await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")) as [
    number,
    number,
  ];
  expect(scroll).toBeLessThanOrEqual(inner);
}
