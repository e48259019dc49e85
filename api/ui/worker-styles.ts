import type { StyleName } from "./assets.ts";
import ask from "./style/ask.css";
import bars from "./style/bars.css";
import boxes from "./style/boxes.css";
import cells from "./style/cells.css";
import colours from "./style/colours.css";
import decision from "./style/decision.css";
import fleet from "./style/fleet.css";
import forms from "./style/forms.css";
import lint from "./style/lint.css";
import node from "./style/node.css";
import page from "./style/page.css";
import pictures from "./style/pictures.css";
import plots from "./style/plots.css";
import probes from "./style/probes.css";
import replay from "./style/replay.css";
import tables from "./style/tables.css";
import tree from "./style/tree.css";
import whatIfForm from "./style/what-if-form.css";
import whatIfPlans from "./style/what-if-plans.css";
import words from "./style/words.css";

/** The style sheet's parts as part of the bundle. */
export const WORKER_STYLES: { readonly [Part in StyleName]: string } = {
  "colours.css": colours,
  "page.css": page,
  "boxes.css": boxes,
  "tables.css": tables,
  "words.css": words,
  "forms.css": forms,
  "pictures.css": pictures,
  "fleet.css": fleet,
  "decision.css": decision,
  "node.css": node,
  "bars.css": bars,
  "tree.css": tree,
  "cells.css": cells,
  "plots.css": plots,
  "probes.css": probes,
  "what-if-form.css": whatIfForm,
  "what-if-plans.css": whatIfPlans,
  "ask.css": ask,
  "replay.css": replay,
  "lint.css": lint,
};
