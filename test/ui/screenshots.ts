import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { CHROMIUM } from "../kit/programs.ts";
import { everyPage } from "./every-page.ts";
import { served } from "./served.ts";

// `node test/ui/screenshots.ts [FOLDER]` takes pictures of the first view of every page: on a desktop, in dark colors,
// and on a phone

const OUT = resolve(process.argv[2] ?? join(import.meta.dirname, "../../docs/pictures"));
const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
  desktop: { viewport: { width: 1280, height: 800 } },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 } },
};
/** Pages without pictures; a few decisions suffice as examples of all decisions. */
const LEFT_OUT = /^decision-(?!evicting|admission|cgroups)|^(?:replay|lint|upgrade|node-pods|not-found)$/;

/** A page draws its plots some time after it has loaded. */
const DRAWN_MS = 600;
async function shoot(page: Page, converter: Page): Promise<Buffer> {
  await page.waitForTimeout(DRAWN_MS);
  const png = await page.screenshot({ animations: "disabled" });
  return webp(converter, png.toString("base64"));
}

/** Converts a picture in the browser, which needs no other program; a fifth of the PNG's size. */
async function webp(page: Page, base64: string): Promise<Buffer> {
  const url = await page.evaluate(`(async () => {
    const image = new Image();
    image.src = "data:image/png;base64,${base64}";
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.5);
  })()`);
  return Buffer.from(String(url).split(",")[1] ?? "", "base64");
}

async function shootAll(browser: Browser, url: string): Promise<void> {
  const converter = await browser.newPage();
  for (const { name, path, act } of await everyPage(url)) {
    if (LEFT_OUT.test(name)) continue;
    for (const [look, options] of Object.entries(LOOKS)) {
      const context = await browser.newContext(options);
      const page = await context.newPage();
      await page.goto(url + path);
      await act?.(page);
      writeFileSync(join(OUT, `${name}-${look}.webp`), await shoot(page, converter));
      await context.close();
    }
  }
}

mkdirSync(OUT, { recursive: true });
const api = await served();
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
try {
  await shootAll(browser, api.url);
} finally {
  await browser.close();
  await api.close();
}
