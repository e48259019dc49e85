import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const ARGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];
const TIMES = 5;

/** Milliseconds from asking for a page to its first contentful paint in a new window, medians; null: no browser is here. */
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
        await page.waitForFunction("performance.getEntriesByName('first-contentful-paint').length > 0");
        times.push(
          (await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")) as number,
        );
        await page.close();
      }
      medians.push(times.sort((a, b) => a - b)[Math.floor(TIMES / 2)] as number);
    }
    return medians;
  } finally {
    await browser.close();
  }
}
