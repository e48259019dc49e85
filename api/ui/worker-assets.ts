import uplot from "uplot/dist/uPlot.iife.min.js";
import uplotStyle from "uplot/dist/uPlot.min.css";
import type { Assets } from "./assets.ts";
import live from "./client/live.js";
import page from "./client/page.js";
import plots from "./client/plots.js";
import style from "./client/style.css";

/** The pages' assets as part of the bundle: wrangler.toml says that these modules are text. */
export const WORKER_ASSETS: Assets = {
  "style.css": style,
  "live.js": live,
  "page.js": page,
  "plots.js": plots,
  "uplot.css": uplotStyle,
  "uplot.js": uplot,
};
