import { registerHooks } from "node:module";

const BUILT = process.env["BUILT_PACKAGE"];
/** `new URL("./history-thread.ts", import.meta.url)` */
const THREAD = /new URL\("\.\/([\w-]+-thread)\.ts", import\.meta\.url\)/;

/**
 * The threads of APIs within the tests' own process are those of the package, which is built before: from sources each takes two to
 * four times the processor time, most of it for packages of a hundred modules.
 */
if (BUILT !== undefined)
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!/\/api\/server\/\w+\.ts$/.test(url)) return loaded;
      const source = String(loaded.source).replace(THREAD, `new URL("file://${BUILT}/dist/$1.js")`);
      return { ...loaded, source };
    },
  });
