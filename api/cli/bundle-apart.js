import { spawnSync } from "node:child_process";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

// Every module takes some 20 KB beside its code, and Node's type stripper 30 MB that are never given back, which a daemon
// cannot afford: a process of its own makes one module of all that a daemon loads, and ends. Without it (the bundler is not
// there) all is loaded as ever.
const MOST_BYTES = 64 * 1024 * 1024;
const MAIN = new URL("main.ts", import.meta.url).href;

/** @returns {string | undefined} */
function bundledApart() {
  const script = fileURLToPath(new URL("bundle.js", import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, ["--no-warnings", script], {
    encoding: "utf8",
    maxBuffer: MOST_BYTES,
    stdio: ["ignore", "pipe", "ignore"],
  });
  return status === 0 ? stdout : undefined;
}

if (isMainThread) {
  let source = bundledApart();
  registerHooks({
    load(url, context, next) {
      if (url !== MAIN || source === undefined) return next(url, context);
      const bundled = source;
      source = undefined;
      return { format: "module", shortCircuit: true, source: bundled };
    },
  });
}
