// The steps of a worker of vitest before it loads tests, which Node itself loads.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const BUILT = process.env["BUILT_PACKAGE"];
/** `new URL("./history-thread.ts", import.meta.url)` */
const THREAD = /new URL\("\.\/([\w-]+-thread)\.ts", import\.meta\.url\)/;

registerHooks({
  /**
   * Files of drizzle-orm find each other without Node's search for their format: for each of a hundred files that parses the 180 KB
   * of the package's package.json anew, half a second of processor time in all.
   */
  resolve(specifier, context, nextResolve) {
    const { parentURL = "" } = context;
    const isWithin = /^\.\.?\/.*\.js$/.test(specifier) && parentURL.includes("/node_modules/drizzle-orm/");
    if (!isWithin) return nextResolve(specifier, context);
    return { url: new URL(specifier, parentURL).href, format: "module", shortCircuit: true };
  },
  /**
   * A file's text is the default export of FILE?raw. The threads of APIs within the tests' own process are those of the package,
   * which is built before: from sources each takes two to four times the processor time, most of it for packages of a hundred modules.
   */
  load(url, context, nextLoad) {
    if (url.endsWith("?raw")) {
      const text = readFileSync(new URL(url), "utf8");
      return { format: "module", shortCircuit: true, source: `export default ${JSON.stringify(text)};` };
    }
    const loaded = nextLoad(url, context);
    if (BUILT === undefined || !/\/api\/server\/\w+\.ts$/.test(url)) return loaded;
    const source = String(loaded.source).replace(THREAD, `new URL("file://${BUILT}/dist/$1.js")`);
    return { ...loaded, source };
  },
});
