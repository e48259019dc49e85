import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import { CHROMIUM } from "../kit/programs.ts";

const ARGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];
const TIMES = 5;
const FIRST_PAINT = `new Promise((done) => {
  new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName("first-contentful-paint");
    if (paint !== undefined) done(paint.startTime);
  }).observe({ type: "paint", buffered: true });
})`;

/**
 * Milliseconds from the request of a page to its first contentful paint in a new window, medians; null: this machine
 * has no browser.
 */
export async function firstPaints(urls: readonly string[]): Promise<readonly number[] | null> {
  if (!existsSync(CHROMIUM)) return null;
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
  try {
    const medians: number[] = [];
    for (const url of urls) {
      const times: number[] = [];
      for (let i = 0; i < TIMES; i++) {
        const page = await browser.newPage();
        await page.goto(url);
        times.push((await page.evaluate(FIRST_PAINT)) as number);
        await page.close();
      }
      medians.push(times.sort((a, b) => a - b)[Math.floor(TIMES / 2)] as number);
    }
    return medians;
  } finally {
    await browser.close();
  }
}
