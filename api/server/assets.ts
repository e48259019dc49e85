import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AssetName, Assets } from "../ui/assets.ts";

const packages = createRequire(import.meta.url);
const own = (name: string): URL => new URL(`../ui/client/${name}`, import.meta.url);

const FILES: { readonly [Name in AssetName]: URL | string } = {
  "style.css": own("style.css"),
  "live.js": own("live.js"),
  "page.js": own("page.js"),
  "plots.js": own("plots.js"),
  "replay.js": own("replay.js"),
  "what-if.js": own("what-if.js"),
  "uplot.css": packages.resolve("uplot/dist/uPlot.min.css"),
  "uplot.js": packages.resolve("uplot/dist/uPlot.iife.min.js"),
};

/** The pages' assets from the disk, read once. Throws where the installation lacks one. */
export const nodeAssets = (): Assets =>
  Object.fromEntries(Object.entries(FILES).map(([name, file]) => [name, readFileSync(file, "utf8")])) as Assets;
