// Module hooks of a vitest worker, registered before it loads tests; Node itself loads the tests.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const BUILT = process.env["BUILT_PACKAGE"];
/** Matches `new URL("./history-thread.ts", import.meta.url)`. */
const THREAD = /new URL\("\.\/([\w-]+-thread)\.ts", import\.meta\.url\)/;

registerHooks({
  /**
   * Resolves the files of drizzle-orm without Node's detection of their format: for each of a hundred files, Node would
   * parse the package's 180 KB package.json again, half a second of CPU time in total.
   */
  resolve(specifier, context, nextResolve) {
    const { parentURL = "" } = context;
    const isWithin = /^\.\.?\/.*\.js$/.test(specifier) && parentURL.includes("/node_modules/drizzle-orm/");
    if (!isWithin) return nextResolve(specifier, context);
    return { url: new URL(specifier, parentURL).href, format: "module", shortCircuit: true };
  },
  /**
   * Makes the text of FILE the default export of `FILE?raw`. Replaces the threads of APIs in the tests' own process by
   * those of the built package: from sources each thread takes two to four times the CPU time, most of it for packages
   * with a hundred modules.
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
