import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";

// Node strips no types below node_modules, where an installed nodewise lies: do it for the files of this package alone.
const ROOT = new URL("../../", import.meta.url).href;
const isOwn = (url) => url.startsWith(ROOT) && url.endsWith(".ts") && !url.slice(ROOT.length).includes("node_modules/");

const emitWarning = process.emitWarning;
process.emitWarning = (warning, ...rest) => {
  if (!String(warning).startsWith("stripTypeScriptTypes is an experimental feature")) emitWarning(warning, ...rest);
};

registerHooks({
  load(url, context, next) {
    if (!isOwn(url)) return next(url, context);
    return {
      format: "module",
      shortCircuit: true,
      source: stripTypeScriptTypes(readFileSync(fileURLToPath(url), "utf8")),
    };
  },
});
