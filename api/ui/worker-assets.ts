import uplot from "uplot/dist/uPlot.iife.min.js";
import uplotStyle from "uplot/dist/uPlot.min.css";
import type { Assets } from "../ports.ts";
import { styleSheet } from "./assets.ts";
import lint from "./client/lint.js";
import live from "./client/live.js";
import page from "./client/page.js";
import plots from "./client/plots.js";
import replay from "./client/replay.js";
import sizes from "./client/sizes.js";
import whatIf from "./client/what-if.js";
import { WORKER_STYLES } from "./worker-styles.ts";

/** The pages' assets as part of the bundle: wrangler.toml says that these modules are text. */
export const WORKER_ASSETS: Assets = {
  "style.css": styleSheet((part) => WORKER_STYLES[part]),
  "lint.js": lint,
  "live.js": live,
  "page.js": page,
  "plots.js": plots,
  "replay.js": replay,
  "sizes.js": sizes,
  "what-if.js": whatIf,
  "uplot.css": uplotStyle,
  "uplot.js": uplot,
};
