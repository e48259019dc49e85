import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
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
  // most of them are gone before a script that was made fast is fast
  "--js-flags=--no-opt",
];
/** A machine that is slow and loaded takes long. */
const LONGEST_MS = 90_000;
const DESKTOP = { width: 1200, height: 800 };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** One for all files of a worker. */
let browser: Promise<Browser> | undefined;
function start(): Promise<Browser> {
  // it goes, with its folders, when the worker exits; vitest ends that with a signal, and waits only half a second
  process.once("SIGTERM", () => process.exit());
  return chromium.launch({ executablePath: CHROMIUM, args: ARGS, handleSIGTERM: false });
}
/** Closed pages by the options of their context. */
const closed = new Map<string, Page[]>();

/**
 * A page that is closed is opened again for the next with the same options, without its cookies: a new context takes a process of its
 * own, which compiles all scripts anew. Each page tells its errors, those of the policy among them, when it is closed.
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
  // to a part of the page that is there it would go without loading it
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
  // a process compiles it once, and is sent it once; pages that need it run it
  await context.addInitScript({ content: `globalThis.loadAxe = function () { ${axe} }` });
  return context.newPage();
}

/** The browser's complaints about the page that it goes to next. */
function faultsOf(page: Page, url: string): readonly string[] {
  const faults: string[] = [];
  let isThere = false;
  page.once("framenavigated", () => {
    isThere = true;
  });
  const add = (fault: string): void => {
    // the page before may live until then
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

/** Leaves nothing of who looked, and what was looked at for the next to replace: an empty page between them is half as much work. */
async function empty(page: Page): Promise<void> {
  for (const event of ["console", "pageerror", "request", "framenavigated"])
    await page.removeAllListeners(event, { behavior: "wait" });
  await page.unrouteAll({ behavior: "wait" });
  const context = page.context();
  for (const other of context.pages()) if (other !== page) await other.close();
  if ((await context.cookies()).length === 0) return;
  // it would ask to sign in again
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

/** The rules that axe checks: everything, or only what a ground or a width that differs from the usual one changes. */
const LOOKED_AT = {
  everything: "rules: { 'target-size': { enabled: true } }",
  colors: "runOnly: ['color-contrast', 'link-in-text-block']",
  layout: "rules: { 'target-size': { enabled: true }, 'color-contrast': { enabled: false } }",
} as const;

/** A page that answers a form has its elements before its styles, if the machine is busy. */
const styled = (page: Page): Promise<void> => page.waitForLoadState();

/** Nothing that axe finds, nor anything too small for a finger. */
export async function expectAccessible(page: Page, at: keyof typeof LOOKED_AT = "everything"): Promise<void> {
  await styled(page);
  // a page that is looked at again has it, compiled and warm
  const run = `(globalThis.axe ?? (loadAxe(), axe)).run(document, { resultTypes: ['violations'], ${LOOKED_AT[at]} })`;
  const violations = (await page.evaluate(`${run}.then(({ violations }) => violations)`)) as readonly Violation[];
  const messages = violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} (${nodes[0]?.failureSummary})`);
  expect(messages).toEqual([]);
}

/** Nothing sticks out of the window but what has its own scroll bar. */
export async function expectToFit(page: Page): Promise<void> {
  await styled(page);
  const [scroll, inner] = (await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")) as [
    number,
    number,
  ];
  expect(scroll).toBeLessThanOrEqual(inner);
}
