import uplot from "uplot/dist/uPlot.iife.min.js";
import uplotStyle from "uplot/dist/uPlot.min.css";
import type { Assets } from "../dependencies.ts";
import { type StyleName, styleSheet } from "./assets.ts";
import lint from "./client/lint.js";
import live from "./client/live.js";
import page from "./client/page.js";
import plots from "./client/plots.js";
import replay from "./client/replay.js";
import sizes from "./client/sizes.js";
import upgrade from "./client/upgrade.js";
import whatIf from "./client/what-if.js";
import agreementStyle from "./style/agreement.css";
import askStyle from "./style/ask.css";
import barsStyle from "./style/bars.css";
import boxesStyle from "./style/boxes.css";
import cellsStyle from "./style/cells.css";
import coloursStyle from "./style/colours.css";
import decisionStyle from "./style/decision.css";
import fleetStyle from "./style/fleet.css";
import formsStyle from "./style/forms.css";
import lintStyle from "./style/lint.css";
import nodeStyle from "./style/node.css";
import pageStyle from "./style/page.css";
import picturesStyle from "./style/pictures.css";
import plotsStyle from "./style/plots.css";
import probesStyle from "./style/probes.css";
import replayStyle from "./style/replay.css";
import tablesStyle from "./style/tables.css";
import treeStyle from "./style/tree.css";
import upgradeStyle from "./style/upgrade.css";
import whatIfFormStyle from "./style/what-if-form.css";
import whatIfPlansStyle from "./style/what-if-plans.css";
import wordsStyle from "./style/words.css";

/** The style sheet's parts as part of the bundle. */
const WORKER_STYLES: { readonly [Part in StyleName]: string } = {
  "colours.css": coloursStyle,
  "page.css": pageStyle,
  "boxes.css": boxesStyle,
  "tables.css": tablesStyle,
  "words.css": wordsStyle,
  "forms.css": formsStyle,
  "pictures.css": picturesStyle,
  "fleet.css": fleetStyle,
  "decision.css": decisionStyle,
  "node.css": nodeStyle,
  "bars.css": barsStyle,
  "tree.css": treeStyle,
  "cells.css": cellsStyle,
  "plots.css": plotsStyle,
  "probes.css": probesStyle,
  "what-if-form.css": whatIfFormStyle,
  "what-if-plans.css": whatIfPlansStyle,
  "ask.css": askStyle,
  "replay.css": replayStyle,
  "lint.css": lintStyle,
  "upgrade.css": upgradeStyle,
  "agreement.css": agreementStyle,
};

/** The pages' assets as part of the bundle: wrangler.toml declares these modules as text. */
export const WORKER_ASSETS: Assets = {
  "style.css": styleSheet((part) => WORKER_STYLES[part]),
  "lint.js": lint,
  "live.js": live,
  "page.js": page,
  "plots.js": plots,
  "replay.js": replay,
  "sizes.js": sizes,
  "upgrade.js": upgrade,
  "what-if.js": whatIf,
  "uplot.css": uplotStyle,
  "uplot.js": uplot,
};
