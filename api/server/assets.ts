import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type AssetName, type Assets, styleSheet } from "../ui/assets.ts";

const packages = createRequire(import.meta.url);
const client = (name: string): URL => new URL(`../ui/client/${name}`, import.meta.url);

const FILES: { readonly [Name in Exclude<AssetName, "style.css">]: URL | string } = {
  "lint.js": client("lint.js"),
  "live.js": client("live.js"),
  "page.js": client("page.js"),
  "plots.js": client("plots.js"),
  "replay.js": client("replay.js"),
  "sizes.js": client("sizes.js"),
  "what-if.js": client("what-if.js"),
  "uplot.css": packages.resolve("uplot/dist/uPlot.min.css"),
  "uplot.js": packages.resolve("uplot/dist/uPlot.iife.min.js"),
};
const textOf = (file: URL | string): string => readFileSync(file, "utf8");

/** The pages' assets from the disk, read once. Throws where the installation lacks one. */
export const nodeAssets = (): Assets => ({
  ...(Object.fromEntries(Object.entries(FILES).map(([name, file]) => [name, textOf(file)])) as Omit<
    Assets,
    "style.css"
  >),
  "style.css": styleSheet((part) => textOf(new URL(`../ui/style/${part}`, import.meta.url))),
});
