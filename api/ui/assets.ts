import { ok, type Result } from "../base/result.ts";
import { ASSET_TYPES, type AssetName, type Reply } from "../dependencies.ts";
import { type Exchange, param } from "../http/route.ts";
import { type Problem, problem } from "../service/problem.ts";

/** The parts of the one style sheet, in their order. */
const STYLES = [
  "colours.css",
  "page.css",
  "boxes.css",
  "tables.css",
  "words.css",
  "forms.css",
  "pictures.css",
  "fleet.css",
  "decision.css",
  "node.css",
  "bars.css",
  "tree.css",
  "cells.css",
  "plots.css",
  "probes.css",
  "what-if-form.css",
  "what-if-plans.css",
  "ask.css",
  "replay.css",
  "lint.css",
  "upgrade.css",
  "agreement.css",
] as const;
export type StyleName = (typeof STYLES)[number];
/** Joins the parts into `style.css`. */
export const styleSheet = (textOf: (part: StyleName) => string): string => STYLES.map(textOf).join("\n");

/** GET /assets/{name} */
export function getAsset(exchange: Exchange): Result<Reply, Problem> {
  const name = param(exchange, "name");
  if (!Object.hasOwn(ASSET_TYPES, name)) return problem("not_found", `there is no asset \`${name.slice(0, 64)}\``);
  const asset = name as AssetName;
  return ok({ status: 200, type: ASSET_TYPES[asset], body: exchange.deps.assets[asset] });
}
