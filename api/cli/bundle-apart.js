import { spawnSync } from "node:child_process";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { isMainThread } from "node:worker_threads";

// Every module takes some 20 KB beside its code, and Node's type stripper 30 MB that are never given back, which a daemon
// cannot afford: a process of its own makes one module of all that a daemon loads, and ends. Without it (the bundler is not
// there) all is loaded as ever.
const MOST_BYTES = 64 * 1024 * 1024;
const MAIN = new URL("main.ts", import.meta.url).href;
/** What runs fewer times than that, as most of a start does, gets neither feedback nor machine code: 2 MB (V8's own: 8). */
const SELDOM = "--invocation-count-for-feedback-allocation=64";
/** That of Node 24; those of older ones may not know the flag. */
const KNOWING_V8 = 13;

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
  if (Number.parseInt(process.versions.v8, 10) >= KNOWING_V8) setFlagsFromString(SELDOM);
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
